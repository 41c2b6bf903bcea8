"""The data directory: its layout, and the address of its server. ``ownership`` says who may use it."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping  # noqa: TC003 - the record looks it up
from contextlib import suppress
from typing import IO, TYPE_CHECKING

from holdfast.app.data.trust import open_trusted, trusted_folder
from holdfast.domain.record import Struct, field
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from pathlib import Path


RESERVE_BYTES = 1 << 20
KEYPAIR_FILE = "backendai.env"
"""The variables by which Backend.AI's client reaches the server as the administrator."""
_PLENTY = 4
_PRIVATE = 0o600
_LOOK_AGAIN_S = 5.0


class ServerAddress(Struct, frozen=True):
    """Where a running server is and how to get in."""

    url: str
    token: str
    pid: int
    doors: Mapping[str, str] = field(default_factory=dict)
    """The addresses of open doors, by name."""


class DataDir:
    """A data directory, created on first use with mode 0700."""

    def __init__(self, path: Path) -> None:
        """Create the directory if it does not exist.

        Raises:
            Unavailable: It cannot be created or written.
            Refused: It is another user's, or others can write there.
        """
        self.path = path
        self._announced: IO[str] | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            with trusted_folder(path):
                pass
        except OSError as error:
            msg = f"cannot use {path} as data directory: {error.strerror}"
            raise Unavailable(msg, hint="set HOLDFAST_DATA to a directory you can write") from error

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "holdfast.db"

    @property
    def runs(self) -> Path:
        """Where the process engine keeps work directories and logs."""
        return self.path / "runs"

    @property
    def blobs(self) -> Path:
        """Where files sent along with jobs are; created when the first is stored."""
        return self.path / "blobs"

    @property
    def secrets(self) -> Path:
        """Where secrets are, unless a setting names another folder; created when the first is stored."""
        return self.path / "secrets"

    @property
    def reserve(self) -> Reserve:
        """The space reserved on its disk."""
        return Reserve(self.path)

    @property
    def _server_file(self) -> Path:
        return self.path / "server.json"

    def server(self) -> ServerAddress | None:
        """Return the address of the server that runs here.

        A running server holds the lock of the file with its address. Nobody holds that of a killed server, even if
        another process has its number by now.

        Raises:
            Refused: The directory or the file is another user's, or others can write it.
        """
        try:
            with trusted_folder(self.path) as folder:
                fd = open_trusted(self._server_file, os.O_RDONLY, folder=folder)
            with os.fdopen(fd) as file:
                written = json.loads(file.read())
                doors = {str(name): str(place) for name, place in (written.get("doors") or {}).items()}
                address = ServerAddress(written["url"], written["token"], int(written["pid"]), doors)
                return address if _is_locked(file) else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def announce(self, address: ServerAddress) -> None:
        """Publish a server's address and token, readable by its owner only, for as long as this process lives.

        Raises:
            Unavailable: The directory cannot be written.
        """
        try:
            written = {"url": address.url, "token": address.token, "pid": address.pid, "doors": dict(address.doors)}
            self._announce(json.dumps(written))
        except OSError as error:
            msg = f"cannot write {self._server_file}: {error.strerror}"
            raise Unavailable(msg) from error

    def _announce(self, text: str) -> None:
        fresh = self._server_file.with_suffix(".new")
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, _PRIVATE)
        self._announced = os.fdopen(fd, "w")
        fcntl.flock(fd, fcntl.LOCK_EX)  # before anybody can find it
        self._announced.write(text)
        self._announced.flush()
        fresh.replace(self._server_file)

    def withdraw(self) -> None:
        """Remove the address, unless it is another server's by now."""
        if self._announced is None:
            return
        with suppress(OSError):
            if os.path.samestat(os.fstat(self._announced.fileno()), self._server_file.stat()):
                self._server_file.unlink()
        self._announced.close()
        self._announced = None


class Reserve:
    """A little space reserved on the disk, so that a job that fills the disk can still be cancelled."""

    def __init__(self, folder: Path) -> None:
        """Reserve it in a folder; ``keep`` creates it."""
        self._file = folder / "reserve"

    def keep(self) -> float:
        """Create it if it is missing and the disk has plenty of room; returns when to check again."""
        if not self._file.exists() and self._room() > _PLENTY * RESERVE_BYTES:
            fresh = self._file.with_suffix(".new")
            with suppress(OSError):
                with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE), "wb") as file:
                    file.write(os.urandom(RESERVE_BYTES))  # zeros might take no space on some file systems
                fresh.replace(self._file)
        return _LOOK_AGAIN_S

    def give_up(self) -> bool:
        """Release it if the disk is full, and return whether it did."""
        if self._room() >= RESERVE_BYTES:
            return False
        try:
            self._file.unlink()
        except OSError:
            return False
        return True

    def _room(self) -> int:
        try:
            disk = os.statvfs(self._file.parent)
        except OSError:
            return 0
        return disk.f_bavail * disk.f_frsize


def _is_locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
