"""Which process owns a data directory and its database: only that one may write them.

An owner locks two files of the directory, so that deleting one lets nobody in, and one beside a SQLite file, which
directories may share. Locks end with their process. A copy of a directory differs from the original in the path and
inode that its identity records.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, read_trusted, trusted_folder
from holdfast.domain.record import Struct, asdict, evolve
from holdfast.engines.process.client import is_in_use
from holdfast.errors import Conflict, DataDirLocked, Unavailable
from holdfast.storage.sql.sqlite_file import BESIDE

if TYPE_CHECKING:
    from holdfast.app.data.datadir import DataDir

_LOCK = "lock"
_IDENTITY = "identity"
_ELSEWHERE = "stop that process, or set HOLDFAST_DATA to another directory"


class Identity(Struct, frozen=True):
    """Identifies a directory."""

    word: str
    """Unique to the directory and its copies."""
    path: str = ""
    """Where it was when an owner last took it."""
    device: int = 0
    inode: int = 0

    def is_at(self, path: Path) -> Identity:
        """Return the identity with the place where the directory is now."""
        status = path.stat()
        return evolve(self, path=str(path.resolve()), device=status.st_dev, inode=status.st_ino)

    def is_same_place(self, other: Identity) -> bool:
        """Whether both are one directory, which may have been renamed or restored in place."""
        return self.path == other.path or (self.device, self.inode) == (other.device, other.inode)


def _read_identity(text: str) -> Identity | None:
    """Parse the content of ``identity``."""
    with suppress(ValueError, TypeError):
        return Identity(**json.loads(text))
    return None


def word_of(directory: DataDir) -> str:
    """Return the word of a data directory, whoever owns it; empty if it never had an owner."""
    with suppress(OSError):
        identity = _read_identity(read_trusted(directory.path / _IDENTITY))
        return identity.word if identity is not None else ""
    return ""


class Ownership:
    """The ownership of a data directory and its database file by this process."""

    def __init__(self, directory: DataDir, database: Path | None, purpose: str) -> None:
        """Take both or neither, without waiting.

        Args:
            directory: The data directory.
            database: Its SQLite file, there or elsewhere; ``None`` if a database server has the data.
            purpose: What this process does, for the message to the next one.

        Raises:
            DataDirLocked: Another process owns the directory or the file; the message says which.
            Conflict: The directory is a copy of one that is in use.
            Refused: The directory or a lock is another user's, or others can write it.
            Unavailable: It cannot be read or written.
        """
        holder = f"holdfast {purpose}, process {os.getpid()}"
        self._path = directory.path
        self._database = database
        self._mark: PrivateLock | None = None
        self._locks: list[PrivateLock] = []
        self._watched: dict[Path, tuple[int, int]] = {}
        with ExitStack() as stack:
            stack.callback(self.release)
            lock, record = self._take_both()
            self.word = self._identify(record, directory)
            if database is not None:
                self._mark = self._take(_mark_of(database), database, note=_mark_of(database))
                self._note({"holder": holder})
            with suppress(OSError):
                lock.write(holder)
            self._watch(self._path)
            stack.pop_all()

    def _take_both(self) -> tuple[PrivateLock, PrivateLock]:
        note = self._path / _LOCK
        try:
            with trusted_folder(self._path) as folder:
                lock = self._take(note, self._path, note=note, folder=folder)
                return lock, self._take(self._path / _IDENTITY, self._path, note=note, folder=folder)
        except OSError as error:
            raise _unusable(self._path, error) from error

    def _take(self, path: Path, what: Path, *, note: Path, folder: int | None = None) -> PrivateLock:
        try:
            lock = PrivateLock(path, folder=folder)
        except BlockingIOError:
            message = f"{what} is held by {_holder(note) or 'another process'}"
            raise DataDirLocked(message, hint=_ELSEWHERE) from None
        except OSError as error:
            raise _unusable(path, error) from error
        self._locks.append(lock)
        return lock

    def _identify(self, record: PrivateLock, directory: DataDir) -> str:
        """Return the directory's word; the copy of an idle or vanished directory gets a new one.

        Raises:
            Conflict: The original is in use.
        """
        try:
            identity = _read_identity(record.read())
            here = Identity(identity.word if identity else secrets.token_hex(4)).is_at(self._path)
            if identity is not None and not identity.is_same_place(here):
                _require_idle(identity, directory)
                here = evolve(here, word=secrets.token_hex(4))
            if here != identity:
                record.write(json.dumps(asdict(here)))
        except OSError as error:
            raise _unusable(self._path / _IDENTITY, error) from error
        return here.word

    @property
    def has_database(self) -> bool:
        """Whether the database is a file, held with the directory."""
        return self._database is not None

    @property
    def epoch(self) -> int:
        """The last epoch in which an owner led the database of the file; 0 if none did."""
        stored_epoch = _marked(_mark_of(self._database)).get("epoch", 0) if self._database else 0
        return stored_epoch if isinstance(stored_epoch, int) else 0

    def led(self, epoch: int) -> None:
        """Note beside the file in which epoch this process leads, and watch the database's files from now on.

        SQLite goes on writing into a log that was removed, which nobody else can find.
        """
        if self._database is not None:
            self._note({"epoch": epoch})
            for name in ("", *BESIDE):
                self._watch(Path(f"{self._database}{name}"))

    def forget_database(self) -> None:
        """Note that another database replaces the file."""
        if self._mark is not None:
            with suppress(OSError):
                self._mark.write("{}")

    def trouble(self) -> str | None:
        """Check the files now, and return what happened to them, or ``None``."""
        for path, stamp in self._watched.items():
            if _stamp(path) != stamp:
                return f"{path} was removed or replaced while it is in use"
        if not all(lock.is_in_place() for lock in self._locks):
            return f"a lock of {self._path} was removed or replaced while it is in use"
        with suppress(OSError):
            if os.statvfs(self._path).f_flag & os.ST_RDONLY:
                return f"{self._path} is on a file system that is read-only now"
        return None

    def release(self) -> None:
        """Give everything up; may be repeated."""
        for lock in reversed(self._locks):
            lock.release()
        self._locks.clear()

    def _note(self, more: dict[str, object]) -> None:
        """Add to the note beside the database; a full disk must not keep its owner from reading it."""
        if self._mark is not None:
            with suppress(OSError):
                self._mark.write(json.dumps({**_parsed(self._mark.read()), **more}))

    def _watch(self, path: Path) -> None:
        stamp = _stamp(path)
        if stamp is not None:
            self._watched.setdefault(path, stamp)


def require_database(file: Path) -> None:
    """Check that a SQLite file exists, if an earlier owner noted that there was a database.

    Raises:
        Conflict: It is gone or empty.
        Refused: The note beside it is another user's, or others can write it.
    """
    if _marked(_mark_of(file)).get("epoch") and not (file.exists() and file.stat().st_size):
        message = f"{file} is {'empty' if file.exists() else 'gone'}, but there was a database with jobs"
        raise Conflict(message, hint=_restore_or_begin_anew(file))


def _restore_or_begin_anew(file: Path) -> str:
    return f"restore a backup: holdfast db restore FILE; or start over without its jobs: rm {_mark_of(file)}"


def refuse_copy(directory: DataDir) -> None:
    """Check that a directory is not a copy of one that is in use, without changing anything.

    Raises:
        Conflict: It is a copy: requests written there would not reach the jobs.
        Refused: Its identity is another user's, or others can write it.
    """
    with suppress(OSError):
        identity = _read_identity(read_trusted(directory.path / _IDENTITY))
        if identity is not None and not identity.is_same_place(identity.is_at(directory.path)):
            _require_idle(identity, directory)


def _require_idle(original: Identity, directory: DataDir) -> None:
    """Check the original, whoever owns it: its content can only cause a refusal.

    Raises:
        Conflict: It is in use.
    """
    place = Path(original.path)
    with suppress(OSError):
        identity = _read_identity(read_at_once(place / _IDENTITY))
        if identity is None or identity.word != original.word:
            return
        if is_held(place / _LOCK) or is_held(place / _IDENTITY) or is_in_use(place / directory.runs.name):
            message = f"{directory.path} is a copy of {place}, which is in use: both would run the same jobs"
            hint = f"use {place}; or stop its server and programs first, which makes the copy independent"
            raise Conflict(message, hint=hint)


def _mark_of(database: Path) -> Path:
    return database.with_name(f"{database.name}.lock")


def _marked(path: Path) -> dict[str, object]:
    return _parsed(_text_of(path))


def _parsed(text: str) -> dict[str, object]:
    with suppress(ValueError):
        parsed = json.loads(text)
        return parsed if isinstance(parsed, dict) else {}
    return {}


def _holder(path: Path) -> str:
    """Return the holder that a lock file names."""
    text = _text_of(path).strip()
    return str(_parsed(text).get("holder", "")) if text.startswith("{") else text


def _text_of(path: Path) -> str:
    with suppress(OSError, UnicodeDecodeError):
        return read_trusted(path)
    return ""


def _stamp(path: Path) -> tuple[int, int] | None:
    with suppress(OSError):
        status = path.stat()
        return status.st_dev, status.st_ino
    return None


def _unusable(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"cannot use {path}: {error.strerror}", hint="is the disk full, read-only, or another user's?")


class PrivateLock:
    """A lock on a file that no other user can open, because whoever can open it can block this process."""

    def __init__(self, path: Path, *, folder: int | None = None) -> None:
        """Take the lock without waiting; ``folder`` is the descriptor of its directory, if that is open.

        Raises:
            BlockingIOError: Another process has it.
            Refused: It is another user's, or others can write it.
            OSError: The file cannot be opened.
        """
        self._path = path
        fd = open_trusted(path, os.O_RDWR | os.O_CREAT, folder=folder)
        self._file = os.fdopen(fd, "r+")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self.is_in_place():
                raise BlockingIOError  # noqa: TRY301 - replaced in between, so another process has it
        except BaseException:
            self._file.close()
            raise

    def is_in_place(self) -> bool:
        """Whether the path still leads to this file."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        return False

    def read(self) -> str:
        """Return its content."""
        self._file.seek(0)
        return self._file.read()

    def write(self, text: str) -> None:
        """Replace its content.

        Raises:
            OSError: The disk is full, for example.
        """
        self._file.seek(0)
        self._file.truncate()
        self._file.write(text)
        self._file.flush()

    def release(self) -> None:
        """Release the lock; may be repeated."""
        with suppress(OSError):  # of an earlier write
            self._file.close()


def is_held(path: Path) -> bool:
    """Whether a process holds the lock of a file, which may be another user's if it is readable."""
    try:
        with _opened_at_once(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_at_once(path: Path) -> str:
    """Read a file of any user without blocking, as it may be a pipe.

    Raises:
        OSError: It cannot be read.
    """
    with _opened_at_once(path) as file:
        return file.read()


def _opened_at_once(path: Path) -> IO[str]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace")
