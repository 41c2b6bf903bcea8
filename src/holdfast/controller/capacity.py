"""How much of each place is in use, and by which queue.

A run is charged from being placed until it is confirmed stopped. Charging and releasing are idempotent by run uid, so
a repeated report cannot leak capacity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.resources import Resources
from holdfast.domain.scheduling import Usage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.domain.job import Run
    from holdfast.domain.placement import Place, PlaceKey


class Capacity:
    """Capacity by place and usage by queue, derived from the runs that are charged."""

    def __init__(self) -> None:
        """Start with no places and nothing charged."""
        self.places: dict[PlaceKey, Place] = {}
        self.usage: dict[str, Usage] = {}
        self.total = Resources(0)
        """Capacity of all places together."""
        self._free: dict[PlaceKey, Resources] = {}
        self._charges: dict[str, tuple[PlaceKey, Resources, str]] = {}

    @property
    def free(self) -> Mapping[PlaceKey, Resources]:
        """What is free now, by place."""
        return self._free

    def set_place(self, place: Place) -> bool:
        """Add a place or change it; returns whether anything changed."""
        before = self.places.get(place.key)
        if before == place:
            return False
        self.places[place.key] = place
        self.total += place.capacity - (before.capacity if before is not None else Resources(0))
        used = Resources(0)
        for key, amount, _ in self._charges.values():
            if key == place.key:
                used += amount
        self._free[place.key] = place.capacity - used
        return True

    def drop_places(self, executor: str, *, but: Collection[str] = ()) -> None:
        """Forget the places of an executor that is lost, or those it no longer has; what runs there stays charged."""
        for key in [key for key in self.places if key[0] == executor and key[1] not in but]:
            self.total -= self.places.pop(key).capacity
            self._free.pop(key, None)

    def charge(self, run: Run, queue: str) -> None:
        """Charge a run to its place."""
        if run.uid in self._charges:
            return
        key = (run.executor, run.node)
        self._charges[run.uid] = (key, run.request, queue)
        self.usage_of(queue).resources += run.request
        if key in self._free:
            self._free[key] -= run.request

    def release(self, uid: str) -> bool:
        """Give a run's capacity back; returns whether it was charged."""
        charge = self._charges.pop(uid, None)
        if charge is None:
            return False
        key, amount, queue = charge
        if key in self._free:
            self._free[key] += amount
        self.usage_of(queue).resources -= amount
        return True

    def usage_of(self, queue: str) -> Usage:
        """Return what a queue uses, to be counted up and down."""
        return self.usage.setdefault(queue, Usage())

    def charged(self) -> Mapping[str, tuple[PlaceKey, Resources, str]]:
        """All charges by run uid, for checks."""
        return self._charges
