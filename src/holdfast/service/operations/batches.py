"""Many jobs at once: cancel, preempt and reprioritize them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.access.group import BELOW
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.ports.requests import CANCELS, Request, RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.naming import not_found
from holdfast.service.refusals import audited
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.service.operations.backend import Backend

MOST_AT_ONCE = 10_000
"""Jobs in one transaction; more are asked in several, one after the other."""
ACTIVE = frozenset(JobState) - JOB_TERMINAL


class JobBatches(Struct, frozen=True):
    """What is asked of many jobs at once; a job of which it is not true that it applies is left alone."""

    backend: Backend

    @asks(Right.CANCEL, Subject.JOB)
    def cancel(
        self, caller: Caller, where: JobFilter, reason: str = "", *, unless_started: bool = False
    ) -> Sequence[Job]:
        """Ask for jobs to be cancelled, but those of job sets, which only end with their set; returns the jobs.

        Those go first whose group is below those of others: what a job made ends before it. With ``unless_started``
        those are left alone that have started by the time the controller acts on it.

        Raises:
            Forbidden: One of them is not for the caller to cancel.
        """
        kind = RequestKind.CANCEL_UNLESS_STARTED if unless_started else RequestKind.CANCEL
        return self._ask(kind, Right.CANCEL, caller, where, reason)

    @asks(Right.CANCEL, Subject.JOB)
    def cancel_family(self, caller: Caller, job: Job, where: JobFilter, reason: str) -> Sequence[Job]:
        """Ask for a job to be cancelled, and for what is below it; returns the jobs.

        What others launched below it, and the caller may not cancel, is left to end with its parent.

        Raises:
            Forbidden: The job itself is not for the caller to cancel.
        """
        return self._send(RequestKind.CANCEL, self._family(caller, job, where), caller, reason)

    @asks(Right.CANCEL, Subject.JOB)
    def family_ends(self, caller: Caller, job: Job, where: JobFilter, reason: str) -> tuple[Request, ...]:
        """Return the requests of ``cancel_family``, to be appended with what takes the job's place.

        Raises:
            Forbidden: The job itself is not for the caller to cancel.
        """
        now = self.backend.clock.now()
        return tuple(
            Request(RequestKind.CANCEL, ids, now, actor=caller.actor, reason=reason)
            for ids in _ids_in_parts(self._family(caller, job, where))
        )

    @asks(Right.PREEMPT, Subject.JOB)
    def preempt(self, caller: Caller, where: JobFilter, reason: str = "", *, node: str = "") -> Sequence[Job]:
        """Ask for the places of jobs, or only for those on a node; returns the jobs that were meant.

        Raises:
            Forbidden: One of them is not for the caller to preempt.
        """
        return self._ask(RequestKind.PREEMPT, Right.PREEMPT, caller, where, reason, payload=node)

    @asks(Right.REPRIORITIZE, Subject.JOB)
    def reprioritize(self, caller: Caller, where: JobFilter, priority: int) -> Sequence[Job]:
        """Ask for another priority of jobs; higher ones go first; returns the jobs.

        Raises:
            Forbidden: One of them is not for the caller to reprioritize.
        """
        kind, reason = RequestKind.REPRIORITIZE, f"priority {priority}"
        return self._ask(kind, Right.REPRIORITIZE, caller, where, reason, payload=str(priority))

    @asks(Right.PREEMPT, Subject.JOB)
    def preempt_node(self, caller: Caller, name: str, reason: str = "") -> Sequence[Job]:
        """Ask for the places of all that runs on the nodes of a name; returns the jobs.

        Raises:
            NotFound: There is no such node.
            Forbidden: One of the jobs is not for the caller to preempt.
        """
        store = self.backend.store
        with audited(store, caller, Act.PREEMPT, Subject.NODE, name):
            nodes = store.nodes()
            if name not in {node.name for node in nodes}:
                raise not_found(name, [node.name for node in nodes], "node")
            ids = frozenset(run.job_id for run in store.running() if run.node == name)
            running = JobFilter(ids=ids, states=frozenset({JobState.RUNNING}))
            return self.preempt(caller, running, reason, node=name) if ids else ()

    @asks(Right.WATCH, Subject.JOB)
    def on_node(self, caller: Caller, name: str, executor: str) -> tuple[JobFilter, Sequence[Job]]:
        """Return the jobs that run on a node of an executor, and the filter that means them; on an unknown one none."""
        store, seeing = self.backend.store, self.backend.seeing(caller)
        ids = frozenset(run.job_id for run in store.running() if (run.node, run.executor) == (name, executor))
        where = JobFilter(ids=ids, states=frozenset({JobState.RUNNING}))
        return where, [job for part in _in_parts(seeing.listed(where)) for job in store.jobs(part)]

    def _ask(
        self, kind: RequestKind, right: Right, caller: Caller, where: JobFilter, reason: str, *, payload: str = ""
    ) -> Sequence[Job]:
        jobs = self._found(kind, caller, where)
        self.backend.seeing(caller).require(right, jobs)
        return self._send(kind, jobs, caller, reason, payload)

    def _family(self, caller: Caller, job: Job, where: JobFilter) -> Sequence[Job]:
        seeing = self.backend.seeing(caller)
        seeing.require(Right.CANCEL, [job])
        return seeing.able(Right.CANCEL, self._found(RequestKind.CANCEL, caller, where))

    def _found(self, kind: RequestKind, caller: Caller, where: JobFilter) -> list[Job]:
        """Return the jobs that are meant; of those to be cancelled the deepest first."""
        store, seeing = self.backend.store, self.backend.seeing(caller)
        where = evolve(seeing.listed(where), states=where.states or ACTIVE)
        targets = [job for part in _in_parts(where) for job in store.jobs(part) if not job.cancel_requested]
        if kind not in CANCELS:
            return targets
        if kind is RequestKind.CANCEL_UNLESS_STARTED:
            targets = [job for job in targets if job.started_at is None]
        return sorted((job for job in targets if job.of_set is None), key=_depth, reverse=True)

    def _send(
        self, kind: RequestKind, jobs: Sequence[Job], caller: Caller, reason: str, payload: str = ""
    ) -> Sequence[Job]:
        backend = self.backend
        control = Control(JOBS, backend.store, backend.clock, make_room=backend.make_room)
        for ids in _ids_in_parts(jobs):
            control.send(kind, ids, reason, caller=caller, payload=payload)
        return jobs


def _ids_in_parts(jobs: Sequence[Job]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(jobs), MOST_AT_ONCE):
        yield tuple(job.id for job in jobs[start : start + MOST_AT_ONCE])


def _depth(job: Job) -> int:
    return job.group.count(BELOW) + 1 if job.group else 0


def _in_parts(where: JobFilter) -> Iterator[JobFilter]:
    """Split a filter by ids where there are more than a database takes in one question."""
    if where.ids is None:
        yield where
        return
    ids = sorted(where.ids)
    for start in range(0, len(ids), MOST_AT_ONCE):
        yield evolve(where, ids=frozenset(ids[start : start + MOST_AT_ONCE]))
