"""Jobs: list, read, explain, cancel, hold, release and retry them."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.native.patch import patched
from holdfast.dialects.native.writing import write_job
from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.access.group import Grouped
from holdfast.domain.audit import Act, Subject
from holdfast.domain.job import JOB_TERMINAL, Job, JobState
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.gang.conclude import retried as retried_by_hand
from holdfast.errors import InvalidRequest, NotFound, Problem, UnreadableSpec
from holdfast.ports.overview import StateOfJob
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.admission.dependencies import about_to_be_retried
from holdfast.service.detail import JobDetail, detail_of
from holdfast.service.logs import LARGEST_PART, MOST_LINES, LogQuery, Logs, LogText
from holdfast.service.naming import find_attempt
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import read_filter
from holdfast.service.operations.steering import Steers
from holdfast.service.quarantined import shown_jobs
from holdfast.service.steering.jobs import JOBS
from holdfast.service.summary import set_decisions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Attempt, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.domain.workloads.explanation import Explanation
    from holdfast.ports.names import ListedName, NamedJob
    from holdfast.ports.overview import Latest
    from holdfast.ports.requests import Request
    from holdfast.service.operations.backend import Backend
    from holdfast.service.operations.filters import JobQuery

__all__ = ["LARGEST_PART", "MOST_LINES", "JobDetail", "LogQuery", "LogText"]
_MOST_MANIFESTS = 1_024
MOST_STATES = 10_000
LARGEST_PAGE = 1000


class Page(Struct, frozen=True):
    """A part of the list of jobs."""

    jobs: Sequence[Job]
    next_after: int | None
    """Where the list continues; ``None`` on the last page."""


class JobOperations(Steers[Job], frozen=True):
    """The operations on jobs."""

    rules = JOBS

    @asks(Right.WATCH, Subject.JOB)
    def job_filter(self, caller: Caller, query: JobQuery) -> JobFilter:
        """Return the filter of a list; see ``read_filter``."""
        return read_filter(self.backend.seeing(caller), query)

    @asks(Right.WATCH, Subject.JOB)
    def page(self, caller: Caller, where: JobFilter, *, after: int = 0, limit: int = LARGEST_PAGE) -> Page:
        """List jobs in order of submission; jobs submitted meanwhile appear on later pages."""
        seeing = self.backend.seeing(caller)
        listed = self.backend.store.listed(seeing.listed(where), after=after, limit=limit + 1)
        jobs, more = listed.jobs, len(listed.jobs) > limit
        shown = self._shown(jobs[:limit], listed.quarantined)
        return Page(seeing.jobs(shown), jobs[limit - 1].seq if more else None)

    def _shown(self, jobs: Sequence[Job], quarantined: Mapping[str, Quarantined]) -> Sequence[Job]:
        """Show jobs with pending retries applied: a job that a user has just retried is no longer shown as ended."""
        retried = about_to_be_retried(self.backend.store) if any(job.terminal for job in jobs) else frozenset()
        jobs_seen = [
            retried_by_hand(job, "", job.updated_at) if job.terminal and job.id in retried else job for job in jobs
        ]
        return shown_jobs(jobs_seen, quarantined)

    @asks(Right.WATCH, Subject.JOB)
    def latest(self, caller: Caller, jobs: Sequence[Job]) -> Mapping[str, Latest]:
        """Return the last attempt of each job, by job id."""
        return self.backend.seeing(caller).latest(jobs, self.backend.store.latest_of([job.id for job in jobs]))

    @asks(Right.WATCH, Subject.JOB)
    def states(self, caller: Caller, ids: Sequence[str]) -> Mapping[str, StateOfJob]:
        """Return the states of jobs by id; unknown ones are left out, and one about to be retried is queued again.

        Raises:
            InvalidRequest: There are too many.
        """
        if len(ids) > MOST_STATES:
            msg = "too many ids"
            raise InvalidRequest(msg, problems=[Problem("ids", f"has {len(ids)}; at most {MOST_STATES}")])
        states = dict(self.backend.store.job_states(ids))
        if any(job.state in JOB_TERMINAL for job in states.values()):
            for key in about_to_be_retried(self.backend.store).intersection(states):
                has_started = states[key].has_started and states[key].state not in JOB_TERMINAL
                states[key] = StateOfJob(JobState.QUEUED, has_started)
        seen = self.backend.seeing(caller).readable()
        if seen is None:
            return states
        visible = {job.id for job in self.backend.store.jobs(JobFilter(ids=frozenset(states), seen=seen))}
        return {key: state for key, state in states.items() if key in visible}

    @asks(Right.WATCH, Subject.JOB)
    def load(self, caller: Caller) -> Mapping[tuple[str, JobState], int]:
        """Count unfinished jobs by queue and state, with one query."""
        return self.backend.store.queue_load(seen=self.backend.seeing(caller).readable())

    @asks(Right.WATCH, Subject.JOB)
    def get(self, caller: Caller, ref: str) -> JobDetail:
        """Read a job in full.

        Raises:
            NotFound: The job does not exist.
        """
        store, seeing = self.backend.store, self.backend.seeing(caller)
        [job] = self._shown([store.job(seeing.job(Right.WATCH, ref))], store.quarantined())
        detail = detail_of(job, store, self.backend.explainer)
        return seeing.detail(evolve(detail, set_decisions=set_decisions(store, detail.job, detail.attempts)))

    @asks(Right.WATCH, Subject.JOB)
    def detail(self, caller: Caller, job: Job) -> JobDetail:
        """Read the full detail of a job from a list."""
        return self.backend.seeing(caller).detail(detail_of(job, self.backend.store, self.backend.explainer))

    @asks(Right.WATCH, Subject.JOB)
    def details(self, caller: Caller, jobs: Sequence[Job]) -> Sequence[JobDetail]:
        """Read the attempts of jobs from a list, and the runs of the last ones, without the rules that were considered.

        Finding these means to repeat each decision, which takes longer than the rest for jobs with many attempts.
        """
        ids, store, seeing = [job.id for job in jobs], self.backend.store, self.backend.seeing(caller)
        attempts, runs = store.attempts_of(ids), store.last_runs_of(ids)
        return [seeing.detail(JobDetail(job, attempts.get(job.id, ()), runs.get(job.id, ()))) for job in jobs]

    @asks(Right.WATCH, Subject.JOB)
    def attempt(self, caller: Caller, ref: str, number: int) -> tuple[JobDetail, Attempt]:
        """Read a job, and one of its attempts.

        Raises:
            NotFound: The job or the attempt does not exist.
        """
        detail = self.get(caller, ref)
        return detail, find_attempt(detail.job, detail.attempts, number)

    @asks(Right.WATCH, Subject.JOB)
    def history(self, caller: Caller, ref: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through.

        Raises:
            NotFound: There is no such job.
        """
        ref = self.backend.seeing(caller).job(Right.WATCH, ref)
        return self.backend.store.history(self.backend.store.job(ref).id)

    @asks(Right.LOGS, Subject.JOB)
    def logged(self, caller: Caller, ref: str) -> Job:
        """Return a job with the right to read its logs only, without the right to watch it.

        Raises:
            NotFound: The job does not exist.
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

    @asks(Right.LOGS, Subject.JOB)
    def result(self, caller: Caller, job: Job, *, limit: int) -> bytes | None:
        """Return the result of the last attempt of a job from a list; ``None`` if it left none, or a larger one."""
        self.backend.seeing(caller).job(Right.LOGS, job.id)
        return self.backend.logs.result(job.id, job.attempt, 0, limit=limit)

    @asks(Right.WATCH, Subject.JOB)
    def why(self, caller: Caller, ref: str, number: int | None = None) -> Explanation[Job]:
        """Explain a job's state by its last decision, or by that of an attempt.

        Raises:
            NotFound: The job or the attempt does not exist.
        """
        seeing = self.backend.seeing(caller)
        if seeing.everything():
            return self.backend.explainer.why(ref, number)
        job = self.backend.store.job(seeing.job(Right.WATCH, ref))
        quoting = seeing.sight(job) is Sight.EVERYTHING
        return self.backend.explainer.why(job.id, number, quoting=quoting, seen=seeing.readable())

    @asks(Right.CHANGE, Subject.JOB)
    def retry(self, caller: Caller, ref: str, reason: str = "", changes: Mapping[str, Any] | None = None) -> Job:
        """Request another attempt of a job that has ended or waits for its retry; it uses no retry.

        Args:
            caller: The caller.
            ref: The job.
            reason: A reason for people.
            changes: Changed fields of its manifest, in the short form.

        Raises:
            NotFound: The job does not exist.
            Conflict: It runs, is over for good, or cannot be retried by a user.
            InvalidManifest: It would not be valid with the changes; with every problem.
        """
        ref = self.backend.seeing(caller).job(Right.SUBMIT if changes else Right.CHANGE, ref)
        change = partial(patched, patch=changes) if changes else None
        return self._control().ask(Act.RETRY, ref, reason, caller=caller, what={"change": change})


class NamedJobs(Struct, frozen=True):
    """The jobs that have a name in another system."""

    backend: Backend
    system: str

    @asks(Right.WATCH, Subject.JOB)
    def find(self, caller: Caller, name: str) -> Job:
        """Return the job of a name.

        Raises:
            NotFound: No job has it.
        """
        where = self.backend.seeing(caller).listed(JobFilter(named=self._meant(name)))
        jobs = self.backend.store.jobs(where, limit=1)
        if not jobs:
            msg = f"job {name!r} does not exist"
            raise NotFound(msg)
        return jobs[0]

    @asks(Right.WATCH, Subject.JOB)
    def every(self, caller: Caller, names: Sequence[str]) -> Mapping[str, Job]:
        """Return the jobs of names, by name, as far as the caller may see them."""
        begins = self._meant().begins
        holders = self.backend.store.named([begins + name for name in names])
        jobs = self.read(caller, [holder.job_id for holder in holders.values()])
        by_name = {name: jobs.get(holders[begins + name].job_id) for name in names if begins + name in holders}
        return {name: job for name, job in by_name.items() if job is not None}

    @asks(Right.WATCH, Subject.JOB)
    def read(self, caller: Caller, ids: Sequence[str]) -> Mapping[str, Job]:
        """Return jobs by id, as far as the caller may see them."""
        operations, by_id = JobOperations(self.backend), dict[str, Job]()
        for start in range(0, len(ids), LARGEST_PAGE):
            some = JobFilter(ids=frozenset(ids[start : start + LARGEST_PAGE]))
            by_id.update({job.id: job for job in operations.page(caller, some).jobs})
        return by_id

    @asks(Right.WATCH, Subject.JOB)
    def beginning(self, caller: Caller, prefix: str) -> Sequence[ListedName]:
        """List the names that begin with a text, in order of submission of their jobs."""
        begins = self._meant().begins
        names_found = self.backend.store.beginning(begins + prefix, seen=self.backend.seeing(caller).readable())
        return [evolve(entry, name=entry.name.removeprefix(begins)) for entry in names_found]

    @asks(Right.SUBMIT, Subject.JOB)
    def holder(self, _caller: Caller, name: str) -> NamedJob | None:
        """Return the job that has a name, even if the caller may not see it; ``None`` if the name is free."""
        key = self._meant().begins + name
        return self.backend.store.named([key]).get(key)

    @asks(Right.CANCEL, Subject.JOB)
    def family_ends(self, caller: Caller, name: str, job: Job, reason: str) -> tuple[Request, ...]:
        """Return the requests to cancel a job and the jobs below its name, for the job that takes over the name.

        Raises:
            Forbidden: The caller may not cancel the job.
        """
        return JobBatches(self.backend).family_ends(caller, job, self.subtree(caller, name), reason)

    @asks(Right.WATCH, Subject.JOB)
    def names(self, _caller: Caller, jobs: Sequence[Job]) -> Mapping[str, str]:
        """Return the names of jobs by their ids."""
        names_found = self.backend.store.names_of([job.id for job in jobs])
        begins = self._meant().begins
        return {job_id: name.removeprefix(begins) for job_id, name in names_found.items() if name.startswith(begins)}

    @asks(Right.WATCH, Subject.JOB)
    def running(self, caller: Caller, runs: Sequence[Run]) -> Mapping[str, str]:
        """Return the names of the jobs of runs by job id, as far as the caller may see them."""
        ids = frozenset(run.job_id for run in runs)
        where = self.backend.seeing(caller).listed(JobFilter(ids=ids, named=self._meant()))
        return self.names(caller, self.backend.store.jobs(where)) if ids else {}

    @asks(Right.WATCH, Subject.JOB)
    def subtree(self, _caller: Caller, name: str | None = None) -> JobFilter:
        """Return the filter for a job and all below it; without a name, for all jobs of the system."""
        return JobFilter(named=self._meant(name, below=True))

    def _meant(self, name: str | None = None, *, below: bool = False) -> Grouped:
        return Grouped(self.system if name is None else f"{self.system}/{name}", below=below or name is None)


@lru_cache(maxsize=_MOST_MANIFESTS)  # clients that wait for a job read it many times
def manifest_of(stored: str) -> dict[str, Any]:
    """Return a stored job in the short form, not to be modified; an unreadable one as it is stored."""
    try:
        return write_job(load_spec(stored))
    except UnreadableSpec:
        return {"unreadable": stored}
