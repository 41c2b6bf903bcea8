"""A supervisor's record of its one run, in a file that outlives it.

The file's space is allocated in advance, so that a full disk cannot keep an end from being written. Lines are not
synced: they survive every process's death, and a machine's death takes the programs with it.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from .records import Message, SupervisedRun

SUFFIX = ".record"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
ROOM_BYTES = 16 << 10
_MOST_BYTES = 1 << 20
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
_KEPT = (
    *("uid", "node", "directory", "cwd", "memory", "deadline_s", "grace_s", "gang", "ports", "separate"),
    *("stall", "gpus", "py_spy", "stack_signal", "warning", "group", "account", "prepare", "clear"),
)
"""The parts of an order that another supervisor needs to continue the run."""


def boot_id() -> str:
    """Return the id of this boot; empty if there is none."""
    try:
        with open(_BOOT_ID) as file:  # noqa: PTH123 - beside the calls of os
            return file.read().strip()
    except OSError:
        return ""


def place_of(directory: str) -> str:
    """Return a name of a directory that no copy of it has; raises OSError."""
    facts = os.stat(directory)  # noqa: PTH116 - beside the calls around it
    return f"{facts.st_dev}:{facts.st_ino}"


class Record:
    """The file, locked for as long as its supervisor lives."""

    def __init__(self, path: str) -> None:
        """Create the file, allocate its space and lock it; raises OSError."""
        self.path = path
        self._unwritten = bytearray()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._at = 0
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, ROOM_BYTES)

    def begin(self, program: SupervisedRun, place: str, boot: str) -> None:
        """Forget the last run, and record that this one is about to be started; raises OSError."""
        order = {name: program.order[name] for name in _KEPT if program.order.get(name) is not None}
        self._at = 0
        self._unwritten.clear()
        self._add({"order": order, "place": place, "boot": boot})

    def started(self, program: SupervisedRun, before: float, after: float) -> None:
        """Record the program's process, and the moments since boot between which it was born; raises OSError."""
        self._add({"pid": program.pid, "started_at": program.started_at, "before": before, "after": after})

    def exited(self, program: SupervisedRun) -> None:
        """Record how the program ended, before anybody becomes unable to learn it; raises OSError."""
        end = program.exit
        if end is not None:
            self._add({"exit": [end.code, end.signal, end.max_rss], "ended_by": program.stop_reason})

    def ended(self, program: SupervisedRun) -> None:
        """Record the whole outcome; without its texts if a full disk has no room for them; raises OSError."""
        outcome, before = program.outcome or {}, len(self._unwritten)
        try:
            self._add({"outcome": outcome, "progress": program.progress})
        except OSError:
            del self._unwritten[before:]
            self._add({"outcome": {**outcome, "message": "", "log": "", "log_tail": []}, "progress": ""})

    def _add(self, entry: Message) -> None:
        self._unwritten += _encode(entry).encode("utf-8", "backslashreplace") + b"\n"
        self.write()

    @property
    def lags(self) -> bool:
        """Whether it lacks lines that the disk refused."""
        return bool(self._unwritten)

    def write(self) -> None:
        """Write the lines it lacks; raises OSError, and can then be called again."""
        lines, written = self._unwritten + b"\0", 0  # The next line replaces the zero.
        while self._unwritten and written < len(lines):
            written += os.pwrite(self._fd, lines[written:], self._at + written)
        self._at += len(self._unwritten)
        self._unwritten.clear()

    def remove(self) -> None:
        """Remove the file, if the disk permits, and close it."""
        with suppress(OSError):  # The next shim tries again.
            os.unlink(self.path)  # noqa: PTH108 - beside the calls around it
        self.close()

    def close(self) -> None:
        """Close the file, which releases its lock."""
        os.close(self._fd)


class Kept:
    """The content of a record: the last run of its supervisor."""

    __slots__ = ("boot", "end", "exit", "order", "place", "progress", "start")

    def __init__(self, entries: list[Message]) -> None:
        """Merge the lines; the first one always exists."""
        values: dict[str, Any] = {}
        for entry in entries:
            values.update(entry)
        self.order: Message = values["order"]
        self.place: str = values.get("place", "")
        self.boot: str = values.get("boot", "")
        self.start: Message | None = values if "pid" in values else None
        """``pid``, ``started_at``, ``before`` and ``after``, once the program runs."""
        self.exit: Message | None = values if "exit" in values else None
        """``exit`` and ``ended_by``, once the program has ended."""
        self.end: Message | None = values.get("outcome")
        self.progress: str = values.get("progress", "")

    @property
    def uid(self) -> str:
        """The run's uid."""
        return str(self.order["uid"])


def read(path: str) -> Kept | None:
    """Read a record; ``None`` if there is none or it has no run. It ends before a line that was cut short.

    Raises:
        OSError: It cannot be read, so nobody knows whether it contains a run.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        text = os.pread(fd, _MOST_BYTES, 0)
    finally:
        os.close(fd)
    entries = []
    for line in text.partition(b"\0")[0].split(b"\n")[:-1]:
        try:
            entries.append(json.loads(line))
        except ValueError:
            break
    return Kept(entries) if entries and "order" in entries[0] else None


def is_held(path: str | Path) -> bool:
    """Whether the supervisor of a record, or the holder of any such file, lives; touches nothing."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
