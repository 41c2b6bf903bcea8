"""Finds the processes of runs, and how they ended, in /proc; finds nothing without it."""

from __future__ import annotations

import fcntl
import os
import signal
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024
_CHUNK = 1 << 16
_CAP_SYS_PTRACE = 19
_INFO_BYTES = 64
_GET_INFO = 3 << 30 | _INFO_BYTES << 16 | 0xFF << 8 | 11
"""``PIDFD_GET_INFO`` of linux/pidfd.h, with the first version of its structure."""
_INFO_EXIT = 1 << 3
_TELLS_EXIT_SINCE = (6, 15)
MOST_LOOKED_AT = 512
"""The processes of one run."""
_UID_MARK = b"HOLDFAST_ATTEMPT_UID="
_FILES_MARK = b"HOLDFAST_TERMINATION_LOG="


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
    """Signal one process, if it still exists and may be signalled."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def resume(pid: int) -> None:
    """Resume a suspended process; others do not notice."""
    if pid > 0:
        kill(pid, signal.SIGCONT)


def everyone() -> Iterator[int]:
    """List all processes."""
    try:
        with os.scandir("/proc") as entries:
            names = [entry.name for entry in entries]
    except OSError:
        return
    yield from (int(name) for name in names if name.isdigit())


def content(path: str) -> bytes:
    """Read a small file; empty if it cannot be read."""
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
        return b""  # The process ended meanwhile.
    finally:
        os.close(fd)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat from the state on (field 3); the name before may contain anything."""
    return content(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def children_of(parent: int) -> list[int]:
    """List a process's children, including ended ones."""
    listed = f"/proc/{parent}/task/{parent}/children"
    if os.access(listed, os.R_OK):
        return [int(pid) for pid in content(listed).split()]
    return [pid for pid in everyone() if (_stat(pid) or [b"", b"0"])[1] == b"%d" % parent]


def children() -> list[int]:
    """List the calling process's children, including ended ones."""
    return children_of(os.getpid())


def has_ended(pid: int) -> bool:
    """Whether a process has ended or is a zombie."""
    return (_stat(pid) or [b"Z"])[0] == b"Z"


def leads_session(pid: int) -> bool:
    """Whether a process leads its session, as every run's first process does."""
    return _stat(pid)[3:4] == [b"%d" % pid]


def is_suspended(pid: int) -> bool:
    """Whether a signal stopped a process."""
    return _stat(pid)[:1] == [b"T"]


def heeds(pid: int, number: int) -> bool:
    """Whether a process handles a signal, which would otherwise end it or do nothing."""
    return bool(int(_status(pid).get(b"SigCgt", b"0"), 16) >> (number - 1) & 1)


def _status(pid: int | str) -> dict[bytes, bytes]:
    """Read /proc/PID/status, by field name."""
    lines = content(f"/proc/{pid}/status").splitlines()
    return dict(line.split(b":\t", 1) for line in lines if b":\t" in line)


def exit_status(pid: int, pidfd: int) -> int | None:
    """Return the wait status of an ended process that need not be a child: of a zombie, or from a kernel that tells.

    Returns:
        ``None`` if nobody can tell any more.
    """
    fields = _stat(pid)
    if fields[:1] == [b"Z"]:
        return int(fields[49]) if _may_look_into(pid) else None
    info = bytearray(struct.pack("Q", _INFO_EXIT) + bytes(_INFO_BYTES - 8))
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return None
    mask, *_, status = struct.unpack_from("QQ11Ii", info)
    return status if mask & _INFO_EXIT else None


def _may_look_into(pid: int) -> bool:
    """Whether the kernel shows this process how a zombie ended; to others it shows 0."""
    try:
        if os.geteuid() == os.stat(f"/proc/{pid}").st_uid:  # noqa: PTH116 - beside the calls around it
            return True
    except OSError:
        return False
    # Root may lack this right in a container.
    return bool(int(_status("self").get(b"CapEff", b"0"), 16) >> _CAP_SYS_PTRACE & 1)


def can_be_waited_for(pid: int) -> bool:
    """Whether the kernel tells how a process ends that is not a child (Linux 6.15 and later)."""
    info = bytearray(struct.pack("Q", _INFO_EXIT) + bytes(_INFO_BYTES - 8))
    try:
        pidfd = os.pidfd_open(pid)
    except (OSError, AttributeError):
        return False
    try:
        fcntl.ioctl(pidfd, _GET_INFO, info)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return _release() >= _TELLS_EXIT_SINCE


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2] if part.isdecimal())


