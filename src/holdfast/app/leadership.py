"""Keeps this process the one writer of its database, or says who is.

Decides how long the lease is and when it is renewed; leaves the proof that it still holds to each commit.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from holdfast.app.datadir import DataDir
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import ControllerStore

TTL_S = 15.0
"""How long a writer that was killed keeps others out; the same data directory is let in at once."""
_RENEW_EVERY_S = 5.0
_log = structlog.get_logger(__name__)


def owner(directory: DataDir) -> str:
    """Name the writer of a data directory, the same over restarts: its lock lets only one process be it."""
    return f"the holdfast on {socket.gethostname()}, data directory {directory.path} ({directory.identity()})"


class Leadership:
    """The lease of one process on one store; for one thread at a time."""

    def __init__(self, store: ControllerStore, owner: str, clock: Clock) -> None:
        """Hold nothing yet."""
        self._store = store
        self._owner = owner
        self._clock = clock
        self._epoch: int | None = None
        self._renewed_at = 0.0

    def epoch(self) -> int:
        """Return the epoch to commit with, and renew the lease when that is due.

        A renewal that fails changes nothing here: if somebody else took over, the next commit will say so.

        Raises:
            Unavailable: Another process leads, or the database cannot be written.
        """
        now = self._clock.now()
        if self._epoch is None:
            self._epoch = self._store.lead(self._owner, TTL_S, now)
            self._renewed_at = now
        elif now - self._renewed_at >= _RENEW_EVERY_S:
            self._renewed_at = now
            try:
                self._epoch = self._store.lead(self._owner, TTL_S, now)
            except Unavailable as error:
                _log.warning("the lease on the database was not renewed", error=str(error))
        return self._epoch

    def lose(self) -> None:
        """Forget the epoch after a commit was refused because of it."""
        self._epoch = None

    def step_down(self) -> None:
        """Let others in at once."""
        if self._epoch is not None:
            self._epoch = None
            with suppress(Unavailable):
                self._store.lead(self._owner, 0.0, self._clock.now())
