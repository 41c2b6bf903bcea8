"""Opens only directories and files that nobody but the caller and root can have written.

Anyone who can write the address of a server would be sent tokens and secrets, and anyone who can write a lock would
decide who may work. The checks are made on what was opened, because a path can lead to another file by then.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PRIVATE = 0o600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
_ANOTHER = "set HOLDFAST_DATA to a directory of your own"


@contextmanager
def trusted_folder(path: Path, *, otherwise: str = _ANOTHER) -> Iterator[int]:
    """Open a directory to find files in it; a symbolic link to one is followed.

    Args:
        path: Where it is.
        otherwise: What else to do if it is refused.

    Yields:
        Its descriptor, for ``open_trusted``.

    Raises:
        Refused: It is another user's, or others can write there.
        OSError: It cannot be opened.
    """
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _require_trusted(fd, path, otherwise)
        yield fd
    finally:
        os.close(fd)


def open_trusted(path: Path, flags: int, *, folder: int | None = None, otherwise: str = _ANOTHER) -> int:
    """Open a file; ``O_CREAT`` creates it with mode 0600 if it does not exist.

    Args:
        path: Where it is; with ``folder`` only its last part counts.
        flags: As for ``os.open``.
        folder: The descriptor of the directory it is in.
        otherwise: What else to do if it is refused.

    Raises:
        Refused: It is another user's, others can write it, or it is not a plain file.
        OSError: It cannot be opened.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(path if folder is None else path.name, flags, _PRIVATE, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _odd(path, "is a symbolic link", otherwise) from error
        raise
    try:
        _require_trusted(fd, path, otherwise)
    except BaseException:
        os.close(fd)
        raise
    return fd


def read_trusted(path: Path) -> str:
    """Read a file without checking its directory.

    Raises:
        Refused, OSError: As ``open_trusted``.
        UnicodeDecodeError: It is not text.
    """
    with os.fdopen(open_trusted(path, os.O_RDONLY)) as file:
        return file.read()


def read_private(path: Path, *, folder: int | None = None, otherwise: str = _ANOTHER) -> str:
    """Read a file that nobody else can read; root may let others read its own.

    Raises:
        Refused: As ``open_trusted``, or others can read it.
        OSError: It cannot be opened.
    """
    with os.fdopen(open_trusted(path, os.O_RDONLY, folder=folder, otherwise=otherwise), errors="replace") as file:
        status = os.fstat(file.fileno())
        if status.st_mode & _OTHERS_READ and (status.st_uid or not os.geteuid()):
            mode = stat.S_IMODE(status.st_mode)
            message = f"{path} can be read by other users (mode {mode:04o}), who could take over jobs and secrets"
            raise Refused(message, hint=f"replace its content if somebody may have read it, and: chmod go= {path}")
        return file.read()


def _require_trusted(fd: int, path: Path, otherwise: str = _ANOTHER) -> None:
    status, caller = os.fstat(fd), os.geteuid()
    is_folder = stat.S_ISDIR(status.st_mode)
    if not is_folder and not stat.S_ISREG(status.st_mode):
        raise _odd(path, "is not a plain file", otherwise)
    if caller and status.st_uid not in {caller, 0}:  # root may use anyone's
        message = f"{path} belongs to another user, {_named(status.st_uid)}, who could take over jobs and secrets"
        raise Refused(message, hint=f"run this as that user, or {otherwise}")
    if status.st_mode & _OTHERS_WRITE:
        mode = stat.S_IMODE(status.st_mode)
        message = f"{path} can be written by other users (mode {mode:04o}), who could take over jobs and secrets"
        raise Refused(message, hint=f"if nobody else wrote there: chmod go-w {path}; or {otherwise}")


def _odd(path: Path, what: str, otherwise: str) -> Refused:
    return Refused(f"{path} {what}", hint=f"remove it if no server is running, or {otherwise}")


def _named(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"number {uid}"
