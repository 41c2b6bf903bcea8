"""/jobs: lists, one job with its attempts, decisions, explanation and logs, and the requests that change jobs."""

from typing import Annotated, Literal

from pydantic import AwareDatetime

from holdfast.api.http.endpoints.endpoint import (
    LONGEST_NAME,
    MOST_FILTERS,
    Endpoints,
    Group,
    Param,
    Ref,
    User,
    Word,
)
from holdfast.api.http.endpoints.parameters import read_number, write_cursor
from holdfast.domain.audit import Act, Caller
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.overview import Latest
from holdfast.ports.store import JobFilter
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery, mark_of
from holdfast.service.operations.jobs import (
    LARGEST_PAGE,
    LARGEST_PART,
    MOST_LINES,
    JobDetail,
    JobOperations,
    LogQuery,
    manifest_of,
)
from holdfast.wire.base import EncodedJson, as_written, page_written
from holdfast.wire.decisions import DecisionEntry, DecisionPage, Why
from holdfast.wire.jobs import (
    AskedJobs,
    AttemptPage,
    AttemptView,
    CancelledJobs,
    CancelRequest,
    HistoryPage,
    JobPage,
    JobStates,
    JobSummary,
    JobView,
    LogChunk,
    ManyJobs,
    NewPriorities,
    NewPriority,
    Reason,
    Reprioritized,
    RetryRequest,
    StatesQuery,
)
from holdfast.wire.render_decisions import set_decision_of
from holdfast.wire.render_events import history_entry
from holdfast.wire.render_jobs import attempt_views, job_outcome, job_summary, job_view, jobs_written, why_view
from holdfast.wire.render_pods import pods_view

_JOBS = Endpoints("jobs")
_ATTEMPTS = Endpoints("attempts")
_CONTROL = Endpoints("control")
ENDPOINTS = (_JOBS, _ATTEMPTS, _CONTROL)

DEFAULT_PAGE = 100
MOST_IDS = 200
FULL_PAGE_BYTES = 4 << 20
"""A page of jobs in full ends before the job that would make it larger than this."""
_READ_AT_ONCE = 50
_MOST_ATTEMPTS = 1 << 31
_LARGEST_OFFSET = 1 << 62

AttemptNumber = Annotated[int, Param("From 1.", ge=1, le=_MOST_ATTEMPTS)]
WhichAttempt = Annotated[int | None, Param("From 1; absent: the last.", ge=1, le=_MOST_ATTEMPTS)]


@_JOBS.add("GET", "/jobs", JobPage, 404, summary="List jobs, oldest first")
def list_jobs(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    *,
    state: Annotated[list[str] | None, Param("Any of these; case is ignored.", max_length=MOST_FILTERS)] = None,
    queue: Word = None,
    name: Word = None,
    job_set: Annotated[str | None, Param("Name or id of the job set they belong to.", max_length=LONGEST_NAME)] = None,
    label: Annotated[list[str] | None, Param("Each as `key=value`; all must hold.", max_length=MOST_FILTERS)] = None,
    quarantined: Annotated[bool, Param("Only jobs that are quarantined.")] = False,
    array: Annotated[str | None, Param("Name or id of the array they are tasks of.", max_length=LONGEST_NAME)] = None,
    tasks: Annotated[bool, Param("Include the tasks of arrays.")] = True,
    id: Annotated[list[str] | None, Param("Only these.", max_length=MOST_IDS)] = None,  # noqa: A002 - the parameter's name
    user: User = None,
    group: Group = None,
    limit: Annotated[int, Param(ge=1, le=LARGEST_PAGE)] = DEFAULT_PAGE,
    cursor: Word = None,
    fields: Annotated[
        Literal["summary", "outcome", "full"],
        Param("How much to show of each; `outcome` adds how its last attempt went."),
    ] = "summary",
) -> JobPage | EncodedJson:
    """List jobs in order of submission; jobs submitted meanwhile appear on later pages.

    With `fields=full` a page ends before its limit rather than exceed 4 MiB, unless a single job is larger.
    """
    job_query = JobQuery(
        states=state or (),
        queue=queue,
        name=name,
        job_set=job_set,
        labels=label or (),
        quarantined=quarantined,
        array=array,
        tasks=tasks,
        ids=id,
        user=user,
        group=group,
    )
    jobs = JobOperations(backend)
    where = jobs.job_filter(caller, job_query)
    mark = mark_of(where)
    after = read_number(cursor, mark)
    if fields == "full":
        views, last = _in_full(jobs, caller, where, after, limit)
        return page_written(views, write_cursor(last, mark))
    page = jobs.page(caller, where, after=after, limit=limit)
    following = write_cursor(page.next_after, mark)
    if fields == "summary":
        return jobs_written(page.jobs, following)
    latest = jobs.latest(caller, page.jobs)
    return JobPage(items=[job_outcome(job, latest.get(job.id, Latest())) for job in page.jobs], next_cursor=following)


