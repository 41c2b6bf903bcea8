"""Who has which place: counts capacity, plans a round for what waits, and notes why the rest still waits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.resources import Resources
from holdfast.domain.scheduling import Plan, Round, RoundLimits, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Queue, Run
    from holdfast.domain.placement import Place, PlaceKey


class Capacity:
    """Capacity by place and usage by queue, derived from the runs that are charged.

    A run is charged from being placed until it is confirmed stopped. Charging and releasing are idempotent by run uid,
    so a repeated report cannot leak capacity.
    """

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
            self._hand_out(kind, dict(placements), now)
        for blocked in plan.blocked:
            waiting = blocked.waiting.job_id
            job_id = state.owner.get(waiting, waiting)
            if state.note_reason(job_id, blocked.reason, now):
                kind = state.kind_of(state.jobs[job_id])
                call = partial(state.kinds[kind].blocked, waiting, now)
                self._quarantine.attempt(kind, job_id, now, "noting why it waits", call)

    def _hand_out(self, kind: str, places: Mapping[str, tuple[PlaceKey, ...]], now: float) -> None:
        def hand_out(keys: list[str]) -> None:
            self._state.kinds[kind].placed([(key, places[key]) for key in keys], now)

        self._quarantine.attempt_all(kind, places, now, "giving it a place", hand_out)

    def _plan(self, now: float) -> Plan:
        capacity = self._state.capacity
        return Round(
            line=self._state.line,
            places=list(capacity.places.values()),
            free=dict(capacity.free),
            queues=self._queues(),
            usage={name: Usage(used.resources, used.jobs) for name, used in capacity.usage.items()},
            balances=self._state.balances,
            now=now,
            total=capacity.total,
            limits=self._limits,
        ).plan()
