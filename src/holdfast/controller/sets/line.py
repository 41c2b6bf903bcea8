"""Puts pods in line for a place, and gives them the one they got; keeps topology domains to one job each.

Decides which domain a job gets; leaves who goes first, and where within it, to ``scheduling``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.evolve import evolve
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.placement import Shape
from holdfast.domain.spec import Resources
from holdfast.domain.waiting import GroupKey, Waiting

if TYPE_CHECKING:
    from holdfast.controller.sets.memory import JobWork, PodWork
    from holdfast.controller.sets.plans import PodPlan
    from holdfast.controller.world import Active, World
    from holdfast.domain.placement import PlaceKey


class Domains:
    """Which job has which topology domain to itself."""

    def __init__(self, world: World) -> None:
        """Start with none taken."""
        self._world = world
        self._owners: dict[tuple[str, str], str] = {}

    def keep(self, key: str, domain: str, job_id: str) -> None:
        """Note that a job has a domain, as after a restart of ours."""
        self._owners[key, domain] = job_id

    def claim(self, key: str, job_id: str) -> str:
        """Give a job the roomiest domain nobody has; empty when there is none."""
        room: dict[str, int] = {}
        ledger = self._world.ledger
        for place in ledger.places.values():
            domain = place.labels.get(key)
            if domain is not None and self._owners.get((key, domain), job_id) == job_id:
                room[domain] = room.get(domain, 0) + ledger.free.get(place.key, Resources(0)).cpu_m
        if not room:
            return ""
        chosen = max(sorted(room), key=lambda domain: room[domain])
        self._owners[key, chosen] = job_id
        return chosen

    def release(self, key: str | None, domain: str) -> None:
        """Give a domain back."""
        if key is not None and domain:
            self._owners.pop((key, domain), None)


class PodLine:
    """The pods that wait for a place."""

    def __init__(self, world: World) -> None:
        """Remember the world."""
        self._world = world
        self._waiting: dict[str, tuple[Active, JobWork, PodWork]] = {}
        self.domains = Domains(world)
        self.homeless: dict[str, None] = {}
        """Ids of jobs that wait for a topology domain."""

    def add(self, active: Active, work: JobWork, pod: PodWork, plan: PodPlan, now: float) -> None:
        """Put a pod in line; one whose job has no topology domain yet waits for that first."""
        job = active.job
        if plan.topology is not None and not self._has_domain(active, work, plan.topology, now):
            return
        pod.ticket = fresh_uid(active, pod.record.rank) if pod.record.run else pod.first
        selector = dict(plan.program.node_selector)
        if plan.topology is not None:
            selector[plan.topology] = work.record.domain
        again = pod.record.restarts + pod.record.index_failures > 0
        shape = Shape(job.request, 1, tuple(sorted(selector.items())), pod.record.avoid_node)
        self._waiting[pod.ticket] = (active, work, pod)
        self._world.owner[pod.ticket] = job.id
        self._world.line.add(
            GroupKey(job.queue, shape, again), Waiting(-job.priority, job.seq, pod.ticket, now, pod=True)
        )
        self._world.schedule_needed = True

    def _has_domain(self, active: Active, work: JobWork, key: str, now: float) -> bool:
        job_id = active.attempt.job_id
        if work.record.domain:
            return True
        domain = self.domains.claim(key, job_id)
        if not domain:
            self.homeless[job_id] = None
            if active.job.state is JobState.QUEUED:
                self._world.note_reason(job_id, f"no {key} is free for exclusive use", now)
            return False
        self.homeless.pop(job_id, None)
        work.record = evolve(work.record, domain=domain)
        return True

    def remove(self, pod: PodWork) -> None:
        """Take a pod out of line."""
        if pod.ticket:
            self._waiting.pop(pod.ticket, None)
            self._world.owner.pop(pod.ticket, None)
            self._world.line.remove(pod.ticket)
            pod.ticket = ""

    def place(self, ticket: str, place: PlaceKey, now: float) -> tuple[Active, Run]:
        """Hand a pod out on the place it got."""
        active, _, pod = self._waiting.pop(ticket)
        return active, self.start(active, pod, ticket, place, now)

    def start(self, active: Active, pod: PodWork, uid: str, place: PlaceKey, now: float) -> Run:
        """Hand a pod's program out on a place."""
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
            request=active.job.request,
        )
        pod.run, pod.ticket = run, ""
        pod.record = evolve(pod.record, run=uid, due=None, waiting=False)
        self._world.place_pod(active, run)
        return run


def fresh_uid(active: Active, rank: int) -> str:
    """Return a uid no run of this attempt had before."""
    active.placed += 1
    return f"{active.attempt.job_id}-{active.attempt.number}-{rank}-{active.placed}"