def _in_full(
    jobs: JobOperations, caller: Caller, where: JobFilter, after: int, limit: int
) -> tuple[list[bytes], int | None]:
    """Encode jobs in full, at least one and at most a page; also return where the next page begins."""
    views: list[bytes] = []
    room, last = FULL_PAGE_BYTES, after
    following: int | None = after
    while following is not None and len(views) < limit:
        page = jobs.page(caller, where, after=following, limit=min(_READ_AT_ONCE, limit - len(views)))
        following = page.next_after
        for job in page.jobs:
            view = as_written(full_job(jobs.detail(caller, job)))
            room -= len(view)
            if views and room < 0:
                return views, last
            views.append(view)
            last = job.seq
    return views, following


@_JOBS.add("POST", "/jobs/states", JobStates, 413, summary="Read the states of many jobs")
def job_states(backend: Backend, caller: Caller, query: StatesQuery) -> JobStates:
    """Read states by id; unknown ids are left out."""
    states = JobOperations(backend).states(caller, query.ids)
    return JobStates(
        states={job_id: str(job.state) for job_id, job in states.items()},
        started=[job_id for job_id, job in states.items() if job.has_started],
    )


@_JOBS.add("GET", "/jobs/{ref}", JobView, 404, summary="Read a job")
def get_job(backend: Backend, caller: Caller, ref: Ref) -> JobView:
    """Read a job with its attempts, runs and decisions."""
    return full_job(JobOperations(backend).get(caller, ref))


@_JOBS.add("GET", "/jobs/{ref}/history", HistoryPage, 404, summary="Read a job's history")
def get_history(backend: Backend, caller: Caller, ref: Ref) -> HistoryPage:
    """List the phases a job's attempts went through."""
    return HistoryPage(items=[history_entry(row) for row in JobOperations(backend).history(caller, ref)])


@_JOBS.add("GET", "/jobs/{ref}/logs", LogChunk, 404, summary="Read a run's log")
def get_logs(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    ref: Ref,
    *,
    attempt: WhichAttempt = None,
    rank: Annotated[int, Param(ge=0, le=_MOST_ATTEMPTS)] = 0,
    offset: Annotated[int | None, Param("Bytes.", ge=0, le=_LARGEST_OFFSET)] = None,
    limit: Annotated[int, Param("Bytes.", ge=1, le=LARGEST_PART)] = LARGEST_PART,
    tail: Annotated[
        int | None, Param("This many last lines of the newest run, instead of `offset`.", ge=0, le=MOST_LINES)
    ] = None,
    newest: Annotated[bool, Param("Begin no earlier than the newest run of the rank.")] = False,
    stream: Annotated[
        Literal["stdout", "stderr"],
        Param("Which stream to read if the job keeps them apart; otherwise stdout has both."),
    ] = "stdout",
    since: Annotated[AwareDatetime | None, Param("Begin no earlier than the first line of this second.")] = None,
    timestamps: Annotated[
        bool,
        Param(
            "Begin each line with the time it was written (RFC 3339); an incomplete line is held back until it ends."
        ),
    ] = False,
) -> LogChunk:
    """Read a part of a log; to follow it, repeat with `next_offset` until `finished`.

    A part belongs to one run. If a rank had several runs in succession, the next part continues with the next run.
    """
    at = None if since is None else since.timestamp()
    query = LogQuery(attempt, rank, offset, limit, tail, newest, stream == "stderr", at, timestamps)
    return LogChunk.model_validate(JobOperations(backend).logs(caller, ref, query), from_attributes=True)


