"""The file of a SQLite database: that it stays the same, and that the write-ahead log beside it is its own.

SQLite applies whatever log lies there: who replaces the file by hand, and leaves the log of the former one, gets a
mixture of both. The header of a file counts its changes, and each change of the first page in the log carries that
count on; so every process that writes changes that page once.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import Internal, Unavailable

if TYPE_CHECKING:
    from typing import BinaryIO

    from sqlalchemy import Connection

_PRIVATE = 0o600
"""Specifications carry environments, and environments carry secrets."""
_FILE_HEADER = 100
_LOG_HEADER = struct.Struct(">4I8s8s")
"""Magic, version, size of a page, number of the checkpoint; two salts; a checksum."""
_FRAME = struct.Struct(">2I8s8s")
"""Page, size after a commit; the salts again; a checksum."""
_LOGGED = b"\x02\x02"
"""At 18 in a file's header: it is written by way of a log. A backup of ours is not, nor is one of SQLite's own."""


class SqliteFile:
    """A database file that all connections of this process share.

    Only the first makes one that is missing: later it was removed, and an empty one would take in what nobody finds.
    """

    def __init__(self, path: Path, *, busy_s: float) -> None:
        """Remember where it is, and how long a connection waits for others."""
        self._path = path
        self._busy_s = busy_s
        self._first = True
        self._known: tuple[int, int] | None = None

    def connect(self) -> sqlite3.Connection:
        """Open a connection.

        Raises:
            Internal: The log beside it is another file's.
            Unavailable: It was replaced.
        """
        if self._first and not self._path.exists() and self._path.parent.is_dir():
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, _PRIVATE))
        if self._first:
            refuse_foreign_log(self._path)
        self._first = False
        self.require_same()
        existing = f"{self._path.absolute().as_uri()}?mode=rw"
        return sqlite3.connect(existing, uri=True, check_same_thread=False, timeout=self._busy_s)

    def require_same(self) -> None:
        """Refuse another file in the place of this one, into which SQLite would write what this one's log holds.

        Raises:
            Unavailable: It was replaced.
        """
        try:
            found = self._path.stat()
        except OSError:
            return  # which SQLite tells, or whoever watches over the directory
        if self._known is None:
            self._known = found.st_dev, found.st_ino
        elif self._known != (found.st_dev, found.st_ino):
            message = f"{self._path} was replaced while it is in use"
            raise Unavailable(
                message, hint="stop Holdfast, then put a backup in its place with: holdfast db restore FILE"
            )


def refuse_foreign_log(path: Path) -> None:
    """Make sure that the log beside a file is its own; looks for one, and reads on only where there is.

    Raises:
        Internal: It is another file's.
    """
    log = Path(f"{path}-wal")
    try:
        if not log.stat().st_size:
            return
        before = _header(path)
        with log.open("rb") as frames:
            first, last = _counts(frames)
        after = _header(path)
    except OSError:
        return  # which SQLite tells, or it is gone by now
    if len(after) < _FILE_HEADER or last == 0:
        return
    # Another process may go on while this reads: a count only grows, and the log is always ahead of the file.
    if after[18:20] != _LOGGED or _count(after) < first - 1 or _count(before) > last:
        message = f"{log} is not the log of {path}, which was replaced: SQLite would mix the two"
        way_out = f"to lose what the log holds: mv {log} {log}.old"
        raise Internal(message, hint=f"put a backup in its place with: holdfast db restore FILE; or, {way_out}")


def mark(connection: Connection) -> None:
    """Have the first page among what a transaction changes, and so its count in the log; it changes nothing else."""
    connection.exec_driver_sql("PRAGMA user_version = 1")


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_FILE_HEADER)


def _count(header: bytes) -> int:
    return int.from_bytes(header[24:28], "big")


def _counts(log: BinaryIO) -> tuple[int, int]:
    """Return the first and the last count of changes in a log; 0: the first page is not in it."""
    found: list[int] = []
    header = log.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size:
        return 0, 0
    _, _, size, _, salts, _ = _LOG_HEADER.unpack(header)
    while len(frame := log.read(_FRAME.size)) == _FRAME.size:
        page, _, own_salts, _ = _FRAME.unpack(frame)
        if own_salts != salts:
            break  # what an earlier log left
        if page == 1:
            found.append(_count(log.read(_FILE_HEADER)))
            log.seek(size - _FILE_HEADER, 1)
        else:
            log.seek(size, 1)
    return (found[0], found[-1]) if found else (0, 0)
