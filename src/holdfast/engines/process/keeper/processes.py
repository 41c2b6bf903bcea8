"""Finds processes that belong to a run, from /proc; where there is none, finds nothing."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_CHUNK = 1 << 16
_UID_MARK = b"HOLDFAST_ATTEMPT_UID="


def kill_group(pgid: int, number: int) -> bool:
    """Signal a process group.

    Returns:
        Whether it has any member left that could be signalled.
    """
    try:
        os.killpg(pgid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal one process, if it is still there and ours to signal."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def everyone() -> Iterator[int]:
    """List the processes there are."""
    try:
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        chunks = []
        while chunk := os.read(fd, _CHUNK):
            chunks.append(chunk)
        return b"".join(chunks)
    except OSError:
        return b""  # it ended while we read
    finally:
        os.close(fd)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on (field 3); the name before may hold anything."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _children(parent: int) -> list[int]:
    listed = f"/proc/{parent}/task/{parent}/children"
    if os.access(listed, os.R_OK):
        return [int(pid) for pid in _read(listed).split()]
    return [pid for pid in everyone() if (_stat(pid) or [b"", b"0"])[1] == b"%d" % parent]


def uid_of(pid: int) -> str:
    """Read from a process's first environment which run it came from; empty if from none."""
    for item in _read(f"/proc/{pid}/environ").split(b"\0"):
        if item.startswith(_UID_MARK):
            return item[len(_UID_MARK) :].decode(errors="replace")
    return ""


def orphans(known: Container[int]) -> Iterator[tuple[int, str]]:
    """List adopted processes as ``(pid, run uid)``, the uid empty where the mark is gone; ``known`` are the leaders."""
    for pid in _children(os.getpid()):
        if pid not in known and _stat(pid)[:1] not in ([], [b"Z"]):
            yield pid, uid_of(pid)


def marked(uids: Container[str]) -> Iterator[int]:
    """List every process on the machine that carries one of these runs' uids."""
    for pid in everyone():
        if uid_of(pid) in uids:
            yield pid


def born_between(pid: int, earliest: float, latest: float) -> bool:
    """Whether a living process of that number started then (seconds since boot)."""
    fields = _stat(pid)
    if not fields or fields[0] == b"Z":
        return False
    return earliest - 2 * _TICK_S <= int(fields[19]) * _TICK_S <= latest + 2 * _TICK_S


def group_memory(wanted: Callable[[int], bool]) -> dict[int, int]:
    """Sum the memory of process groups, by group: private pages of all members, and the largest shared part once."""
    private: dict[int, int] = {}
    shared: dict[int, int] = {}
    for pid in everyone():
        fields = _stat(pid)
        group = int(fields[2]) if fields else 0
        if not group or not wanted(group):
            continue
        pages = _read(f"/proc/{pid}/statm").split()
        if pages:
            resident, common = int(pages[1]), int(pages[2])
            private[group] = private.get(group, 0) + resident - common
            shared[group] = max(shared.get(group, 0), common)
    return {group: (pages + shared[group]) * _PAGE for group, pages in private.items()}


def any_alive(pids: Iterable[int]) -> bool:
    """Whether any of these has not ended; a zombie has."""
    return any((_stat(pid) or [b"Z"])[0] != b"Z" for pid in pids)