@_ATTEMPTS.add("GET", "/jobs/{ref}/attempts", AttemptPage, 404, summary="List a job's attempts")
def list_attempts(backend: Backend, caller: Caller, ref: Ref) -> AttemptPage:
    """List a job's attempts, by number."""
    return AttemptPage(items=attempts_of(JobOperations(backend).get(caller, ref)))


@_ATTEMPTS.add("GET", "/jobs/{ref}/attempts/{number}", AttemptView, 404, summary="Read an attempt")
def get_attempt(backend: Backend, caller: Caller, ref: Ref, number: AttemptNumber) -> AttemptView:
    """Read one attempt with its runs and decision."""
    detail, attempt = JobOperations(backend).attempt(caller, ref, number)
    return attempts_of(detail)[detail.attempts.index(attempt)]


@_ATTEMPTS.add("GET", "/jobs/{ref}/decisions", DecisionPage, 404, summary="List a job's decisions")
def list_decisions(backend: Backend, caller: Caller, ref: Ref) -> DecisionPage:
    """List the decisions about a job's failures and those of its pods, by attempt."""
    return DecisionPage(
        items=[
            DecisionEntry(attempt=attempt.number, run=run, **dict(decision))
            for attempt in attempts_of(JobOperations(backend).get(caller, ref))
            for run, decision in (*((run.uid, run.decision) for run in attempt.runs), (None, attempt.decision))
            if decision is not None
        ]
    )


@_ATTEMPTS.add("GET", "/jobs/{ref}/why", Why, 404, summary="Explain a job")
def get_why(backend: Backend, caller: Caller, ref: Ref, *, attempt: WhichAttempt = None) -> Why:
    """Explain a job's state by its last decision, or by that of an attempt."""
    return why_view(JobOperations(backend).why(caller, ref, attempt))


def _text(reason: Reason | None) -> str:
    return reason.reason if reason else ""


@_CONTROL.add("POST", "/jobs/{ref}/cancel", JobSummary, 404, 409, 413, summary="Cancel a job", status=202)
def cancel(backend: Backend, caller: Caller, ref: Ref, body: CancelRequest | None = None) -> JobSummary:
    """Cancel a job: its runs are stopped, and it is never retried.

    With `unless_started` a job is left alone once an attempt has begun, even while it waits for the next one. The
    outcome shows soon after: the job is `Cancelled`, or `started_at` is set.
    """
    what = {"unless_started": body is not None and body.unless_started}
    return job_summary(JobOperations(backend).ask(caller, Act.CANCEL, ref, _text(body), what=what))


@_CONTROL.add("POST", "/jobs/{ref}/hold", JobSummary, 404, 409, 413, summary="Hold a waiting job", status=202)
def hold(backend: Backend, caller: Caller, ref: Ref, reason: Reason | None = None) -> JobSummary:
    """Hold a waiting job until it is released."""
    return job_summary(JobOperations(backend).ask(caller, Act.HOLD, ref, _text(reason)))


@_CONTROL.add("POST", "/jobs/{ref}/release", JobSummary, 404, 409, 413, summary="Release a held job", status=202)
def release(backend: Backend, caller: Caller, ref: Ref, reason: Reason | None = None) -> JobSummary:
    """Let a held job be scheduled again."""
    return job_summary(JobOperations(backend).ask(caller, Act.RELEASE, ref, _text(reason)))


@_CONTROL.add("POST", "/jobs/{ref}/retry", JobSummary, 404, 409, 413, 422, summary="Retry a job by hand", status=202)
def retry(backend: Backend, caller: Caller, ref: Ref, body: RetryRequest | None = None) -> JobSummary:
    """Request another attempt of a job that has ended or waits; it does not count as a retry. `set` changes the job."""
    return job_summary(JobOperations(backend).retry(caller, ref, _text(body), body.set if body else None))


