"""Jobs: submit, cancel, preempt and reprioritize them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.api.armada._generated import health, submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.mapping import plain
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.domain.record import evolve
from holdfast.errors import InvalidRequest, NotFound
from holdfast.service.manifests import armada
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.catalogue import Queues
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import LARGEST_PAGE, JobOperations
from holdfast.service.operations.submissions import Submissions

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job
    from holdfast.ports.store import JobFilter

_LONGEST_REASON = 50
"""Bytes."""
CANCELLED_ON_QUEUE = "cancelled by CancelOnQueue"
"""The reason, as upstream records it."""
POOL = "default"
_WAITING = ("Queued", "BackOff", "Waiting", "Held")
_STATES = {submit.QUEUED: _WAITING, submit.PENDING: ("Running",), submit.RUNNING: ("Running",)}


@CALLS.answers("SubmitJobs", "api.Submit")
def submit_jobs(call: Rpc, request: submit.JobSubmitRequest) -> submit.JobSubmitResponse:
    """Submit jobs, all or none; a known client id is answered with its job."""
    _require_queue(call, request.queue, Code.PERMISSION_DENIED)
    items = _items(request)
    sizes = [_size(item) for item in request.job_request_items]
    submissions = Submissions(call.backend)
    try:
        written = armada.written_jobs(
            request.queue, request.job_set_id, items, sizes=sizes, engines=partial(submissions.engines, call.caller)
        )
        if not written:
            return submit.JobSubmitResponse()
        outcomes = submissions.submit_many(call.caller, written)
    except InvalidRequest as error:
        problems = error.problems
        refuse(problems[0].message if problems else error.message, problems)
    answer = submit.JobSubmitResponse()
    for outcome in outcomes:
        answer.job_response_items.add(job_id="" if outcome.created is None else outcome.created.id)
    return answer


def _items(request: submit.JobSubmitRequest) -> list[dict[str, Any]]:
    """Return each item as in JSON; equal items are one object, which is read once."""
    by_bytes: dict[bytes, dict[str, Any]] = {}
    items = []
    for item in request.job_request_items:
        key = item.SerializeToString()
        if key not in by_bytes:
            by_bytes[key] = _item(item)
        items.append(by_bytes[key])
    return items


def _item(submitted: submit.JobSubmitRequestItem) -> dict[str, Any]:
    item = plain(submitted)
    if submitted.HasField("pod_spec"):
        item.setdefault("podSpec", {})
    return item


def _size(item: submit.JobSubmitRequestItem) -> int:
    pods = [*([item.pod_spec] if item.HasField("pod_spec") else []), *item.pod_specs]
    return pods[0].ByteSize() if pods else 0


@CALLS.answers("CancelJobs", "api.Submit")
def cancel_jobs(call: Rpc, request: submit.JobCancelRequest) -> submit.CancellationResult:
    """Cancel jobs by their ids; without any, the whole job set."""
    _check_reason(request.reason)
    ids = list(dict.fromkeys([*request.job_ids, *([request.job_id] if request.job_id else [])]))
    if not ids:
        whole_set = submit.JobSetCancelRequest(
            queue=request.queue, job_set_id=request.job_set_id, reason=request.reason
        )
        cancel_job_set(call, whole_set)
        return submit.CancellationResult(cancelled_ids=[""])
    _check_job_set(request.queue, request.job_set_id)
    _require_queue(call, request.queue, Code.NOT_FOUND)
    JobBatches(call.backend).cancel(
        call.caller, _job_filter(call, request.queue, request.job_set_id, ids), request.reason
    )
    return submit.CancellationResult(cancelled_ids=ids)


@CALLS.answers("CancelJobSet", "api.Submit")
def cancel_job_set(call: Rpc, request: submit.JobSetCancelRequest) -> None:
    """Cancel the jobs of a set, or those of them in some states."""
    _check_reason(request.reason)
    _check_job_set(request.queue, request.job_set_id)
    states = set(request.filter.states)
    if (submit.PENDING in states) is not (submit.RUNNING in states):
        refuse("unsupported state combination - state PENDING and RUNNING must always be used together")
    _require_queue(call, request.queue, Code.NOT_FOUND)
    names = sorted({name for state in states for name in _STATES.get(state, ())})
    if not states or names:
        where = _job_filter(call, request.queue, request.job_set_id, states=names)
        JobBatches(call.backend).cancel(call.caller, where, request.reason)


@CALLS.answers("PreemptJobs", "api.Submit")
def preempt_jobs(call: Rpc, request: submit.JobPreemptRequest) -> submit.PreemptionResult:
    """Preempt jobs; a job that is not running is left alone without a word, as upstream does."""
    _check_reason(request.reason)
    _check_job_set(request.queue, request.job_set_id)
    _require_queue(call, request.queue, Code.NOT_FOUND)
    if request.job_ids:
        where = _job_filter(call, request.queue, request.job_set_id, request.job_ids)
        JobBatches(call.backend).preempt(call.caller, where, request.reason)
    return submit.PreemptionResult(preemption_results=dict.fromkeys(request.job_ids, ""))


@CALLS.answers("ReprioritizeJobs", "api.Submit")
def reprioritize_jobs(call: Rpc, request: submit.JobReprioritizeRequest) -> submit.JobReprioritizeResponse:
    """Give jobs another priority; without ids, the whole job set."""
    _check_job_set(request.queue, request.job_set_id)
    _require_queue(call, request.queue, Code.NOT_FOUND)
    where = _job_filter(call, request.queue, request.job_set_id, request.job_ids or None)
    JobBatches(call.backend).reprioritize(call.caller, where, -armada.priority_of(request.new_priority))
    changed = request.job_ids or [f"all jobs in job set {request.job_set_id}"]
    return submit.JobReprioritizeResponse(reprioritization_results=dict.fromkeys(changed, ""))


@CALLS.answers("PreemptOnQueue", "api.QueueService")
def preempt_on_queue(call: Rpc, request: submit.QueuePreemptRequest) -> None:
    """Preempt the running jobs of a queue, or those with some priority classes."""
    if not request.name:
        refuse("cannot preempt jobs on queue with empty name")
    where = _in_queue(call, request.name, request.priorityClasses, request.pools, ["Running"])
    if where is not None:
        JobBatches(call.backend).preempt(call.caller, where)


@CALLS.answers("CancelOnQueue", "api.QueueService")
def cancel_on_queue(call: Rpc, request: submit.QueueCancelRequest) -> None:
    """Cancel the jobs of a queue in some states, or those of them with some priority classes."""
    if not request.name:
        refuse("cannot cancel jobs on queue with empty name")
    if not _STATES.keys() | {submit.LEASED} >= {*request.jobStates}:
        refuse("provided job states must be non-terminal")
    states = sorted({name for state in request.jobStates for name in _STATES.get(state, ("Running",))})
    where = _in_queue(call, request.name, request.priorityClasses, request.pools, states)
    if where is not None and states:
        JobBatches(call.backend).cancel(call.caller, where, CANCELLED_ON_QUEUE)


def _in_queue(
    call: Rpc, queue: str, classes: Sequence[str], pools: Sequence[str], states: Sequence[str]
) -> JobFilter | None:
    """Return the jobs of a queue to act on; ``None`` if other pools than ours are named."""
    if pools and POOL not in pools:
        return None
    jobs = JobOperations(call.backend)
    where = jobs.job_filter(call.caller, JobQuery(queue=queue, states=states))
    if not classes:
        return where
    jobs_in_queue = (job for page in _pages(call, where) for job in page)
    return evolve(where, ids=frozenset(job.id for job in jobs_in_queue if armada.priority_class_of(job) in classes))


def _job_filter(
    call: Rpc, queue: str, job_set: str, ids: Sequence[str] | None = None, states: Sequence[str] = ()
) -> JobFilter:
    query = JobQuery(queue=queue, group=job_set, ids=ids, states=states)
    return JobOperations(call.backend).job_filter(call.caller, query)


def _pages(call: Rpc, where: JobFilter) -> Iterator[Sequence[Job]]:
    jobs, after = JobOperations(call.backend), 0
    while True:
        page = jobs.page(call.caller, where, after=after, limit=LARGEST_PAGE)
        yield page.jobs
        if page.next_after is None:
            return
        after = page.next_after


def _require_queue(call: Rpc, name: str, code: Code) -> None:
    try:
        Queues(call.backend.store).require(call.caller, name)
    except NotFound as error:
        raise Rejected(code, f'could not find queue "{name}"') from error


def _check_reason(reason: str) -> None:
    if len(reason.encode()) > _LONGEST_REASON:
        shown = reason.encode()[:_LONGEST_REASON].decode(errors="ignore")
        message = f"reason cannot be longer than {_LONGEST_REASON} bytes"
        refuse(f'value "{shown}..." is invalid for field "Reason": {message}')


def _check_job_set(queue: str, job_set: str) -> None:
    if not queue:
        refuse('value "" is invalid for field "Queue": queue cannot be empty')
    if not job_set:
        refuse('value "" is invalid for field "JobSetId": jobset cannot be empty')


@CALLS.answers("Health", "api.Submit", "api.Event")
def healthy(_call: Rpc, _request: object) -> health.HealthCheckResponse:
    """Answer that the door works."""
    return health.HealthCheckResponse(status=health.HealthCheckResponse.SERVING)
