"""A file that one process holds for as long as it lives."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from holdfast.app.data.trust import open_trusted

if TYPE_CHECKING:
    from pathlib import Path


class PrivateLock:
    """A locked file that nobody else of the machine can open: whoever can open it can keep us out."""

    def __init__(self, path: Path, *, folder: int | None = None) -> None:
        """Take the lock without waiting; ``folder`` is the descriptor of its directory, where that was looked at.

        Raises:
            BlockingIOError: Somebody else has it.
            Refused: It is another user's, or others can write it.
            OSError: The file cannot be had.
        """
        self._path = path
        fd = open_trusted(path, os.O_RDWR | os.O_CREAT, folder=folder)
        self._file = os.fdopen(fd, "r+")
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not self.is_in_place():
                raise BlockingIOError  # noqa: TRY301 - replaced in between, so somebody is at it
        except BaseException:
            self._file.close()
            raise

    def is_in_place(self) -> bool:
        """Whether who opens the path finds this file."""
        with suppress(OSError):
            return os.path.samestat(os.fstat(self._file.fileno()), self._path.stat())
        return False

    def read(self) -> str:
        """Return what is written in it."""
        self._file.seek(0)
        return self._file.read()

    def write(self, text: str) -> None:
        """Replace what is written in it.

        Raises:
            OSError: The disk is full, for example.
        """
        self._file.seek(0)
        self._file.truncate()
        self._file.write(text)
        self._file.flush()

    def release(self) -> None:
        """Let go; double release is fine."""
        with suppress(OSError):  # what could not be written before
            self._file.close()


def is_held(path: Path) -> bool:
    """Tell whether a process holds a file; also of another owner of it, if we may read it."""
    try:
        with _opened_at_once(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def read_at_once(path: Path) -> str:
    """Read what is written in a file of whoever, which may be a pipe by now.

    Raises:
        OSError: It cannot be read.
    """
    with _opened_at_once(path) as file:
        return file.read()


def _opened_at_once(path: Path) -> IO[str]:
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace")
