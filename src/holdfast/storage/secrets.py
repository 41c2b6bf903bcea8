"""Keeps secrets in a folder, a file for each, which only its owner can read."""

from __future__ import annotations

import os
import pwd
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import Unavailable
from holdfast.ports.secrets import LARGEST_SECRET

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600
_NAME_BYTES = 12
_SENT = re.compile(r"job-[0-9a-f]{24}")
"""The names of those that were sent along with jobs."""


class SecretFiles:
    """Secrets in the files of a folder, which is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        """Remember the folder."""
        self._folder = folder

    def keep(self, value: str, uid: int | None = None) -> str:
        """Write a secret under a name of its own; it is on the disk when this returns.

        Where we are root, the file is the account's with that number: its runs can be given it, and nobody else's.

        Raises:
            Unavailable: It cannot be written.
        """
        name = f"job-{secrets.token_hex(_NAME_BYTES)}"
        try:
            self._folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            fd = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE)
            with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
                os.fchmod(fd, _PRIVATE)
                if uid is not None and os.geteuid() == 0:
                    os.fchown(fd, uid, -1)
                file.write(value)
                file.flush()
                os.fsync(fd)
            self._settle()
        except OSError as error:
            msg = f"cannot keep a secret in {self._folder}: {error.strerror}"
            raise Unavailable(msg) from error
        return name

    def known(self, names: Iterable[str]) -> frozenset[str]:
        """Return those that are there, and make them fresh."""
        found = set()
        for name in names:
            path = self._folder / name
            if path.is_file():
                found.add(name)
                with suppress(OSError):  # somebody else's, or on a disk that is read-only: nobody sweeps that
                    os.utime(path)
        return frozenset(found)

    def value(self, name: str, uid: int | None = None) -> str | None:
        """Read one; what a person put there may end in a line feed.

        Given an account's number, only what the mode of the file lets that account read, as its owner, by one of its
        groups or as anybody.
        """
        try:
            with (self._folder / name).open(encoding="utf-8", newline="") as file:
                if uid is not None and not _may_read(os.fstat(file.fileno()), uid):
                    return None
                text = file.read(LARGEST_SECRET)
        except (OSError, ValueError):
            return None
        return text if _SENT.fullmatch(name) else text.removesuffix("\n")

    def kept(self, *, before: float) -> Collection[str]:
        """Name those that were sent along and have not been fresh since; a file whose writer was killed, too."""
        try:
            names = [path.name for path in self._folder.iterdir() if _SENT.fullmatch(path.name)]
        except OSError:
            return ()
        return [name for name in names if self._is_older(name, before)]

    def _is_older(self, name: str, than: float) -> bool:
        with suppress(OSError):
            return (self._folder / name).lstat().st_mtime < than
        return False

    def discard(self, name: str) -> None:
        """Delete one.

        Raises:
            Unavailable: It cannot be deleted.
        """
        try:
            (self._folder / name).unlink(missing_ok=True)
        except OSError as error:
            msg = f"cannot delete a secret in {self._folder}: {error.strerror}"
            raise Unavailable(msg) from error

    def _settle(self) -> None:
        """Have the folder's new entry on the disk."""
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _may_read(found: os.stat_result, uid: int) -> bool:
    if found.st_uid == uid:
        return bool(found.st_mode & stat.S_IRUSR)
    if found.st_mode & stat.S_IRGRP:
        with suppress(KeyError):
            account = pwd.getpwuid(uid)
            if found.st_gid in os.getgrouplist(account.pw_name, account.pw_gid):
                return True
    return bool(found.st_mode & stat.S_IROTH)
