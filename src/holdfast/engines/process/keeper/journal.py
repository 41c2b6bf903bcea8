"""What survives the keeper: one line per order, start, end and forgetting; decides how to read it back.

Lines are appended without syncing: they survive the keeper's death, and a machine's death takes the runs with it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from . import moment
from .records import FINISHED, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any

NAME = "keeper.journal"
COMPACT_BYTES = 4 << 20
_encode = json.JSONEncoder(separators=(",", ":")).encode
_BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Started:
    """Where a run's leader was, precise enough to tell it from a later process of the same number."""

    __slots__ = ("after", "before", "boot", "pid")

    def __init__(self, pid: int, before: float, after: float, boot: str) -> None:
        """Remember the number, and between which moments since which boot it was born."""
        self.pid = pid
        self.before = before
        self.after = after
        self.boot = boot


def boot_id() -> str:
    """Name this boot of the machine; empty where there is no such name."""
    try:
        return Path(_BOOT_ID).read_text().strip()
    except OSError:
        return ""


class Journal:
    """An append-only file of JSON lines, compacted when most of it is forgotten."""

    def __init__(self, path: str) -> None:
        """Open it for appending."""
        self._path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.pending = bytearray()
        """What a full disk refused."""
        self._boot = boot_id()
        self.size = os.fstat(self._fd).st_size
        self._compact_at = COMPACT_BYTES

    def ordered(self, run: Run) -> None:
        """Note that a run is about to be started."""
        self._add(["order", run.uid, run.node, run.directory])

    def started(self, run: Run, before: float) -> None:
        """Note that a run's program was started, not earlier than ``before`` since boot."""
        self._add(["start", run.uid, run.pid, run.started_at, before, moment.since_boot(), self._boot])

    def ended(self, run: Run) -> None:
        """Note how a run ended."""
        self._add(["end", run.uid, run.started_at, run.progress, run.outcome])

    def forgot(self, uids: Iterable[str]) -> None:
        """Note that nobody needs these results any more."""
        self._add(["forget", *uids])

    def _add(self, entry: list[object]) -> None:
        self.pending += _encode(entry).encode() + b"\n"

    def flush(self) -> bool:
        """Hand everything noted to the kernel; what a full disk refuses is kept and tried again next time."""
        try:
            while self.pending:
                written = os.write(self._fd, self.pending)
                self.size += written
                del self.pending[:written]
        except OSError:
            return False
        return True

    def shrink(self, live: Container[str]) -> None:
        """Rewrite it with the lines of runs that are still needed, once it has grown."""
        if self.size < self._compact_at:
            return
        fresh = self._path + ".new"
        try:
            with Path(self._path).open("rb") as old, Path(fresh).open("wb") as new:
                new.writelines(line for line in old if _uid(line) in live)
            Path(fresh).replace(self._path)
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except OSError:
            self._compact_at *= 2  # a full disk: the long journal is still a right one
            return
        os.close(self._fd)
        self._fd = fd
        self.size = os.fstat(fd).st_size
        self._compact_at = max(COMPACT_BYTES, 2 * self.size)

    def clear(self) -> None:
        """Empty it: everything in it is forgotten."""
        if self.size:
            os.ftruncate(self._fd, 0)
            self.size = 0

    def close(self) -> None:
        """Write what is left and let go."""
        self.flush()
        os.close(self._fd)


def replay(path: str) -> tuple[dict[str, Run], dict[str, Started]]:
    """Read a journal back.

    Returns:
        Every run not forgotten, the finished ones with their outcome; and where the unfinished ones' leaders were.
    """
    runs: dict[str, Run] = {}
    started: dict[str, Started] = {}
    for entry in _entries(path):
        _apply(entry, runs, started)
    return runs, started


def _entries(path: str) -> Iterator[list[Any]]:
    with Path(path).open("rb") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # a line cut short by the keeper's death


def _apply(entry: list[Any], runs: dict[str, Run], started: dict[str, Started]) -> None:
    kind, uid, *rest = entry
    if kind == "forget":
        for gone in (uid, *rest):
            runs.pop(gone, None)
            started.pop(gone, None)
    elif kind == "order":
        runs[uid] = Run(uid, *rest)
    elif kind == "start" and uid in runs:
        pid, runs[uid].started_at, before, after, boot = rest
        started[uid] = Started(pid, before, after, boot)
    elif kind == "end" and uid in runs:
        run = runs[uid]
        run.started_at, run.progress, run.outcome = rest
        run.phase = FINISHED
        started.pop(uid, None)


def _uid(line: bytes) -> str:
    try:
        return str(json.loads(line)[1])
    except (ValueError, LookupError):
        return ""
