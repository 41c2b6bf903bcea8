"""Who has which place: plans a round for what waits, notes why the rest still waits, and assigns topology domains."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from holdfast.domain.placement import Usage
from holdfast.domain.scheduling import Round, RoundLimits, RoundResult

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Queue
    from holdfast.domain.placement import PlaceKey


class Placement:
    """Gives waiting jobs and pods their places."""

    def __init__(
        self,
        state: ControllerState,
        queues: Callable[[], Mapping[str, Queue]],
        limits: RoundLimits,
        quarantine: Quarantine,
    ) -> None:
        """Remember where to read queues, and a round's limits."""
        self._state = state
        self._queues = queues
        self._limits = limits
        self._quarantine = quarantine

    def run(self, now: float) -> None:
        """Plan a round, and have each kind give its workloads their places."""
        state = self._state
        plan = self._plan(now)
        state.schedule_needed = plan.cut_short
        by_kind: dict[str, list[tuple[str, tuple[PlaceKey, ...]]]] = {}
        for placed in plan.placements:
            job = state.jobs.get(state.owner.get(placed.job_id, placed.job_id))
            if job is not None:
                by_kind.setdefault(state.kind_of(job), []).append((placed.job_id, placed.places))
        for kind, placements in by_kind.items():
            places = dict(placements)
            self._quarantine.attempt_all(kind, places, now, "giving it a place", partial(self._give, kind, places))
        for blocked in plan.blocked:
            waiting = blocked.waiting.job_id
            job_id = state.owner.get(waiting, waiting)
            if state.note_reason(job_id, blocked.reason, now):
                kind = state.kind_of(state.jobs[job_id])
                call = partial(state.kinds[kind].blocked, waiting, now)
                self._quarantine.attempt(kind, job_id, now, "noting why it waits", call)

    def _give(self, kind: str, places: Mapping[str, tuple[PlaceKey, ...]], keys: list[str], now: float) -> None:
        self._state.kinds[kind].placed([(key, places[key]) for key in keys], now)

    def _plan(self, now: float) -> RoundResult:
        capacity = self._state.capacity
        return Round(
            pending=self._state.pending,
            places=list(capacity.places.values()),
            free=dict(capacity.free),
            queues=self._queues(),
            usage={name: Usage(used.resources, used.jobs) for name, used in capacity.usage.items()},
            balances=self._state.balances,
            now=now,
            total=capacity.total,
            limits=self._limits,
        ).plan()


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
