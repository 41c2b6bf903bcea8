"""Jobs: list, read, explain, cancel, hold, release, retry and preempt them."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.native.patch import patched
from holdfast.dialects.native.writing import write_job
from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JOB_TERMINAL, Job, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.errors import UnreadableSpec
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.logs import LARGEST_PART, MOST_LINES, LogQuery, Logs, LogText
from holdfast.service.naming import find_attempt, not_found
from holdfast.service.operations.filters import read_filter
from holdfast.service.operations.steering import Steers
from holdfast.service.query import LARGEST_PAGE, JobDetail, Page, Queries
from holdfast.service.refusals import audited
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Attempt
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.ports.overview import Latest
    from holdfast.service.explain import Explanation
    from holdfast.service.operations.backend import Backend
    from holdfast.service.operations.filters import Wanted

__all__ = ["LARGEST_PAGE", "LARGEST_PART", "MOST_LINES", "JobDetail", "LogQuery", "LogText", "Page"]
_MOST_MANIFESTS = 1_024
MOST_AT_ONCE = 10_000
"""Jobs in one transaction; more are asked in several, one after the other."""
ACTIVE = frozenset(JobState) - JOB_TERMINAL


class JobOperations(Steers[Job], frozen=True):
    """What can be asked of jobs."""

    rules = JOBS

    def _queries(self) -> Queries:
        return Queries(self.backend.store, self.backend.explainer)

    @asks(Right.WATCH, Subject.JOB)
    def meant(self, caller: Caller, wanted: Wanted) -> JobFilter:
        """Return the filter of a list; see ``read_filter``."""
        return read_filter(self.backend.seeing(caller), wanted)

    @asks(Right.WATCH, Subject.JOB)
    def page(self, caller: Caller, where: JobFilter, *, after: int = 0, limit: int = LARGEST_PAGE) -> Page:
        """List jobs in order of submission; what is submitted meanwhile appears on later pages."""
        seeing = self.backend.seeing(caller)
        page = self._queries().page(seeing.listed(where), after=after, limit=limit)
        return Page(seeing.jobs(page.jobs), page.next_after)

    @asks(Right.WATCH, Subject.JOB)
    def latest(self, caller: Caller, jobs: Sequence[Job]) -> Mapping[str, Latest]:
        """Return how the last attempt of each job went, by id."""
        return self.backend.seeing(caller).latest(jobs, self.backend.store.latest_of([job.id for job in jobs]))

    @asks(Right.WATCH, Subject.JOB)
    def states(self, caller: Caller, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of jobs by id; unknown ones are left out.

        Raises:
            InvalidRequest: There are too many.
        """
        found = self._queries().states(ids)
        seen = self.backend.seeing(caller).known()
        if seen is None:
            return found
        known = {job.id for job in self.backend.store.jobs(JobFilter(ids=frozenset(found), seen=seen))}
        return {key: state for key, state in found.items() if key in known}

    @asks(Right.WATCH, Subject.JOB)
    def load(self, caller: Caller) -> Mapping[tuple[str, JobState], int]:
        """Count the jobs that have not ended by their queue and state, with one question to the store."""
        return self.backend.store.queue_load(seen=self.backend.seeing(caller).known())

    @asks(Right.WATCH, Subject.JOB)
    def get(self, caller: Caller, ref: str) -> JobDetail:
        """Read a job with everything known of it.

        Raises:
            NotFound: There is no such job.
        """
        seeing = self.backend.seeing(caller)
        return seeing.detail(self._queries().detail(seeing.job(Right.WATCH, ref)))

    @asks(Right.WATCH, Subject.JOB)
    def detail(self, caller: Caller, job: Job) -> JobDetail:
        """Read everything known of a job of a list."""
        return self.backend.seeing(caller).detail(self._queries().detail_of(job))

    @asks(Right.WATCH, Subject.JOB)
    def attempt(self, caller: Caller, ref: str, number: int) -> tuple[JobDetail, Attempt]:
        """Read one attempt of a job, which comes with it.

        Raises:
            NotFound: There is no such job or attempt.
        """
        found = self.get(caller, ref)
        return found, find_attempt(found.job, found.attempts, number)

    @asks(Right.WATCH, Subject.JOB)
    def history(self, caller: Caller, ref: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through.

        Raises:
            NotFound: There is no such job.
        """
        return self._queries().history(self.backend.seeing(caller).job(Right.WATCH, ref))

    @asks(Right.LOGS, Subject.JOB)
    def logged(self, caller: Caller, ref: str) -> Job:
        """Return a job for whoever may read its logs, which takes no right to watch it.

        Raises:
            NotFound: There is no such job.
        """
        return self.backend.store.job(self.backend.seeing(caller).job(Right.LOGS, ref))

    @asks(Right.LOGS, Subject.JOB)
    def logs(self, caller: Caller, ref: str, query: LogQuery) -> LogText:
        """Read a part of a log.

        Raises:
            NotFound: There is no such job, attempt or rank.
            InvalidRequest: The query contradicts itself.
        """
        ref = self.backend.seeing(caller).job(Right.LOGS, ref)
        return Logs(self.backend.store, self.backend.logs).read(ref, query)

    @asks(Right.WATCH, Subject.JOB)
    def why(self, caller: Caller, ref: str, number: int | None = None) -> Explanation:
        """Explain why a job is where it is, by its last decision or that of an attempt.

        Raises:
            NotFound: There is no such job or attempt.
        """
        seeing = self.backend.seeing(caller)
        if seeing.everything():
            return self.backend.explainer.why(ref, number)
        job = self.backend.store.job(seeing.job(Right.WATCH, ref))
        quoting = seeing.sight(job) is Sight.EVERYTHING
        return self.backend.explainer.why(job.id, number, quoting=quoting, seen=seeing.known())

    @asks(Right.CHANGE, Subject.JOB)
    def retry(self, caller: Caller, ref: str, reason: str = "", changes: Mapping[str, Any] | None = None) -> Job:
        """Ask for another attempt of a job that has ended or waits; it counts as no retry.

        Args:
            caller: Who asks.
            ref: The job.
            reason: Why.
            changes: Fields of its manifest that are changed, in the short form.

        Raises:
            NotFound: There is no such job.
            Conflict: It runs, is over for good, or is not a user's to retry.
            InvalidManifest: It would not be valid with the changes; with every problem.
        """
        ref = self.backend.seeing(caller).job(Right.SUBMIT if changes else Right.CHANGE, ref)
        change = partial(patched, patch=changes) if changes else None
        return self._control().ask(Act.RETRY, ref, reason, by=caller, what={"change": change})


class JobBatches(Struct, frozen=True):
    """What is asked of many jobs at once; a job of which it is not true that it applies is left alone."""

    backend: Backend

    @asks(Right.CANCEL, Subject.JOB)
    def cancel(self, caller: Caller, where: JobFilter, reason: str = "") -> Sequence[Job]:
        """Ask for jobs to be cancelled, but those of job sets, which only end with their set; returns the jobs.

        Raises:
            Forbidden: One of them is not for the caller to cancel.
        """
        return self._ask(RequestKind.CANCEL, Right.CANCEL, caller, where, reason)

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
        store, seeing = self.backend.store, self.backend.seeing(caller)
        where = evolve(seeing.listed(where), states=where.states or ACTIVE)
        cancels = kind is RequestKind.CANCEL
        meant = [job for part in _in_parts(where) for job in store.jobs(part) if not job.cancel_requested]
        found = [job for job in meant if job.of_set is None] if cancels else meant
        seeing.require(right, found)
        control = Control(JOBS, store, self.backend.clock, make_room=self.backend.make_room)
        for start in range(0, len(found), MOST_AT_ONCE):
            ids = tuple(job.id for job in found[start : start + MOST_AT_ONCE])
            control.send(kind, ids, reason, by=caller, payload=payload)
        return found


def _in_parts(where: JobFilter) -> Iterator[JobFilter]:
    """Split a filter by ids where there are more than a database takes in one question."""
    if where.ids is None:
        yield where
        return
    ids = sorted(where.ids)
    for start in range(0, len(ids), MOST_AT_ONCE):
        yield evolve(where, ids=frozenset(ids[start : start + MOST_AT_ONCE]))


@lru_cache(maxsize=_MOST_MANIFESTS)  # whoever waits for a job asks for it many times
def manifest_of(stored: str) -> dict[str, Any]:
    """Return a stored job in the short form, not to be changed; an unreadable one is shown as it is stored."""
    try:
        return write_job(load_spec(stored))
    except UnreadableSpec:
        return {"unreadable": stored}
