"""The shim's journal, which survives it: one line per order, end and forgetting.

The shim may be killed at any instruction, and its successor must know every run that may exist. So an order is written
before its program is started. A run with an order and no end may have begun, may still run, or may have ended unseen;
its supervisor's record tells which, and if there is none the program is looked for by its mark (``recovery``). A run
without an order was never started and can be started now. An end stays in the supervisor's record until it is written
here, and here until the controller has it on disk, so no result is lost.

Lines are appended without syncing: they survive the shim's death, and a machine's death takes the programs with it. The
next shim ends a line that was cut short, and ignores it.
"""

from __future__ import annotations

import errno
import json
import os
from contextlib import suppress
from pathlib import Path

from .records import FINISHED, ShimRun

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator
    from typing import Any

COMPACT_BYTES = 4 << 20
_encode = json.JSONEncoder(separators=(",", ":")).encode


class Journal:
    """An append-only file of JSON lines, compacted when most of it is forgotten."""

    def __init__(self, path: str) -> None:
        """Open it for appending; raises OSError."""
        self._path = path
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.pending = bytearray()
        """Lines that a full or read-only disk refused."""
        self.refusal = 0
        """The system's error number of the last refused write, 0 if the last write succeeded."""
        self.size = os.fstat(self._fd).st_size
        if self.size and os.pread(self._fd, 1, self.size - 1) != b"\n":
            self.pending += b"\n"  # A line cut short must not swallow the next one.
        self._compact_at = COMPACT_BYTES

    def ordered(self, run: ShimRun) -> None:
        """Record that a run is about to be started."""
        self._add(["order", run.uid, run.node, run.directory])

    def ended(self, run: ShimRun) -> None:
        """Record how a run ended."""
        self._add(["end", run.uid, run.started_at, run.progress, run.outcome])

    def forgot(self, uids: Iterable[str]) -> None:
        """Record that these results are no longer needed."""
        self._add(["forget", *uids])

    def _add(self, entry: list[object]) -> None:
        self.pending += _encode(entry).encode() + b"\n"

    def flush(self) -> bool:
        """Write everything recorded to the file; lines that the disk refuses are kept for the next call.

        Returns:
            Whether nothing is left.
        """
        try:
            while self.pending:
                written = os.write(self._fd, self.pending)
                self.size += written
                del self.pending[:written]
        except OSError as error:
            self.refusal = error.errno or errno.EIO
            return False
        self.refusal = 0
        return True

    def shrink(self, live: Container[str]) -> None:
        """Rewrite it with the lines of runs still needed, once it has grown."""
        if self.size < self._compact_at or self.pending:
            return
        fresh = self._path + ".new"
        try:
            with Path(self._path).open("rb") as old, Path(fresh).open("wb") as new:
                new.writelines(line for line in old if _uid(line) in live)
            fd = os.open(fresh, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            try:
                Path(fresh).replace(self._path)
            except OSError:
                os.close(fd)
                raise
        except OSError:
            self._compact_at *= 2  # The disk is full; the long journal is still correct.
            return
        os.close(self._fd)
        self._fd = fd
        self.size = os.fstat(fd).st_size
        self._compact_at = max(COMPACT_BYTES, 2 * self.size)

    def clear(self) -> None:
        """Empty it: everything in it is forgotten."""
        if self.size or self.pending:
            self.pending.clear()
            with suppress(OSError):  # This can be done later: nobody needs its content.
                os.ftruncate(self._fd, 0)
                self.size = 0

    def close(self) -> None:
        """Write the rest and close it."""
        self.flush()
        os.close(self._fd)


def replay(path: str) -> dict[str, ShimRun]:
    """Read a journal: every run not forgotten, ended ones with their outcome."""
    runs: dict[str, ShimRun] = {}
    for entry in _entries(path):
        _apply(entry, runs)
    return runs


def _entries(path: str) -> Iterator[list[Any]]:
    if not Path(path).exists():
        return
    with Path(path).open("rb") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # The shim's death cut this line short.


def _apply(entry: list[Any], runs: dict[str, ShimRun]) -> None:
    kind, uid, *rest = entry
    if kind == "forget":
        for gone in (uid, *rest):
            runs.pop(gone, None)
    elif kind == "order":
        runs[uid] = ShimRun(uid, *rest)
    elif kind == "end" and uid in runs:
        run = runs[uid]
        run.started_at, run.progress, run.outcome = rest
        run.phase = FINISHED


def _uid(line: bytes) -> str:
    try:
        return str(json.loads(line)[1])
    except (ValueError, LookupError):
        return ""
