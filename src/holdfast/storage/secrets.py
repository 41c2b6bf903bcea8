"""Stores secrets in a folder, each in a file that only its owner can read.

The file ``NAME.owner`` beside a secret names its owner: ``user:NAME``, with the account's number if there is one, or
``queue:NAME``. A secret without that file was put there by hand and belongs to the server's own account.
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
"""The names of secrets that came with jobs."""
_OWNER = ".owner"
_LONGEST_OWNER = 4_096


class SecretFiles:
    """Secrets in the files of a folder, which is created on first use."""

    def __init__(self, folder: Path, *, by_accounts: bool = False) -> None:
        """Remember the folder, and whether programs run as accounts, which may read secrets by file modes."""
        self._folder = folder
        self._by_accounts = by_accounts

    def keep(self, value: str, owner: SecretUser = NOBODY) -> str:
        """Write a secret under a new name; it is on the disk when this returns.

        If Holdfast runs as root, the file belongs to the owner's account.

        Raises:
            Unavailable: The file cannot be written.
        """
        name = f"job-{secrets.token_hex(_NAME_BYTES)}"
        try:
            self._folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
            # The owner is written first, so that nobody else can read the value at any moment.
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
        """Return which of these secrets exist, and mark them as just used."""
        stored = set()
        for name in names:
            path = self._folder / name
            if path.is_file():
                stored.add(name)
                with suppress(OSError):  # The file belongs to somebody else or the disk is read-only: nobody sweeps it.
                    os.utime(path)
        return frozenset(stored)

    def opens(self, name: str, user: SecretUser) -> bool:
        """Whether a secret is the user's or their queue's, or programs run as accounts and theirs can read it."""
        try:
            return self._admits(name, self._owner(name), user, (self._folder / name).stat())
        except (OSError, ValueError):
            return False

    def value(self, name: str, user: SecretUser = NOBODY) -> str | None:
        """Read a secret that the user may have; one that a person wrote may end in a line feed."""
        try:
            owner = self._owner(name)
            with (self._folder / name).open(encoding="utf-8", newline="") as file:
                if not self._admits(name, owner, user, os.fstat(file.fileno())):
                    return None
                text = file.read(LARGEST_SECRET)
            # The secret is being replaced: this value may belong to the old owner or to the new one.
            if self._owner(name) != owner:
                return None
        except (OSError, ValueError):
            return None
        return text if _SENT.fullmatch(name) else text.removesuffix("\n")

    def _owner(self, name: str) -> str | None:
        """Read the owner of a secret, or ``None`` if there is no such file.

        Raises:
            OSError, ValueError: The file cannot be read, so the secret belongs to nobody.
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
        # Before owners were recorded, whoever knew the name of a secret had it from its sender.
        return bool(_SENT.fullmatch(name)) or not user.name or user.name == _own_name()

    def kept(self, *, before: float) -> Collection[str]:
        """List the secrets that came with jobs and are unused since ``before``, and files of killed writers."""
        try:
            names = {path.name.removesuffix(_OWNER) for path in self._folder.iterdir()}
        except OSError:
            return ()
        return [name for name in sorted(names) if _SENT.fullmatch(name) and self._is_older(name, before)]

    def _is_older(self, name: str, than: float) -> bool:
        for part in (name, name + _OWNER):  # A writer that was killed may leave only the owner's file.
            with suppress(OSError):
                return (self._folder / part).lstat().st_mtime < than
        return False

    def discard(self, name: str) -> None:
        """Delete a secret.

        Raises:
            Unavailable: The file cannot be deleted.
        """
        try:
            for part in (name, name + _OWNER):
                (self._folder / part).unlink(missing_ok=True)
        except OSError as error:
            msg = f"cannot delete a secret in {self._folder}: {error.strerror}"
            raise Unavailable(msg) from error

    def _settle(self) -> None:
        """Flush the folder's new entry to the disk."""
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _written(owner: SecretUser) -> str:
    return f"user:{owner.name or _own_name()}{'' if owner.uid is None else f' {owner.uid}'}\n"


def _is_for(owner: str, user: SecretUser) -> bool:
    """Whether the text of an owner's file names the user or their queue."""
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