def settle_orphans(own: Container[int], leaders: Collection[int], suspects: Container[int]) -> set[int]:
    """Reap and kill processes that became children because their supervisor was killed.

    Args:
        own: Children that are none of those.
        leaders: Programs of runs that go on under another supervisor; while there are any, what lives may be theirs.
        suspects: The last result. Only those are reaped or killed: a process may arrive before the news of its
            supervisor's death, and how a program ended can be learned only until it is reaped.

    Returns:
        The processes that are left.
    """
    left = set()
    for pid in children():
        if pid in own:
            continue
        if pid not in leaders and pid in suspects and has_ended(pid):
            os.waitpid(pid, os.WNOHANG)
            continue
        left.add(pid)
        if not leaders and pid in suspects:
            kill(pid)
    return left


def marked(uids: Container[str], directory: str) -> Iterator[int]:
    """List the processes of this machine that carry these runs' uids and have files below a directory."""
    for pid in everyone():
        if uid_of(pid) in uids and _first_environment(pid, _FILES_MARK).startswith(f"{directory}/"):
            yield pid


def uid_of(pid: int) -> str:
    """Read from a process's first environment which run it belongs to; empty if none."""
    return _first_environment(pid, _UID_MARK)


def name_if_foreign(pid: int, directory: str, holder: int) -> str:
    """Name the program of a process that is neither a run with files below a directory nor a descendant of one.

    Args:
        pid: The process.
        directory: The directory of the runs' files.
        holder: The process that all supervisors descend from.

    Returns:
        Empty if the process belongs to a run or cannot be seen.
    """
    name = content(f"/proc/{pid}/comm").decode(errors="replace").strip()
    while pid > 1 and name:
        if pid == holder or _first_environment(pid, _FILES_MARK).startswith(f"{directory}/"):
            return ""
        pid = int((_stat(pid) or [b"", b"0"])[1])
    return name


def _first_environment(pid: int, name: bytes) -> str:
    for item in content(f"/proc/{pid}/environ").split(b"\0"):
        if item.startswith(name):
            return item[len(name) :].decode(errors="replace")
    return ""


def born_between(pid: int, earliest: float, latest: float) -> bool:
    """Whether a process with that number, maybe a zombie, started in that period (seconds since boot)."""
    fields = _stat(pid)
    if not fields:
        return False
    return earliest - 2 * _TICK_S <= int(fields[19]) * _TICK_S <= latest + 2 * _TICK_S


def group_memory(is_wanted: Callable[[int], bool]) -> dict[int, int]:
    """Estimate the memory of process groups: the private pages of all members, and the largest shared part once.

    Memory that a member shares with the process that forked it counts as private: the true sum may be much less.
    """
    private: dict[int, int] = {}
    shared: dict[int, int] = {}
    for pid in everyone():
        group = _group_of(pid)
        if group and is_wanted(group):
            own, common = memory_of(pid)
            private[group] = private.get(group, 0) + own
            shared[group] = max(shared.get(group, 0), common)
    return {group: size + shared[group] for group, size in private.items()}


def exact_group_memory(group: int) -> int:
    """Count the memory of a process group, each page once; walks all its page tables, 5 to 15 ms per GB."""
    return exact_memory(pid for pid in everyone() if _group_of(pid) == group)


def exact_memory(pids: Iterable[int]) -> int:
    """Count the memory of processes in bytes; processes that share a page share its cost."""
    total = shared = 0
    for pid in pids:
        share = _field_of(content(f"/proc/{pid}/smaps_rollup"), b"Pss:")
        if share is not None:
            total += share * _KIB
        else:  # An old kernel, or a process of another account that may not be examined.
            own, common = memory_of(pid)
            total, shared = total + own, max(shared, common)
    return total + shared


def memory_of(pid: int) -> tuple[int, int]:
    """Return a process's private and shared memory in bytes; unwritten copies on write are private."""
    pages = content(f"/proc/{pid}/statm").split()
    if not pages:
        return 0, 0
    return (int(pages[1]) - int(pages[2])) * _PAGE, int(pages[2]) * _PAGE


def _group_of(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[2]) if fields else 0


def _field_of(text: bytes, name: bytes) -> int | None:
    for line in text.splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    return None
