"""Deletes a folder whatever programs left in it, also while somebody of their account still puts things there."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from itertools import islice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_OURS = 0o700
_AT_ONCE = 10_000
"""Entries of a folder in memory."""
_TOKEN_BYTES = 16


def remove(path: str) -> None:
    """Delete a folder with all that is in it, if it is there.

    What is in one of its folders is moved up before that is deleted, so that any depth needs three descriptors. Each
    is made ours before it is emptied: then nobody can replace what is in it by a link, or put more into it.

    Raises:
        OSError: Something cannot be deleted, such as where a file system is mounted.
    """
    with suppress(FileNotFoundError), _taken(path) as top:
        while entries := _some(top):
            for entry in entries:
                _remove(top, entry)
    with suppress(FileNotFoundError):
        os.rmdir(path)  # noqa: PTH106 - beside the calls around it


def _remove(top: int, entry: os.DirEntry[str]) -> None:
    if not entry.is_dir(follow_symlinks=False):
        os.unlink(entry.name, dir_fd=top)
        return
    with _taken(entry.name, top) as folder:
        while inner := _some(folder):
            for one in inner:
                _move_up(one, folder, top)
    os.rmdir(entry.name, dir_fd=top)


def _move_up(entry: os.DirEntry[str], folder: int, top: int) -> None:
    if entry.is_dir(follow_symlinks=False):
        with _taken(entry.name, folder):  # which has to be open to us to be moved
            os.rename(entry.name, os.urandom(_TOKEN_BYTES).hex(), src_dir_fd=folder, dst_dir_fd=top)
    else:
        os.unlink(entry.name, dir_fd=folder)


def _some(folder: int) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return list(islice(found, _AT_ONCE))


@contextmanager
def _taken(path: str, folder: int | None = None) -> Iterator[int]:
    """Open a folder, which from then on only we can change; what holds it cannot be changed by others either."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        opened = os.open(path, flags, dir_fd=folder)
    except PermissionError:  # sealed by a program of our account
        os.chmod(path, _OURS, dir_fd=folder)
        opened = os.open(path, flags, dir_fd=folder)
    try:
        with suppress(PermissionError):  # somebody else's, where we are not root: perhaps it lets us all the same
            os.fchown(opened, os.geteuid(), -1)
            os.fchmod(opened, _OURS)
        yield opened
    finally:
        os.close(opened)
