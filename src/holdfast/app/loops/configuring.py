"""Keeps to a configuration file of Armada's, in the process that leads: reads it again when it has changed.

A file that cannot be read, or is not valid, changes nothing, and the server says so until it is mended.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.app.entrance.accounts import account
from holdfast.app.time import SystemClock
from holdfast.domain.audit import Caller
from holdfast.errors import HoldfastError, InvalidSetting
from holdfast.service.manifests.armada import read_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.leadership import Leadership
    from holdfast.domain.configured import Configured
    from holdfast.ports.store import Store

_LOOK_S = 0.25
_LARGEST = 16 * 1024 * 1024
_log = logging.getLogger(__name__)


def read_file(path: Path) -> Configured:
    """Read a configuration file.

    Raises:
        InvalidSetting: It cannot be read, or is not valid; with every problem found.
    """
    if path.exists() and not path.is_file():  # to open a pipe would wait for who writes into it
        msg = f"{path} cannot be read: it is no file"
        raise InvalidSetting(msg)
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        told = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"{path} cannot be read: {told}"
        raise InvalidSetting(msg) from error
    return read_configuration(text, str(path))


class Configuring:
    """Looks at the file."""

    def __init__(self, path: Path, store: Store, leadership: Leadership) -> None:
        """Wire it; a loop takes its steps."""
        self._path, self._store, self._leadership = path, store, leadership
        self._read: tuple[float, int, int] | None = None
        self._trouble: str | None = None

    def trouble(self) -> str | None:
        """Say why the file is not in force, if so."""
        return self._trouble

    def again(self) -> None:
        """Read it at the next step, however old it is."""
        self._read = None

    def step(self) -> float:
        """Read the file if it has changed; returns when to look again."""
        stamp = self._stamp()
        if (stamp != self._read or stamp is None) and self._leadership.refusal() is None:
            try:
                self._take_up(read_file(self._path))
                self._read = stamp
            except InvalidSetting as error:
                self._read = stamp
                self._say("; ".join((error.message, *map(str, error.problems))))
            except HoldfastError as error:
                self._say(error.message)
        return _LOOK_S

    def _stamp(self) -> tuple[float, int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _take_up(self, configured: Configured) -> None:
        caller = Caller(account(), SystemClock().now(), f"file {self._path}", "")
        if self._store.put_configured(configured, by=caller):
            _log.info("%s is in force", self._path)
        self._trouble = None

    def _say(self, trouble: str) -> None:
        told = f"{trouble}; what was in force before stays so"
        if told != self._trouble:
            _log.error("%s", told)
        self._trouble = told
