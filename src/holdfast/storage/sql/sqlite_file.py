"""Guards the file of a SQLite database: it must stay the same file, with its own write-ahead log.

SQLite applies any log that lies beside the file. If somebody replaces the file and leaves the old log, the result is a
mixture of both. A file's header counts its changes, and each change of the first page in the log carries that count; so
every process that writes changes that page once.

SQLite holds the file by POSIX locks, which belong to the process: closing any descriptor of the file drops all of the
process's locks on it. Another process that opens the database then believes to be the last one, and removes the log
that this process goes on writing to. So nothing but SQLite opens the file in a process that has connections to it, and
only ``connect`` opens it at all.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from holdfast.errors import Internal, Unavailable

if TYPE_CHECKING:
    from typing import BinaryIO

    from sqlalchemy import Connection

BESIDE = ("-wal", "-shm")
"""The files that SQLite keeps beside a database in use."""
_PRIVATE = 0o600
"""Private, because specifications contain environments, which contain secrets."""
_FILE_HEADER = 100
_LOG_HEADER = struct.Struct(">4I8s8s")
"""Magic, version, page size, checkpoint number; two salts; a checksum."""
_FRAME = struct.Struct(">2I8s8s")
"""Page, size after a commit; the salts again; a checksum."""
_LOGGED = b"\x02\x02"
"""At offset 18 of a file's header: the file uses a log. Backups, by Holdfast or SQLite, do not."""

_Stamp: TypeAlias = tuple[int, int]
"""Device and inode of a file."""


class _FileConnection(sqlite3.Connection):
    """A connection that knows which file it has open."""

    stamp: _Stamp | None = None

    def close(self) -> None:
        super().close()
        self.stamp = None


_connecting = threading.Lock()
_connections: weakref.WeakSet[_FileConnection] = weakref.WeakSet()
"""The open connections of this process."""


def connect(path: Path, *, busy_s: float, create: bool = False) -> sqlite3.Connection:
    """Open a connection; the first one of this process makes sure that the log belongs to the file.

    Args:
        path: The file.
        busy_s: Seconds that the connection waits for others.
        create: Whether to create a missing file.

    Raises:
        Internal: The log belongs to another file.
    """
    with _connecting:
        if create and not path.exists() and path.parent.is_dir():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, _PRIVATE))
        if not _is_open(path):
            _refuse_foreign_log(path)
        existing = f"{path.absolute().as_uri()}?mode=rw"  # A file in write-ahead mode cannot be opened read-only.
        connection = sqlite3.connect(
            existing, uri=True, check_same_thread=False, timeout=busy_s, factory=_FileConnection
        )
        connection.stamp = _stamp(path)
        _connections.add(connection)
        return connection


class SqliteFile:
    """A database file that the connections of a pool share.

    Only the first connection creates a missing file. Later, a missing file was removed, and a new empty one would
    accept work that nobody finds.
    """

    def __init__(self, path: Path, *, busy_s: float) -> None:
        """Remember the file, and the seconds that a connection waits for others."""
        self._path = Path(os.path.realpath(path))
        self._busy_s = busy_s
        self._stamps: dict[Path, _Stamp | None] = {}

    def connect(self) -> sqlite3.Connection:
        """Open a connection.

        Raises:
            Internal: The log belongs to another file.
            Unavailable: The file or its log was replaced.
        """
        self.require_same()
        connection = connect(self._path, busy_s=self._busy_s, create=not self._stamps)
        self._stamps.setdefault(self._path, _stamp(self._path))
        return connection

    def know_log(self, connection: Connection) -> None:
        """Remember the present log; called in a transaction, which keeps it."""
        if len(self._stamps) > 1 or connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() != "wal":
            return
        beside = [Path(f"{self._path}{name}") for name in BESIDE]
        self._stamps = {**self._stamps, **{path: _stamp(path) for path in beside}}

    def require_same(self) -> None:
        """Make sure that the file and its log are still those of this process's connections.

        SQLite notices neither: it goes on writing to a file that nobody finds, or the log of one file into another.

        Raises:
            Unavailable: The file or its log was removed or replaced.
        """
        changed = next((path for path, stamp in self._stamps.items() if stamp is None or _stamp(path) != stamp), None)
        if changed is None:
            return
        with _connecting:
            is_open = _is_open(self._path)
        if changed != self._path and not is_open:
            self._stamps = {self._path: self._stamps[self._path]}  # The last connection removed the log when it closed.
            return
        message = f"{changed} was removed or replaced while it is in use"
        raise Unavailable(message, hint=_RESTORE if changed == self._path else _STOP)


_RESTORE = "stop Holdfast, then put a backup in its place with: holdfast db restore FILE"
_STOP = "stop Holdfast by holdfast down, which saves what it wrote, and start it again"


def _stamp(path: Path) -> _Stamp | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _is_open(path: Path) -> bool:
    """Whether this process has connections to the file. Call it with ``_connecting`` held."""
    stamp = _stamp(path)
    return stamp is not None and any(connection.stamp == stamp for connection in _connections)


def _refuse_foreign_log(path: Path) -> None:
    """Make sure that the log belongs to the file; reads further only if there is a log.

    Raises:
        Internal: It belongs to another file.
    """
    log = Path(f"{os.path.realpath(path)}-wal")
    try:
        if not log.stat().st_size:
            return
        before = _header(path)
        with log.open("rb") as frames:
            first, last = _counts(frames)
        after = _header(path)
    except OSError:
        return  # SQLite reports this itself, or the file has gone.
    if len(after) < _FILE_HEADER or last == 0:
        return
    # Another process may write meanwhile: the count only grows, and the log is always ahead of the file.
    if after[18:20] != _LOGGED or _count(after) < first - 1 or _count(before) > last:
        message = f"{log} is not the log of {path}, which was replaced: SQLite would mix the two"
        way_out = f"to lose what the log holds: mv {log} {log}.old"
        raise Internal(message, hint=f"put a backup in its place with: holdfast db restore FILE; or, {way_out}")


def mark(connection: Connection) -> None:
    """Include the first page in a transaction's changes, and with it the count in the log; changes nothing else."""
    connection.exec_driver_sql("PRAGMA user_version = 1")


def _header(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_FILE_HEADER)


def _count(header: bytes) -> int:
    return int.from_bytes(header[24:28], "big")


def _counts(log: BinaryIO) -> tuple[int, int]:
    """Return the first and the last change count in a log; 0 if the first page is not in it."""
    counts: list[int] = []
    header = log.read(_LOG_HEADER.size)
    if len(header) < _LOG_HEADER.size:
        return 0, 0
    _, _, size, _, salts, _ = _LOG_HEADER.unpack(header)
    while len(frame := log.read(_FRAME.size)) == _FRAME.size:
        page, _, own_salts, _ = _FRAME.unpack(frame)
        if own_salts != salts:
            break  # The rest was left by an earlier log.
        if page == 1:
            counts.append(_count(log.read(_FILE_HEADER)))
            log.seek(size - _FILE_HEADER, 1)
        else:
            log.seek(size, 1)
    return (counts[0], counts[-1]) if counts else (0, 0)
