"""Deletes secrets and inputs that no job names any more, in the process that leads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.app.time import SystemClock
from holdfast.errors import HoldfastError
from holdfast.service.admission import inputs, secrets

if TYPE_CHECKING:
    from holdfast.app.leadership import Leadership
    from holdfast.ports.blobs import Blobs
    from holdfast.ports.secrets import Secrets
    from holdfast.ports.store import Store

_EVERY_S = 600.0
_log = logging.getLogger(__name__)


class Sweeping:
    """Sweeps, while this process leads."""

    def __init__(self, kept: Secrets | None, blobs: Blobs | None, store: Store, leadership: Leadership) -> None:
        """Wire it; a loop takes its steps."""
        self._secrets, self._blobs, self._store, self._leadership = kept, blobs, store, leadership

    def step(self) -> float:
        """Sweep once; returns how long to wait for the next time."""
        if self._leadership.refusal() is None:
            try:
                now = SystemClock().now()
                if self._secrets is not None:
                    secrets.sweep(self._secrets, self._store, now)
                if self._blobs is not None:
                    inputs.sweep(self._blobs, self._store, now)
            except HoldfastError as error:
                _log.warning("secrets and inputs of deleted jobs cannot be deleted now: %s", error)
        return _EVERY_S
