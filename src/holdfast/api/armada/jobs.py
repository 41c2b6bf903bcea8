"""Calls that read jobs: their states, details, errors and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.armada._generated import job, submit
from holdfast.api.armada.calls import CALLS
from holdfast.api.armada.events import fill_job
from holdfast.api.armada.translation import final_reason, run_error
from holdfast.api.connect.refusals import refuse
from holdfast.domain.failure import LOST, EndedBy, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.service.manifests import armada
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import LARGEST_PAGE, JobOperations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.protobuf.timestamp_pb2 import Timestamp

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.ports.overview import Latest
    from holdfast.service.operations.jobs import JobDetail

MOST_IDS = 500
"""In one request, as in upstream's shipped configuration."""
_WAITING = frozenset({JobState.QUEUED, JobState.WAITING, JobState.BACKOFF, JobState.HELD})
_UNSURE = frozenset({JobState.RUNNING, JobState.FAILED})
"""Armada's state for these depends on the last attempt."""
_ENDED = {
    JobState.SUCCEEDED: submit.SUCCEEDED,
    JobState.FAILED: submit.FAILED,
    JobState.CANCELLED: submit.CANCELLED,
}
_NANOSECONDS = 1_000_000_000


@CALLS.answers("GetJobStatus", "api.Jobs")
def job_status(call: Rpc, request: job.JobStatusRequest) -> job.JobStatusResponse:
    """Return the states of jobs; that of an unknown job is UNKNOWN."""
    _check_count(request.job_ids, "jobIds")
    states = _states_of(call, list(_by_id(call, request.job_ids).values()))
    return job.JobStatusResponse(job_states={job_id: states.get(job_id, submit.UNKNOWN) for job_id in request.job_ids})


@CALLS.answers("GetJobStatusUsingExternalJobUri", "api.Jobs")
def job_status_by_uri(call: Rpc, request: job.JobStatusUsingExternalJobUriRequest) -> job.JobStatusResponse:
    """Return the states of the jobs with an external address."""
    if not request.external_job_uri:
        refuse("request must contain external job uri")
    jobs = JobOperations(call.backend)
    label = f"{armada.EXTERNAL_URI}={request.external_job_uri}"
    where = jobs.job_filter(call.caller, JobQuery(queue=request.queue, group=request.jobset, labels=[label]))
    jobs_with_uri = jobs.page(call.caller, where, limit=LARGEST_PAGE).jobs
    return job.JobStatusResponse(job_states=_states_of(call, jobs_with_uri))


@CALLS.answers("GetJobDetails", "api.Jobs")
def job_details(call: Rpc, request: job.JobDetailsRequest) -> job.JobDetailsResponse:
    """Describe jobs, and with ``expand_job_run`` their runs, newest first."""
    _check_count(request.job_ids, "jobIds")
    jobs = _by_id(call, request.job_ids)
    latest = JobOperations(call.backend).latest(call.caller, list(jobs.values()))
    states = _states(jobs.values(), latest)
    answer = job.JobDetailsResponse()
    for record in jobs.values():
        details, last = answer.job_details[record.id], latest.get(record.id)
        _describe(details, record, states[record.id], request)
        if last is not None and last.runs:
            details.latest_run_id = last.runs[0].uid
        if record.attempt and request.expand_job_run:
            detail = JobOperations(call.backend).detail(call.caller, record)
            for run in sorted(detail.runs, key=lambda run: (run.attempt, run.dispatch), reverse=True):
                _run(details.job_runs.add(), run, detail)
    return answer


def _describe(details: job.JobDetails, record: Job, state: submit.JobState, request: job.JobDetailsRequest) -> None:
    written = armada.written_of(record.spec)
    details.job_id, details.queue, details.jobset, details.state = record.id, record.queue, record.group, state
    details.namespace = str(written.get("namespace") or "")
    _set_time(details.submitted_ts, record.submitted_at)
    _set_time(details.last_transition_ts, record.updated_at or record.submitted_at)
    if record.state is JobState.CANCELLED:
        details.cancel_reason = record.reason
        _set_time(details.cancel_ts, record.ended_at)
    if request.expand_job_spec:
        fill_job(details.job_spec, record, record.group)


@CALLS.answers("GetJobErrors", "api.Jobs")
def job_errors(call: Rpc, request: job.JobErrorsRequest) -> job.JobErrorsResponse:
    """Return why jobs failed; an empty text for a job that did not."""
    _check_count(request.job_ids, "JobIds")
    jobs = _by_id(call, request.job_ids)
    failed = [record for record in jobs.values() if record.state is JobState.FAILED]
    latest = JobOperations(call.backend).latest(call.caller, failed)
    errors = {
        record.id: _error(record, latest[record.id].attempt if record.id in latest else None) for record in failed
    }
    return job.JobErrorsResponse(job_errors={job_id: errors.get(job_id, "") for job_id in jobs})