@_CONTROL.add("POST", "/jobs/{ref}/preempt", JobSummary, 404, 409, 413, summary="Preempt a running job", status=202)
def preempt(backend: Backend, caller: Caller, ref: Ref, reason: Reason | None = None) -> JobSummary:
    """Preempt a running job: it fails as preempted, and policies decide whether it runs again."""
    return job_summary(JobOperations(backend).ask(caller, Act.PREEMPT, ref, _text(reason)))


@_CONTROL.add(
    "POST",
    "/jobs/{ref}/reprioritize",
    JobSummary,
    404,
    409,
    413,
    422,
    summary="Reprioritize a job",
    status=202,
)
def reprioritize(backend: Backend, caller: Caller, ref: Ref, new_priority: NewPriority) -> JobSummary:
    """Change the priority by which a job waits."""
    priority = new_priority.priority
    jobs, reason, what = JobOperations(backend), f"priority {priority}", {"priority": priority}
    return job_summary(jobs.ask(caller, Act.REPRIORITIZE, ref, reason, what=what))


@_CONTROL.add("POST", "/jobs/cancel", AskedJobs, 413, 422, summary="Cancel many jobs", status=202)
def cancel_many(backend: Backend, caller: Caller, cancelled_jobs: CancelledJobs) -> AskedJobs:
    """Cancel the jobs with these ids: all or none. Jobs of a job set end only with their set.

    With `unless_started` jobs are left alone whose attempt has begun when the request is acted on; `/jobs/states` shows
    which those are.
    """
    where = JobOperations(backend).job_filter(caller, JobQuery(ids=cancelled_jobs.ids))
    jobs = JobBatches(backend).cancel(
        caller, where, cancelled_jobs.reason, unless_started=cancelled_jobs.unless_started
    )
    return AskedJobs(ids=[job.id for job in jobs])


@_CONTROL.add("POST", "/jobs/preempt", AskedJobs, 413, 422, summary="Preempt many jobs", status=202)
def preempt_many(backend: Backend, caller: Caller, many_jobs: ManyJobs) -> AskedJobs:
    """Preempt those of the jobs with these ids that run: all or none; policies decide which run again."""
    where = JobOperations(backend).job_filter(caller, JobQuery(ids=many_jobs.ids, states=["Running"]))
    return AskedJobs(ids=[job.id for job in JobBatches(backend).preempt(caller, where, many_jobs.reason)])


@_CONTROL.add("POST", "/jobs/reprioritize", Reprioritized, 413, 422, summary="Reprioritize many jobs", status=202)
def reprioritize_many(backend: Backend, caller: Caller, new_priorities: NewPriorities) -> Reprioritized:
    """Change the priority of the jobs of a queue or group, or with these ids, that have not ended: all or none."""
    if new_priorities.queue is None and new_priorities.group is None and new_priorities.ids is None:
        msg = "the request selects no jobs"
        raise InvalidRequest(msg, problems=[Problem("group", "is required unless queue or ids is given")])
    where = JobOperations(backend).job_filter(
        caller, JobQuery(queue=new_priorities.queue, group=new_priorities.group, ids=new_priorities.ids)
    )
    return Reprioritized(count=len(JobBatches(backend).reprioritize(caller, where, new_priorities.priority)))


def full_job(detail: JobDetail) -> JobView:
    """Show a job in full."""
    manifest = manifest_of(detail.job.spec)
    pods = None if detail.pods is None else pods_view(detail.pods.spec, detail.pods.record)
    return job_view(detail.job, manifest=manifest, attempts=attempts_of(detail), pods=pods, owner=detail.owner)


def attempts_of(detail: JobDetail) -> list[AttemptView]:
    """Show a job's attempts, by number."""
    of_set = {number: set_decision_of(decision, detail.job) for number, decision in detail.set_decisions.items()}
    return attempt_views(detail.attempts, detail.runs, of_set)
