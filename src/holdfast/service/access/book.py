"""What operators gave to whom, kept at hand, so that a request costs no query for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Access, Sight, roles_of
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import Grants

if TYPE_CHECKING:
    from holdfast.domain.access import Principal
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store

FRESH_S = 0.5
"""How long nobody looks whether they gave something else; what they take away is gone within a second."""


class Given(Struct, frozen=True):
    """What was given, and in which version of the catalogue."""

    version: int
    access: Access
    grants: Grants


class AccessBook:
    """Says what was given to whom; safe for threads, as what it keeps is replaced as a whole."""

    def __init__(self, store: Store, clock: Clock, owner: Principal) -> None:
        """Read from a store; ``owner`` is whose server it is."""
        self._store = store
        self._clock = clock
        self._owner = owner
        self._kept: tuple[float, Given] | None = None

    def recognized(self, principal: Principal) -> Principal:
        """Return somebody with their roles.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        return evolve(principal, roles=roles_of(principal, self._given().access, owner=self._owner))

    def grants(self) -> Grants:
        """Return what was given in single queues, and what is seen of others' jobs."""
        return self._given().grants

    def _given(self) -> Given:
        now, kept = self._clock.now(), self._kept
        if kept is not None and 0 <= now - kept[0] < FRESH_S:
            return kept[1]
        version = self._store.catalogue_version()
        given = kept[1] if kept is not None and kept[1].version == version else self._read()
        self._kept = now, given
        return given

    def _read(self) -> Given:
        catalogue = self._store.catalogue()
        permissions = {queue.name: queue.permissions for queue in catalogue.queues.values() if queue.permissions}
        access = catalogue.access
        return Given(catalogue.version, access, Grants(permissions, access.others_see or Sight.DETAILS))