def _error(job: Job, last: Attempt | None) -> str:
    if last is None or last.failure is None:
        return job.reason
    failed = last.failure.first_failed
    code, name = (None, "") if failed is None else (failed.exit_code, failed.name)
    message = run_error(last.failure.message, code, name)
    decision = last.decision
    if decision is None or (decision.policy is None and decision.code is not DecisionCode.GLOBAL_LIMIT):
        return message
    return final_reason(decision.reason, message, lost=not LOST.isdisjoint(last.failure.conditions))


@CALLS.answers("GetJobRunDetails", "api.Jobs")
def job_run_details(call: Rpc, request: job.JobRunDetailsRequest) -> job.JobRunDetailsResponse:
    """Describe runs by their ids."""
    _check_count(request.run_ids, "RunIds")
    run_ids = set(request.run_ids)
    answer = job.JobRunDetailsResponse()
    for record in _by_id(call, list({run_id.partition("-")[0] for run_id in run_ids})).values():
        detail = JobOperations(call.backend).get(call.caller, record.id)
        for run in detail.runs:
            if run.uid in run_ids:
                _run(answer.job_run_details[run.uid], run, detail)
    return answer


@CALLS.answers("GetActiveQueues", "api.Jobs")
def active_queues(call: Rpc, _request: job.GetActiveQueuesRequest) -> job.GetActiveQueuesResponse:
    """List the queues with running jobs, as upstream does; there is one pool."""
    answer = job.GetActiveQueuesResponse()
    load = JobOperations(call.backend).load(call.caller)
    active = sorted(queue for queue, state in load if state is JobState.RUNNING)
    if active:
        answer.active_queues_by_pool["default"].queues.extend(active)
    return answer


def _check_count(ids: Sequence[str], what: str) -> None:
    if len(ids) > MOST_IDS:
        refuse(f"request contained more than {MOST_IDS} {what}")


def _by_id(call: Rpc, ids: Sequence[str]) -> dict[str, Job]:
    jobs = JobOperations(call.backend)
    where = jobs.job_filter(call.caller, JobQuery(ids=list(ids)))
    return {job.id: job for job in jobs.page(call.caller, where, limit=LARGEST_PAGE).jobs} if ids else {}


def _states_of(call: Rpc, jobs: Sequence[Job]) -> Mapping[str, submit.JobState]:
    unsure = [job for job in jobs if job.state in _UNSURE]
    return _states(jobs, JobOperations(call.backend).latest(call.caller, unsure))


def _states(jobs: Iterable[Job], latest: Mapping[str, Latest]) -> Mapping[str, submit.JobState]:
    states: dict[str, submit.JobState] = {}
    for record in jobs:
        if record.state in _WAITING:
            states[record.id] = submit.QUEUED
        elif record.state in _UNSURE and record.id in latest:
            states[record.id] = _state_of_last(record, latest[record.id].attempt)
        elif record.state is JobState.RUNNING:
            states[record.id] = submit.PENDING
        else:
            states[record.id] = _ENDED.get(record.state, submit.UNKNOWN)
    return states


def _state_of_last(job: Job, attempt: Attempt | None) -> submit.JobState:
    if job.state is JobState.RUNNING:
        return submit.RUNNING if attempt is not None and attempt.started_at is not None else submit.PENDING
    failure = None if attempt is None else attempt.failure
    conditions = frozenset[str]() if failure is None else failure.conditions
    if FailureCondition.UNSCHEDULABLE in conditions:
        return submit.REJECTED
    return submit.PREEMPTED if FailureCondition.PREEMPTED in conditions else submit.FAILED


def _run(details: job.JobRunDetails, run: Run, of: JobDetail) -> None:
    created_at = next((attempt.created_at for attempt in of.attempts if attempt.number == run.attempt), None)
    details.run_id, details.job_id = run.uid, run.job_id
    details.cluster, details.node, details.state = run.executor, run.node, _run_state(run)
    _set_time(details.leased_ts, created_at)
    _set_time(details.pending_ts, created_at)
    _set_time(details.started_ts, run.started_at)
    _set_time(details.finished_ts, run.ended_at)


def _run_state(run: Run) -> job.JobRunState:
    if run.outcome is not None and run.outcome.ended_by is EndedBy.PREEMPTION:
        return job.RUN_STATE_PREEMPTED
    if run.outcome is not None:
        failed = run.outcome.conditions or any(container.failed for container in run.outcome.containers)
        return job.RUN_STATE_FAILED if failed else job.RUN_STATE_SUCCEEDED
    if run.status is RunStatus.RUNNING or run.started_at is not None:
        return job.RUN_STATE_RUNNING
    return job.RUN_STATE_PENDING


def _set_time(moment: Timestamp, seconds: float | None) -> None:
    if seconds is not None:
        moment.FromNanoseconds(int(seconds * _NANOSECONDS))
