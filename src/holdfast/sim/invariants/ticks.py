"""Checks the controller's memory after each of its ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import RUN_TERMINAL
from holdfast.domain.spec import Resources
from holdfast.sim.promises import refuse

if TYPE_CHECKING:
    from holdfast.controller.world import World
    from holdfast.domain.job import Queue
    from holdfast.domain.scheduling import Usage
    from holdfast.ports.store import Catalogue, Store
    from holdfast.sim.invariants.record import Record

_NOTHING = Resources(0)


class TickChecks:
    """What must hold of the controller's memory."""

    def __init__(self, record: Record) -> None:
        """Remember what was committed."""
        self._record = record
        self._world: World | None = None
        self._active: set[str] = set()

    def check(self, world: World, store: Store, catalogue: Catalogue) -> None:
        """Check the memory after a tick that ran under a catalogue."""
        self._capacity(world)
        if not world.changes:
            self._nobody_forgotten(world, store)
        self._queues(world, catalogue if catalogue.version == store.catalogue_version() else None)

    def _nobody_forgotten(self, world: World, store: Store) -> None:
        unknown = {job.id for job in self._record.unfinished()} - world.jobs.keys()
        if unknown:
            told = {job_id for request in store.requests(limit=10_000) for job_id in request.job_ids}
            if unknown - told:
                refuse("no-job-lost", f"the controller does not know {sorted(unknown - told)}")

    @staticmethod
    def _capacity(world: World) -> None:
        ledger = world.ledger
        owed = {
            uid: ((run.executor, run.node), run.request, active.job.queue)
            for active in world.active.values()
            for uid, run in active.runs.items()
            if run.status not in RUN_TERMINAL
        }
        if owed != ledger.charged():
            refuse("capacity-adds-up", f"charged are {dict(ledger.charged())}, running {owed}")
        used: dict[tuple[str, str], Resources] = {}
        queues: dict[str, Resources] = {}
        for key, request, queue in owed.values():
            used[key] = used.get(key, _NOTHING) + request
            queues[queue] = queues.get(queue, _NOTHING) + request
        for key, place in ledger.places.items():
            free = ledger.free[key]
            if free != place.capacity - used.get(key, _NOTHING) or not _NOTHING.fits(free):
                refuse("capacity-adds-up", f"{key} has {place.capacity}, {free} free and {used.get(key)} in use")
        for queue, usage in ledger.usage.items():
            jobs = sum(active.job.queue == queue for active in world.active.values())
            if usage.resources != queues.get(queue, _NOTHING) or usage.jobs != jobs:
                refuse(
                    "capacity-adds-up", f"queue {queue} is said to use {usage}, and uses {queues.get(queue)}, {jobs}"
                )

    def _queues(self, world: World, catalogue: Catalogue | None) -> None:
        """Check the queues of jobs that were started by this tick of this controller."""
        before = self._active if self._world is world else set(world.active)
        self._world, self._active = world, set(world.active)
        if catalogue is None:
            return
        for job_id in self._active - before:
            name = world.active[job_id].job.queue
            queue = catalogue.queues.get(name)
            if queue is not None:
                self._within(queue, world.ledger.usage[name], job_id)

    @staticmethod
    def _within(queue: Queue, usage: Usage, job_id: str) -> None:
        if queue.paused:
            refuse("queue-limits", f"{job_id} was started in queue {queue.name}, which is paused")
        if queue.max_running_jobs is not None and usage.jobs > queue.max_running_jobs:
            refuse("queue-limits", f"{job_id} is job {usage.jobs} of {queue.max_running_jobs} in queue {queue.name}")
        most = queue.max_running
        if most is not None and most.cpu_m and usage.resources.cpu_m > most.cpu_m:
            refuse("queue-limits", f"{job_id} takes queue {queue.name} to {usage.resources}, limit {most}")
