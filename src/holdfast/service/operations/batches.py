"""Cancels, preempts and reprioritizes many jobs at once."""

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
"""Jobs in one transaction; more take several."""
ACTIVE = frozenset(JobState) - JOB_TERMINAL


class JobBatches(Struct, frozen=True):
    """Acts on many jobs at once. A job that the act does not apply to is left alone."""

    backend: Backend

    @asks(Right.CANCEL, Subject.JOB)
    def cancel(
        self, caller: Caller, where: JobFilter, reason: str = "", *, unless_started: bool = False
    ) -> Sequence[Job]:
        """Cancel jobs, except those of job sets, which only end with their set; returns the jobs.

        Jobs in deeper groups are cancelled first: what a job launched ends before it. With ``unless_started``, jobs
        that have started by the time the controller acts are left alone.

        Raises:
            Forbidden: The caller may not cancel one of them.
        """
        kind = RequestKind.CANCEL_UNLESS_STARTED if unless_started else RequestKind.CANCEL
        return self._ask(kind, Right.CANCEL, caller, where, reason)

    @asks(Right.CANCEL, Subject.JOB)
    def cancel_family(self, caller: Caller, job: Job, where: JobFilter, reason: str) -> Sequence[Job]:
        """Cancel a job and the jobs below it; returns the jobs.

        Jobs that others launched below it, and that the caller may not cancel, end with their parent.

        Raises:
            Forbidden: The caller may not cancel the job itself.
        """
        return self._send(RequestKind.CANCEL, self._family(caller, job, where), caller, reason)

    @asks(Right.CANCEL, Subject.JOB)
    def family_ends(self, caller: Caller, job: Job, where: JobFilter, reason: str) -> tuple[Request, ...]:
        """Return the requests of ``cancel_family``, to be appended together with the job that replaces it.

        Raises:
            Forbidden: The caller may not cancel the job itself.
        """
        now = self.backend.clock.now()
        return tuple(
            Request(RequestKind.CANCEL, ids, now, actor=caller.actor, reason=reason)
            for ids in _ids_in_parts(self._family(caller, job, where))
        )

    @asks(Right.PREEMPT, Subject.JOB)
    def preempt(self, caller: Caller, where: JobFilter, reason: str = "", *, node: str = "") -> Sequence[Job]:
        """Preempt jobs, or only their runs on a node; returns the jobs.

        Raises:
            Forbidden: The caller may not preempt one of them.
        """
        return self._ask(RequestKind.PREEMPT, Right.PREEMPT, caller, where, reason, payload=node)

    @asks(Right.REPRIORITIZE, Subject.JOB)
    def reprioritize(self, caller: Caller, where: JobFilter, priority: int) -> Sequence[Job]:
        """Change the priority of jobs; higher ones go first. Returns the jobs.

        Raises:
            Forbidden: The caller may not reprioritize one of them.
        """
        kind, reason = RequestKind.REPRIORITIZE, f"priority {priority}"
        return self._ask(kind, Right.REPRIORITIZE, caller, where, reason, payload=str(priority))

    @asks(Right.PREEMPT, Subject.JOB)
    def preempt_node(self, caller: Caller, name: str, reason: str = "") -> Sequence[Job]:
        """Preempt all jobs that run on the nodes of a name; returns the jobs.

        Raises:
            NotFound: No node has that name.
            Forbidden: The caller may not preempt one of the jobs.
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
        """Return the jobs that run on a node of an executor, and the filter for them; none for an unknown node."""
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
        """Return the jobs to act on; those to be cancelled with the deepest first."""
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
    """Split a filter with more ids than a database takes in one query."""
    if where.ids is None:
        yield where
        return
    ids = sorted(where.ids)
    for start in range(0, len(ids), MOST_AT_ONCE):
        yield evolve(where, ids=frozenset(ids[start : start + MOST_AT_ONCE]))
