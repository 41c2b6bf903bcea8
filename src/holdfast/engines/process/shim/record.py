"""A supervisor's record of the one run it has, in a file that outlives it.

The file's room is taken in advance, so that a full disk cannot keep an end from being written. Lines are not synced:
they survive every process's death, and a machine's death takes the programs with it.
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
"""What of an order is needed to go on with a run that another supervisor started."""


def boot_id() -> str:
    """Name this boot of the machine; empty where there is no such name."""
    try:
        with open(_BOOT_ID) as file:  # noqa: PTH123 - beside the calls of os
            return file.read().strip()
    except OSError:
        return ""


def place_of(directory: str) -> str:
    """Name a directory as no copy of it is named; raises OSError."""
    facts = os.stat(directory)  # noqa: PTH116 - beside the calls around it
    return f"{facts.st_dev}:{facts.st_ino}"


class Record:
    """The file, locked for as long as its supervisor lives."""

    def __init__(self, path: str) -> None:
        """Make the file, take its room and lock it; raises OSError."""
        self.path = path
        self._unwritten = bytearray()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._at = 0
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._fd, 0, ROOM_BYTES)

    def begin(self, program: SupervisedRun, place: str, boot: str) -> None:
        """Forget the run before and note that this one is about to be started; raises OSError."""
        order = {name: program.order[name] for name in _KEPT if program.order.get(name) is not None}
        self._at = 0
        self._unwritten.clear()
        self._add({"order": order, "place": place, "boot": boot})

    def started(self, program: SupervisedRun, before: float, after: float) -> None:
        """Note where its program is, and between which moments since boot it was born; raises OSError."""
        self._add({"pid": program.pid, "started_at": program.started_at, "before": before, "after": after})

    def exited(self, program: SupervisedRun) -> None:
        """Note how its program ended, before anybody else can no longer learn it; raises OSError."""
        end = program.exit
        if end is not None:
            self._add({"exit": [end.code, end.signal, end.max_rss], "ended_by": program.stop_reason})

    def ended(self, program: SupervisedRun) -> None:
        """Note the whole outcome; where a full disk has no room for it, without its texts; raises OSError."""
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
        """Whether it lacks something that the disk refused."""
        return bool(self._unwritten)

    def write(self) -> None:
        """Write what it lacks; raises OSError, and can then be called again."""
        lines, written = self._unwritten + b"\0", 0  # the next line takes the place of the zero
        while self._unwritten and written < len(lines):
            written += os.pwrite(self._fd, lines[written:], self._at + written)
        self._at += len(self._unwritten)
        self._unwritten.clear()

    def remove(self) -> None:
        """Remove the file, where the disk lets us, and close it."""
        with suppress(OSError):  # the next shim tries again
            os.unlink(self.path)  # noqa: PTH108 - beside the calls around it
        self.close()

    def close(self) -> None:
        """Close the file, and so give up its lock."""
        os.close(self._fd)


class Kept:
    """What a record says of the last run of its supervisor."""

    __slots__ = ("boot", "end", "exit", "order", "place", "progress", "start")

    def __init__(self, entries: list[Message]) -> None:
        """Put the lines together; the first one is always there."""
        values: dict[str, Any] = {}
        for entry in entries:
            values.update(entry)
        self.order: Message = values["order"]
        self.place: str = values.get("place", "")
        self.boot: str = values.get("boot", "")
        self.start: Message | None = values if "pid" in values else None
        """``pid``, ``started_at``, ``before`` and ``after``, once its program runs."""
        self.exit: Message | None = values if "exit" in values else None
        """``exit`` and ``ended_by``, once its program has ended."""
        self.end: Message | None = values.get("outcome")
        self.progress: str = values.get("progress", "")

    @property
    def uid(self) -> str:
        """The run's uid."""
        return str(self.order["uid"])


def read(path: str) -> Kept | None:
    """Read a record; ``None`` where there is none, or no run in it. A line cut short is left out, with all after it.

    Raises:
        OSError: It cannot be read, so nobody knows whether there is a run in it.
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
    """Whether the supervisor of a record lives, or the holder of any such file; touches nothing."""
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
