"""The lease of one controller's process on the database, and a record of every holder.

It is requested, renewed and given up as in ``app.leadership``; the store grants it, by the database's clock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Unavailable
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from holdfast.ports.store import ControllerStore
    from holdfast.simulation.agenda import Agenda

TTL_S = 15.0
_RENEW_EVERY_S = 5.0


def owner(host: str, life: int) -> str:
    """Name the owner of a lease: each process has its own, even on the same data directory."""
    return f"{host}, life {life}"


class Leases:
    """Which process each epoch was given to."""

    def __init__(self) -> None:
        """Begin with none given."""
        self._held_by: dict[int, object] = {}
        self.newest = 0

    def given(self, epoch: int, to: object) -> None:
        """Record that a process was given an epoch."""
        if self._held_by.setdefault(epoch, to) is not to:
            refuse("one-writer", f"epoch {epoch} was given to two processes")
        self.newest = max(self.newest, epoch)

    def committed(self, epoch: int | None) -> None:
        """Check the epoch of a commit."""
        if epoch != self.newest:
            refuse("one-writer", f"something was committed under epoch {epoch}, and {self.newest} leads")


class Lease:
    """The lease of one process."""

    def __init__(self, store: ControllerStore, owner: str, *, agenda: Agenda, ttl_s: float, leases: Leases) -> None:
        """Hold nothing yet; with ``ttl_s`` of 0 s there is nobody to renew it against."""
        self._store = store
        self._owner = owner
        self._agenda = agenda
        self._ttl_s = ttl_s
        self._leases = leases
        self.epoch = 0
        """What the process commits with; 0 while it does not lead."""
        self._renewed_at = self._asked_at = float("-inf")

    def hold(self) -> int:
        """Return the epoch, renewing the lease when that is due.

        Raises:
            Unavailable: Another process leads, or the lease was not renewed in time.
        """
        now = self._agenda.now()
        if self.epoch and (not self._ttl_s or now - self._asked_at < _RENEW_EVERY_S):
            return self.epoch
        self._asked_at = now
        try:
            epoch = self._store.lead(self._owner, self._ttl_s, now)
        except Unavailable:
            if not self.epoch or now - self._renewed_at >= self._ttl_s:
                self.epoch = 0
                raise
            return self.epoch
        self.epoch, self._renewed_at = epoch, now
        self._leases.given(epoch, self)
        return epoch

    def lose(self) -> None:
        """Stop leading, because a commit was refused."""
        self.epoch = 0
