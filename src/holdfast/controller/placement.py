"""Who has which place: plans a round for what waits, notes why the rest still waits, and assigns topology domains."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from holdfast.domain.placement import Usage
from holdfast.domain.scheduling import Round, RoundLimits

if TYPE_CHECKING:
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.placement import PlaceKey


class Placement:
    """Gives waiting jobs and pods their places."""

    def __init__(
        self,
        state: ControllerState,
        catalog: PolicyCatalog,
        limits: RoundLimits,
        quarantine: Quarantine,
    ) -> None:
        """Remember where queues are, and a round's limits."""
        self._state = state
        self._catalog = catalog
        self._limits = limits
        self._quarantine = quarantine

    def run(self, now: float) -> None:
        """Plan a round, and have each kind give its workloads their places."""
        state = self._state
        plan = Round(
            pending=state.pending,
            places=list(state.capacity.places.values()),
            free=dict(state.capacity.free),
            queues=self._catalog.catalogue.queues,
            usage={name: Usage(used.resources, used.jobs) for name, used in state.capacity.usage.items()},
            balances=state.balances,
            now=now,
            total=state.capacity.total,
            limits=self._limits,
        ).plan()
        state.schedule_needed = plan.cut_short
        by_kind: dict[str, dict[str, tuple[PlaceKey, ...]]] = {}
        for placed in plan.placements:
            job = state.jobs.get(state.owner.get(placed.job_id, placed.job_id))
            if job is not None:
                by_kind.setdefault(state.kind_of(job), {})[placed.job_id] = placed.places
        for kind, places in by_kind.items():
            call = partial(state.kinds[kind].placed, places)
            self._quarantine.attempt_all(kind, places, now, "giving it a place", call)
        for blocked in plan.blocked:
            waiting = blocked.waiting.job_id
            job_id = state.owner.get(waiting, waiting)
            if state.note_reason(job_id, blocked.reason, now):
                kind = state.kind_of(state.jobs[job_id])
                note = partial(state.kinds[kind].blocked, waiting, now)
                self._quarantine.attempt(kind, job_id, now, "noting why it waits", note)


class Domains:
    """Assigns topology domains, each to one job at a time."""

    def __init__(self, state: ControllerState) -> None:
        """Start with none taken."""
        self._state = state
        self._owners: dict[tuple[str, str], str] = {}

    def keep(self, key: str, domain: str, job_id: str) -> None:
        """Note that a job has a domain, as after a restart."""
        self._owners[key, domain] = job_id

    def claim(self, key: str, job_id: str) -> str:
        """Give a job the free domain with the most room; empty when there is none."""
        room: dict[str, int] = {}
        capacity = self._state.capacity
        for place in capacity.places.values():
            domain = place.labels.get(key)
            if domain is not None and self._owners.get((key, domain), job_id) == job_id:
                room[domain] = room.get(domain, 0) + capacity.free.get(place.key, Resources(0)).cpu_m
        if not room:
            return ""
        chosen = max(sorted(room), key=lambda domain: room[domain])
        self._owners[key, chosen] = job_id
        return chosen

    def release(self, key: str | None, domain: str) -> None:
        """Give a domain back."""
        if key is not None and domain:
            self._owners.pop((key, domain), None)
