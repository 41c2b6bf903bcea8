"""Applies a configuration file of Armada's in the process that leads, and reads it again when it has changed.

A file that cannot be read or is not valid changes nothing, and the server says so until it is repaired.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.app.entrance.accounts import account
from holdfast.app.time import SystemClock
from holdfast.domain.audit import Caller
from holdfast.errors import HoldfastError, InvalidSetting, Unavailable
from holdfast.service.manifests.armada import read_configuration

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.app.leadership import Leadership
    from holdfast.domain.file_settings import FileSettings
    from holdfast.ports.store import Store

_LOOK_S = 0.25
_LARGEST = 16 * 1024 * 1024
_log = logging.getLogger(__name__)


def read_file(path: Path) -> FileSettings:
    """Read a configuration file.

    Raises:
        InvalidSetting: It cannot be read, or is not valid; with every problem found.
    """
    # Opening a pipe would wait for a writer.
    if path.exists() and not path.is_file():
        msg = f"{path} cannot be read: it is not a file"
        raise InvalidSetting(msg)
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        msg = f"{path} cannot be read: {reason}"
        raise InvalidSetting(msg) from error
    return read_configuration(text, str(path))


class Configuring:
    """Applies the file when it changes; a loop takes its steps."""

    def __init__(self, path: Path, store: Store, leadership: Leadership) -> None:
        self._path, self._store, self._leadership = path, store, leadership
        self._read: tuple[int, tuple[float, int, int]] | None = None
        self._trouble: str | None = None
        self._turn = threading.Lock()

    def trouble(self) -> str | None:
        """Return why the file is not in force, or ``None``."""
        return self._trouble

    def again(self) -> None:
        """Read the file in the next step, even if it has not changed."""
        self._read = None

    def step(self) -> float:
        """Read the file if it has changed or another process led since it was read; returns how long to wait next."""
        stamp = self._stamp()
        if (stamp != self._read or stamp is None) and self._leadership.refusal() is None:
            with suppress(HoldfastError), self._turn:  # reported until it is repaired
                self._apply(stamp, Caller(account(), SystemClock().now(), f"file {self._path}", ""))
        return _LOOK_S

    def reload(self, caller: Caller) -> tuple[FileSettings, bool]:
        """Read the file now, and return its settings and whether they are new.

        Raises:
            InvalidSetting: It cannot be read, or is not valid; the earlier settings stay in force.
            Unavailable: This process does not lead, or nothing can be stored.
        """
        if (refusal := self._leadership.refusal()) is not None:
            raise refusal
        with self._turn:
            return self._apply(self._stamp(), caller)

    def _apply(self, stamp: tuple[int, tuple[float, int, int]] | None, caller: Caller) -> tuple[FileSettings, bool]:
        try:
            configured = read_file(self._path)
            changed = self._store.put_configured(configured, caller=caller)
        except InvalidSetting as error:
            self._read = stamp
            self._report("; ".join((error.message, *map(str, error.problems))))
            raise
        except HoldfastError as error:
            self._report(error.message)
            raise
        self._read, self._trouble = stamp, None
        if changed:
            _log.info("%s is in force", self._path)
        return configured, changed

    def _stamp(self) -> tuple[int, tuple[float, int, int]] | None:
        """Return the epoch of the lease and the state of the file; ``None`` without a lease or a file."""
        try:
            status = self._path.stat()
            return self._leadership.epoch(), (status.st_mtime_ns, status.st_size, status.st_ino)
        except (OSError, Unavailable):
            return None

    def _report(self, trouble: str) -> None:
        message = f"{trouble}; the earlier settings stay in force"
        if message != self._trouble:
            _log.error("%s", message)
        self._trouble = message
