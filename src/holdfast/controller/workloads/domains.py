"""Topology domains, each exclusive to one job at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from holdfast.domain.placement.assignment import all_well
from holdfast.domain.placement.fit import fit_alone, why_not

if TYPE_CHECKING:
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.state import ControllerState
    from holdfast.domain.placement.fit import Shape


class Domains:
    """Assigns topology domains exclusively."""

    def __init__(self, state: ControllerState, catalog: PolicyCatalog) -> None:
        self._state = state
        self._catalog = catalog
        self._owners: dict[tuple[str, str], str] = {}

    def keep(self, key: str, domain: str, job_id: str) -> None:
        """Note that a job has a domain, as after a restart."""
        self._owners[key, domain] = job_id

    def claim(self, key: str, job_id: str, shape: Shape) -> str:
        """Assign the free domain with the most room that can hold such a pod; returns "" if there is none."""
        room: dict[str, int] = {}
        able: set[str] = set()
        capacity = self._state.capacity
        for place in capacity.places.values():
            domain = place.labels.get(key)
            if place.key[1] in self._catalog.catalogue.cordons or place.short is not None:
                continue
            if domain is not None and self._owners.get((key, domain), job_id) == job_id:
                room[domain] = room.get(domain, 0) + capacity.free.get(place.key, Resources(0)).cpu_m
                if domain not in able and fit_alone(shape, [place]) is not None:
                    able.add(domain)
        room = {domain: cpu_m for domain, cpu_m in room.items() if domain in able}
        if not room:
            return ""
        chosen = max(sorted(room), key=lambda domain: room[domain])
        self._owners[key, chosen] = job_id
        return chosen

    def why_not(self, key: str, shape: Shape) -> str:
        """Return why no domain can be assigned to a job of such pods now."""
        places = [place for place in self._state.capacity.places.values() if key in place.labels]
        if not places:
            return f"no node has the label {key}, which exclusive topology needs"
        if any(fit_alone(shape, [place]) is not None for place in places):
            return f"no {key} is free for exclusive use"
        well = {place.key: all_well(place.devices) for place in places}
        return why_not(shape, places, {place.key: place.capacity for place in places}, well)

    def release(self, key: str | None, domain: str) -> None:
        """Free a domain."""
        if key is not None and domain:
            self._owners.pop((key, domain), None)
