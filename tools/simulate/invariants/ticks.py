"""Checks the controller's memory after each of its ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Resources
from holdfast.domain.lifecycle import RUN_TERMINAL
from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Queue
    from holdfast.domain.placement.fit import PlaceKey, Usage
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.store import Store
    from tools.simulate.invariants.record import Record
    from tools.simulate.invariants.setrecord import SetRecord

_NOTHING = Resources(0)


class TickChecks:
    """What must hold of the controller's memory."""

    def __init__(self, record: Record, sets: SetRecord) -> None:
        """Remember what was committed."""
        self._record = record
        self._sets = sets
        self._state: ControllerState | None = None
        self._active: set[str] = set()
        self._pods: set[str] = set()
        self._new_pods: set[str] = set()

    def check(self, state: ControllerState, store: Store, catalogue: Catalogue) -> None:
        """Check the memory after a tick that ran under a catalogue."""
        self._capacity(state)
        if not state.changes:
            self._nobody_forgotten(state, store)
        self._queues(state, catalogue if catalogue.version == store.catalogue_version() else None)

    def _nobody_forgotten(self, state: ControllerState, store: Store) -> None:
        unknown = {job.id for job in self._record.unfinished()} - state.jobs.keys()
        if unknown:
            told = {job_id for request in store.requests(limit=10_000) for job_id in request.targets}
            told |= self._record.just_made
            for set_id in told & self._sets.rows.keys():
                told |= {job.id for job in self._sets.jobs[set_id].values()}
            if unknown - told:
                refuse("no-job-lost", f"the controller does not know {sorted(unknown - told)}")

    def _kept(self, state: ControllerState) -> dict[str, tuple[PlaceKey, Resources, str, str]]:
        """Work out what pods that restart in place may keep: the place of a last program, which has ended."""
        kept = {}
        for uid in state.capacity.charges:
            run, _, rest = uid.partition("/")
            if rest:
                # Unless the last commit was refused, what is committed knows the pod.
                kept[uid] = state.capacity.charges[uid] if state.changes else self._place_kept(run, state)
        return kept

    def _place_kept(self, run: str, state: ControllerState) -> tuple[PlaceKey, Resources, str, str]:
        """Find the place a pod may keep after a run."""
        pods = (pod for job_id in state.active for pod in self._sets.pods_of(job_id))
        last = next((self._record.runs[pod.run] for pod in pods if pod.run == run), None)
        if last is None or last.status not in RUN_TERMINAL:
            refuse("capacity-adds-up", f"a place is kept of {run}, which waits for none")
        job = state.active[last.job_id].job
        return ((last.executor, last.node), last.request, job.queue, job.submitted_by)

    def _capacity(self, state: ControllerState) -> None:
        capacity = state.capacity
        owed = {
            uid: ((run.executor, run.node), run.request, active.job.queue, active.job.submitted_by)
            for active in state.active.values()
            for uid, run in active.runs.items()
            if run.status not in RUN_TERMINAL
        }
        owed |= self._kept(state)
        if owed != capacity.charges:
            refuse("capacity-adds-up", f"charged are {dict(capacity.charges)}, running {owed}")
        used: dict[tuple[str, str], Resources] = {}
        queues: dict[str, Resources] = {}
        for key, request, queue, _ in owed.values():
            used[key] = used.get(key, _NOTHING) + request
            queues[queue] = queues.get(queue, _NOTHING) + request
        for key, place in capacity.places.items():
            free = capacity.free[key]
            if free != place.capacity - used.get(key, _NOTHING) or not _NOTHING.fits(free):
                refuse("capacity-adds-up", f"{key} has {place.capacity}, {free} free and {used.get(key)} in use")
        for queue, usage in capacity.usage.items():
            jobs = sum(_counts(active) for active in state.active.values() if active.job.queue == queue)
            if usage.resources != queues.get(queue, _NOTHING) or usage.jobs != jobs:
                refuse(
                    "capacity-adds-up", f"queue {queue} is said to use {usage}, and uses {queues.get(queue)}, {jobs}"
                )

    def _queues(self, state: ControllerState, catalogue: Catalogue | None) -> None:
        """Check the queues of jobs that were started by this tick of this controller."""
        before = self._active if self._state is state else set(state.active)
        pods = {uid for active in state.active.values() if active.pods for uid in active.runs}
        self._new_pods = pods - (self._pods if self._state is state else pods)
        self._pods = pods
        self._state, self._active = state, set(state.active)
        if catalogue is None:
            return
        self._pods_within(state, catalogue)
        for job_id in self._active - before:
            if state.active[job_id].pods:
                continue
            name = state.active[job_id].job.queue
            queue = catalogue.queues.get(name)
            if queue is not None:
                self._within(queue, state.capacity.usage[name], job_id)

    def _pods_within(self, state: ControllerState, catalogue: Catalogue) -> None:
        """Check the queues of pods that were started by this tick; those that stay in their place ask nobody."""
        for job_id, active in state.active.items():
            queue = catalogue.queues.get(active.job.queue)
            kept = self._sets.kube_jobs.get(job_id)
            if not active.pods or queue is None or kept is None or state.changes:
                continue
            fresh = [pod for pod in kept.pods if pod.run in self._new_pods and not pod.in_place]
            if fresh and queue.paused:
                refuse("queue-limits", f"{fresh} was started in queue {queue.name}, which is paused")

    @staticmethod
    def _within(queue: Queue, usage: Usage, job_id: str) -> None:
        if queue.paused:
            refuse("queue-limits", f"{job_id} was started in queue {queue.name}, which is paused")
        if queue.max_running_jobs is not None and usage.jobs > queue.max_running_jobs:
            refuse("queue-limits", f"{job_id} is job {usage.jobs} of {queue.max_running_jobs} in queue {queue.name}")
        most = queue.max_running
        if most.cpu_m is not None and usage.resources.cpu_m > most.cpu_m:
            refuse("queue-limits", f"{job_id} takes queue {queue.name} to {usage.resources}, limit {most}")


def _counts(active: Active) -> int:
    """Say how many jobs an attempt counts for in its queue: one, or each of its pods that has not ended."""
    if not active.pods:
        return 1
    return sum(run.status not in RUN_TERMINAL for run in active.runs.values())
