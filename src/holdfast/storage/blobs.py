"""Stores what jobs bring along in files: a folder per user, a file per blob, named by its hash."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from hashlib import sha256
from secrets import token_hex
from typing import TYPE_CHECKING

from holdfast.errors import Refused, Unavailable
from holdfast.ports.blobs import MOST_BLOBS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from holdfast.ports.secrets import SecretUser

_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600
_UNFINISHED = ".new"
_FOLDER_LETTERS = 32
_TURNS = 16
"""How many blobs can be written at a time."""


class BlobFiles:
    """Blobs in the files of a folder, which is created on first use."""

    def __init__(self, folder: Path, *, most: int = MOST_BLOBS) -> None:
        self._folder = folder
        self._most = most
        self._lock = threading.Lock()
        self._turns = [threading.Lock() for _ in range(_TURNS)]
        self._size: int | None = None
        """The size of all blobs, once it has been measured."""

    def keep(self, data: bytes, owner: SecretUser) -> str:
        """Store a blob under its hash, whole or not at all; it is on the disk when this returns.

        Raises:
            Refused: The store is full.
            Unavailable: The file cannot be written.
        """
        name = sha256(data).hexdigest()
        # Several callers that send the same blob at once write it, and need room for it, once.
        with self._turns[int(name[:2], 16) % _TURNS]:
            if name not in self.refresh([name], owner):
                self._take_room(len(data))
                self._write(data, self.path(name, owner))
        return name

    def _write(self, data: bytes, path: Path) -> None:
        fresh = path.with_name(f"{path.name}.{token_hex(6)}{_UNFINISHED}")
        try:
            if not path.parent.is_dir():
                path.parent.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
                _settle(path.parent.parent)
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE)
            with os.fdopen(fd, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(fd)
            fresh.rename(path)
            _settle(path.parent)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            with self._lock:
                self._size = None
            msg = f"cannot keep what was sent in {path.parent}: {error.strerror}"
            raise Unavailable(msg) from error

    def _take_room(self, size: int) -> None:
        with self._lock:
            if self._size is None:
                self._size = sum(map(_size_of, self._files()))
            if self._size + size > self._most:
                msg = f"there is no room: what was sent along with jobs already takes {self._size} bytes"
                hint = f"at most {self._most} are kept; delete jobs that have ended, whose inputs go within the hour"
                raise Refused(msg, hint=hint)
            self._size += size

    def refresh(self, names: Iterable[str], owner: SecretUser) -> frozenset[str]:
        """Return which of these blobs the user has, and mark them as just used."""
        stored = set()
        for name in names:
            with suppress(OSError):
                os.utime(self.path(name, owner))
                stored.add(name)
        return frozenset(stored)

    def path(self, name: str, owner: SecretUser) -> Path:
        """Return the file of a blob, whether or not it exists."""
        folder = sha256(f"{owner.name}\0{owner.uid}".encode()).hexdigest()[:_FOLDER_LETTERS]
        return self._folder / folder / name

    def kept(self, *, before: float) -> Collection[str]:
        """List the blobs not used since ``before``, with files left by writers that were killed."""
        return sorted({file.name for file in self._files() if _is_older(file, before)})

    def discard(self, names: Collection[str], *, before: float) -> None:
        """Delete the blobs not used since ``before``.

        Raises:
            Unavailable: A file cannot be deleted.
        """
        discarded = frozenset(names)
        try:
            for file in self._files():
                if file.name in discarded and _is_older(file, before):
                    file.unlink(missing_ok=True)
        except OSError as error:
            msg = f"cannot delete what was sent along with jobs in {self._folder}: {error.strerror}"
            raise Unavailable(msg) from error
        finally:
            with self._lock:
                self._size = None

    def _files(self) -> Iterator[Path]:
        with suppress(FileNotFoundError):
            for person in self._folder.iterdir():
                yield from person.iterdir()


def _is_older(path: Path, than: float) -> bool:
    try:
        return path.stat().st_mtime < than
    except OSError:
        return False


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # The file was deleted or replaced meanwhile.


def _settle(folder: Path) -> None:
    """Flush a folder's new entry to the disk."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
