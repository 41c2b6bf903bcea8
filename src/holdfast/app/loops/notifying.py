"""Delivers notifications in the process that leads, within what the settings allow."""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING

from holdfast.app.time import SystemClock, SystemDice
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.app.data.datadir import DataDir
    from holdfast.app.leadership import Leadership
    from holdfast.app.settings import Settings
    from holdfast.app.telemetry import Telemetry
    from holdfast.domain.notifier import Secret
    from holdfast.notify.courier import Courier
    from holdfast.ports.notifications import Sender
    from holdfast.ports.store import Store

DRAIN_S = 5.0
"""How long a command without a server continues to deliver before it ends."""
_LARGEST_SECRET = 65_536
_AWAY_S = 1.0
_PAUSED_S = 1.0
_IDLE_S = 5.0
_log = logging.getLogger(__name__)


def sender(settings: Settings, directory: DataDir) -> Sender:
    """Return the sender of notifications, within what the settings allow."""
    from holdfast.notify.guard import Guard
    from holdfast.notify.sender import MediaSender, Permissions

    permissions = Permissions(
        Guard(tuple(settings.notify_allow)), frozenset(settings.notify_commands), os.environ.get("PATH", os.defpath)
    )
    return MediaSender(permissions, partial(_secret, settings.secrets or directory.secrets))


def _secret(folder: Path, secret: Secret) -> str | None:
    """Read a secret; ``None`` if there is none."""
    if secret.env:
        return os.environ.get(secret.env)
    try:
        with (folder / secret.file).open(encoding="utf-8") as file:
            return file.read(_LARGEST_SECRET).strip() or None
    except (OSError, ValueError):
        return None


class Notifying:
    """Delivers notifications while this process leads; a loop takes its steps."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        directory: DataDir,
        leadership: Leadership,
        telemetry: Telemetry | None,
    ) -> None:
        self._store = store
        self._leadership = leadership
        self.wake: Callable[[], None] = lambda: None
        """Makes the next step come at once."""
        self._courier: Courier | None = None
        self._make = partial(self._make_courier, settings, directory, telemetry)
        self._failing = False

    def end(self, *, drain: bool) -> None:
        """End after the last step; with ``drain``, deliver first what is due, for a bounded time."""
        try:
            if drain and self._leadership.refusal() is None and self._has_work():
                left = (self._courier or self._make()).drain(DRAIN_S)
                if left:
                    message = "1 notification is" if left == 1 else f"{left} notifications are"
                    _log.warning(
                        "%s not delivered yet; a server, or the next command that runs jobs, will continue", message
                    )
            if self._courier is not None:
                self._courier.stop()
        except HoldfastError as error:
            _log.warning("notifications cannot be delivered now: %s", error)

    def _has_work(self) -> bool:
        return self._store.paused() is None and self._store.next_notification_at() is not None

    def _make_courier(self, settings: Settings, directory: DataDir, telemetry: Telemetry | None) -> Courier:
        from holdfast.notify.courier import Courier

        count = telemetry.count_notification if telemetry is not None else lambda _: None
        courier = Courier(self._store, sender(settings, directory), SystemClock(), SystemDice(), count=count)
        courier.changed = self.wake
        self._courier = courier
        return courier

    def step(self) -> float:
        """Deliver what is due; returns how long to wait for the next step."""
        if self._leadership.refusal() is not None:
            return _AWAY_S
        try:
            if self._store.paused() is not None:
                # The database was restored: the original may send the same.
                return _PAUSED_S
            if self._courier is None and self._store.next_notification_at() is None:
                return _IDLE_S
            wait_s = (self._courier or self._make()).step()
        except HoldfastError as error:
            if not self._failing:
                _log.warning("notifications cannot be delivered now: %s", error)
            self._failing = True
            return _AWAY_S
        self._failing = False
        return wait_s
