"""Keeps secrets in a folder, a file for each, which only its owner can read.

Whose a secret is stands beside it, in ``NAME.owner``: ``user:NAME``, with the number of the account if there is one, or
``queue:NAME``. One that somebody put there without that is the server's own account's.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.errors import Unavailable
from holdfast.ports.secrets import LARGEST_SECRET, NOBODY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from pathlib import Path

    from holdfast.ports.secrets import SecretUser

_PRIVATE_FOLDER, _PRIVATE = 0o700, 0o600
_NAME_BYTES = 12
_SENT = re.compile(r"job-[0-9a-f]{24}")
"""The names of those that were sent along with jobs."""
_OWNER = ".owner"
_LONGEST_OWNER = 4_096


class SecretFiles:
    """Secrets in the files of a folder, which is made when it is needed."""

    def __init__(self, folder: Path, *, by_accounts: bool = False) -> None:
        """Remember the folder, and whether programs run as accounts, to which the modes of files give secrets, too."""
        self._folder = folder
        self._by_accounts = by_accounts

    def keep(self, value: str, owner: SecretUser = NOBODY) -> str:
        """Write a secret under a name of its own; it is on the disk when this returns.

        Where we are root, the file is its owner's account's, too.

        Raises:
            Unavailable: It cannot be written.
        """
        name = f"job-{secrets.token_hex(_NAME_BYTES)}"
        try:
            self._folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            # Nobody else can have the value at any moment: whose it is is there before.
            self._write(name + _OWNER, _written(owner), None)
            self._write(name, value, owner.uid if os.geteuid() == 0 else None)
            self._settle()
        except OSError as error:
            msg = f"cannot keep a secret in {self._folder}: {error.strerror}"
            raise Unavailable(msg) from error
        return name

    def _write(self, name: str, text: str, uid: int | None) -> None:
        fd = os.open(self._folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _PRIVATE)
        with os.fdopen(fd, "w", encoding="utf-8", newline="") as file:
            os.fchmod(fd, _PRIVATE)
            if uid is not None:
                os.fchown(fd, uid, -1)
            file.write(text)
            file.flush()
            os.fsync(fd)

    def refresh(self, names: Iterable[str]) -> frozenset[str]:
        """Return those that are there, and make them fresh."""
        stored = set()
        for name in names:
            path = self._folder / name
            if path.is_file():
                stored.add(name)
                with suppress(OSError):  # somebody else's, or on a disk that is read-only: nobody sweeps that
                    os.utime(path)
        return frozenset(stored)

    def opens(self, name: str, user: SecretUser) -> bool:
        """Whether one is somebody's, or their queue's, or can be read by their account where programs run as those."""
        try:
            return self._admits(name, self._owner(name), user, (self._folder / name).stat())
        except (OSError, ValueError):
            return False

    def value(self, name: str, user: SecretUser = NOBODY) -> str | None:
        """Read one that somebody may have; what a person put there may end in a line feed."""
        try:
            owner = self._owner(name)
            with (self._folder / name).open(encoding="utf-8", newline="") as file:
                if not self._admits(name, owner, user, os.fstat(file.fileno())):
                    return None
                text = file.read(LARGEST_SECRET)
            if self._owner(name) != owner:  # it is being replaced: this may be the value of the one or of the other
                return None
        except (OSError, ValueError):
            return None
        return text if _SENT.fullmatch(name) else text.removesuffix("\n")

    def _owner(self, name: str) -> str | None:
        """Read whose one is; ``None`` where nothing says so.

        Raises:
            OSError, ValueError: It cannot be read, and so is nobody's.
        """
        try:
            with (self._folder / (name + _OWNER)).open(encoding="utf-8") as file:
                return file.read(_LONGEST_OWNER)
        except FileNotFoundError:
            return None

    def _admits(self, name: str, owner: str | None, user: SecretUser, file: os.stat_result) -> bool:
        if self._by_accounts and _may_read(file, -1 if user.uid is None else user.uid):
            return True
        if owner is not None:
            return _is_for(owner, user)
        if self._by_accounts:
            return False
        # Before this was written down, whoever knew the name of one that was sent along had it from its sender.
        return bool(_SENT.fullmatch(name)) or not user.name or user.name == _own_name()

    def kept(self, *, before: float) -> Collection[str]:
        """Name those that were sent along and have not been fresh since; a file whose writer was killed, too."""
        try:
            names = {path.name.removesuffix(_OWNER) for path in self._folder.iterdir()}
        except OSError:
            return ()
        return [name for name in sorted(names) if _SENT.fullmatch(name) and self._is_older(name, before)]

    def _is_older(self, name: str, than: float) -> bool:
        for part in (name, name + _OWNER):  # whose it is may be there alone, where its writer was killed
            with suppress(OSError):
                return (self._folder / part).lstat().st_mtime < than
        return False

    def discard(self, name: str) -> None:
        """Delete one.

        Raises:
            Unavailable: It cannot be deleted.
        """
        try:
            for part in (name, name + _OWNER):
                (self._folder / part).unlink(missing_ok=True)
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


def _written(owner: SecretUser) -> str:
    return f"user:{owner.name or _own_name()}{'' if owner.uid is None else f' {owner.uid}'}\n"


def _is_for(owner: str, user: SecretUser) -> bool:
    """Whether what stands in the file says that a secret is somebody's, or their queue's."""
    kind, _, name = owner.strip().partition(":")
    if kind == "queue":
        return bool(name) and name == user.queue
    name, _, number = name.partition(" ")
    if kind != "user" or name != (user.name or _own_name()):
        return False
    return not number or user.uid is None or number == str(user.uid)


def _own_name() -> str:
    uid = os.geteuid()
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _may_read(status: os.stat_result, uid: int) -> bool:
    if status.st_uid == uid:
        return bool(status.st_mode & stat.S_IRUSR)
    if status.st_mode & stat.S_IRGRP:
        with suppress(KeyError):
            account = pwd.getpwuid(uid)
            if status.st_gid in os.getgrouplist(account.pw_name, account.pw_gid):
                return True
    return bool(status.st_mode & stat.S_IROTH)
