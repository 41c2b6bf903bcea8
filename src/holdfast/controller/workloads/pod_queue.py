"""Queues pods for a place and starts them on the one they got; gives each topology domain to one job at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.evolve import evolve
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.pending_queue import GroupKey, Waiting
from holdfast.domain.placement import Shape
from holdfast.domain.resources import Resources

if TYPE_CHECKING:
    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork, PodWork
    from holdfast.controller.workloads.plans import PodPlan
    from holdfast.domain.job import Job
    from holdfast.domain.placement import PlaceKey
    from holdfast.domain.workloads.kubejob.stored import PodRecord


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


class PodQueue:
    """The pods that wait for a place."""

    def __init__(self, state: ControllerState) -> None:
        """Remember the state."""
        self._state = state
        self._waiting: dict[str, tuple[Active, JobWork, PodWork]] = {}
        self.domains = Domains(state)
        self.awaiting_domain: dict[str, None] = {}
        """Ids of jobs that wait for a topology domain."""

    def add(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> None:
        """Put a pod in the pending queue; one whose job has no topology domain yet waits for that first."""
        job = active.job
        if plan.topology is not None and not self._has_domain(active, work, plan.topology, now):
            return
        pod.placement_id = fresh_uid(active, pod.record.rank) if pod.record.run else pod.first
        retry = pod.record.restarts + pod.record.index_failures > 0
        shape = self.shape(job, pod.record, plan, domain=work.record.domain)
        self._waiting[pod.placement_id] = (active, work, pod)
        waiting = Waiting(-job.priority, job.seq, pod.placement_id, now, pod=True)
        self._state.wait(GroupKey(job.queue, shape, retry), waiting, job_id=job.id)

    @staticmethod
    def shape(job: Job, record: PodRecord, plan: PodPlan, *, domain: str = "") -> Shape:
        """Return the shape of a pod's next program; ``domain`` is the one its job has to itself."""
        selector = dict(plan.program.node_selector)
        if plan.topology is not None and domain:
            selector[plan.topology] = domain
        return Shape(_request(job, record), 1, tuple(sorted(selector.items())), record.avoid_node)

    def _has_domain(self, active: Active, work: JobWork, key: str, now: float) -> bool:
        job_id = active.attempt.job_id
        if work.record.domain:
            return True
        domain = self.domains.claim(key, job_id)
        if not domain:
            self.awaiting_domain[job_id] = None
            if active.job.state is JobState.QUEUED:
                self._state.note_reason(job_id, f"no {key} is free for exclusive use", now)
            return False
        self.awaiting_domain.pop(job_id, None)
        work.record = evolve(work.record, domain=domain)
        return True

    def remove(self, pod: PodWork) -> None:
        """Take a pod out of the pending queue."""
        if pod.placement_id:
            self._waiting.pop(pod.placement_id, None)
            self._state.wait_no_more(pod.placement_id)
            pod.placement_id = ""

    def place(self, placement_id: str, place: PlaceKey, now: float) -> tuple[Active, Run]:
        """Start a pod on the place it got."""
        active, _, pod = self._waiting.pop(placement_id)
        return active, self.start(active, pod, placement_id, place, now)

    def start(self, active: Active, pod: PodWork, uid: str, place: PlaceKey, now: float) -> Run:
        """Start a pod's program on a place."""
        executor, node = place
        attempt = active.attempt
        run = Run(
            uid=uid,
            job_id=attempt.job_id,
            attempt=attempt.number,
            rank=pod.record.rank,
            status=RunStatus.CREATING,
            status_since=now,
            executor=executor,
            node=node,
            request=_request(active.job, pod.record),
        )
        pod.run, pod.placement_id = run, ""
        pod.record = evolve(pod.record, run=uid, due=None, waiting=False)
        self._state.place_pod(active, run)
        return run


def _request(job: Job, record: PodRecord) -> Resources:
    return job.request if record.memory is None else evolve(job.request, memory=record.memory)


def fresh_uid(active: Active, rank: int) -> str:
    """Return a uid no run of this attempt had before."""
    active.placed += 1
    return f"{active.attempt.job_id}-{active.attempt.number}-{rank}-{active.placed}"
