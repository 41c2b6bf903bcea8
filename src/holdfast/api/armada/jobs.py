"""What can be asked of jobs: their states, details, errors and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.armada._generated import job, submit
from holdfast.api.armada.calls import answers
from holdfast.api.armada.events import fill_job
from holdfast.api.armada.refusals import refuse
from holdfast.api.armada.told import final_reason, run_error
from holdfast.domain.failure import LOST, EndedBy, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.policy.model import DecisionCode
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
"""In one question, as the shipped configuration has it."""
_WAITING = frozenset({JobState.QUEUED, JobState.WAITING, JobState.BACKOFF, JobState.HELD})
_UNSURE = frozenset({JobState.RUNNING, JobState.FAILED})
"""What these are to Armada depends on the last attempt."""
_ENDED = {
    JobState.SUCCEEDED: submit.SUCCEEDED,
    JobState.FAILED: submit.FAILED,
    JobState.CANCELLED: submit.CANCELLED,
}
_NANOSECONDS = 1_000_000_000


@answers("GetJobStatus", "api.Jobs")
def job_status(asked: Rpc, sent: job.JobStatusRequest) -> job.JobStatusResponse:
    """Say which states jobs are in; one that is not known is in an unknown one."""
    _check_count(sent.job_ids, "jobIds")
    states = _states_of(asked, list(_by_id(asked, sent.job_ids).values()))
    return job.JobStatusResponse(job_states={each: states.get(each, submit.UNKNOWN) for each in sent.job_ids})


@answers("GetJobStatusUsingExternalJobUri", "api.Jobs")
def job_status_by_uri(asked: Rpc, sent: job.JobStatusUsingExternalJobUriRequest) -> job.JobStatusResponse:
    """Say which states the jobs are in that have an external address."""
    if not sent.external_job_uri:
        refuse("request must contain external job uri")
    jobs = JobOperations(asked.backend)
    label = f"{armada.EXTERNAL_URI}={sent.external_job_uri}"
    where = jobs.meant(asked.caller, JobQuery(queue=sent.queue, group=sent.jobset, labels=[label]))
    found = jobs.page(asked.caller, where, limit=LARGEST_PAGE).jobs
    return job.JobStatusResponse(job_states=_states_of(asked, found))


@answers("GetJobDetails", "api.Jobs")
def job_details(asked: Rpc, sent: job.JobDetailsRequest) -> job.JobDetailsResponse:
    """Describe jobs, and with ``expand_job_run`` their runs, newest first."""
    _check_count(sent.job_ids, "jobIds")
    found = _by_id(asked, sent.job_ids)
    latest = JobOperations(asked.backend).latest(asked.caller, list(found.values()))
    states = _states(found.values(), latest)
    answer = job.JobDetailsResponse()
    for each in found.values():
        details, last = answer.job_details[each.id], latest.get(each.id)
        _describe(details, each, states[each.id], sent)
        if last is not None and last.runs:
            details.latest_run_id = last.runs[0].uid
        if each.attempt and sent.expand_job_run:
            detail = JobOperations(asked.backend).detail(asked.caller, each)
            for run in sorted(detail.runs, key=lambda run: (run.attempt, run.dispatch), reverse=True):
                _run(details.job_runs.add(), run, detail)
    return answer


def _describe(details: job.JobDetails, one: Job, state: submit.JobState, sent: job.JobDetailsRequest) -> None:
    written = armada.written_of(one.spec)
    details.job_id, details.queue, details.jobset, details.state = one.id, one.queue, one.group, state
    details.namespace = str(written.get("namespace") or "")
    _at(details.submitted_ts, one.submitted_at)
    _at(details.last_transition_ts, one.updated_at or one.submitted_at)
    if one.state is JobState.CANCELLED:
        details.cancel_reason = one.reason
        _at(details.cancel_ts, one.ended_at)
    if sent.expand_job_spec:
        fill_job(details.job_spec, one, one.group)


@answers("GetJobErrors", "api.Jobs")
def job_errors(asked: Rpc, sent: job.JobErrorsRequest) -> job.JobErrorsResponse:
    """Say why jobs failed; one that did not has an empty text."""
    _check_count(sent.job_ids, "JobIds")
    found = _by_id(asked, sent.job_ids)
    failed = [one for one in found.values() if one.state is JobState.FAILED]
    latest = JobOperations(asked.backend).latest(asked.caller, failed)
    errors = {one.id: _error(one, latest[one.id].attempt if one.id in latest else None) for one in failed}
    return job.JobErrorsResponse(job_errors={each: errors.get(each, "") for each in found})


def _error(one: Job, last: Attempt | None) -> str:
    if last is None or last.failure is None:
        return one.reason
    failed = last.failure.first_failed
    code, name = (None, "") if failed is None else (failed.exit_code, failed.name)
    told = run_error(last.failure.message, code, name)
    decision = last.decision
    if decision is None or (decision.policy is None and decision.code is not DecisionCode.GLOBAL_LIMIT):
        return told
    return final_reason(decision.reason, told, lost=not LOST.isdisjoint(last.failure.conditions))


@answers("GetJobRunDetails", "api.Jobs")
def job_run_details(asked: Rpc, sent: job.JobRunDetailsRequest) -> job.JobRunDetailsResponse:
    """Describe runs by their ids."""
    _check_count(sent.run_ids, "RunIds")
    wanted = set(sent.run_ids)
    answer = job.JobRunDetailsResponse()
    for one in _by_id(asked, list({each.partition("-")[0] for each in wanted})).values():
        detail = JobOperations(asked.backend).get(asked.caller, one.id)
        for run in detail.runs:
            if run.uid in wanted:
                _run(answer.job_run_details[run.uid], run, detail)
    return answer


@answers("GetActiveQueues", "api.Jobs")
def active_queues(asked: Rpc, _sent: job.GetActiveQueuesRequest) -> job.GetActiveQueuesResponse:
    """List the queues that have jobs with a place, as upstream does; there is one pool."""
    answer = job.GetActiveQueuesResponse()
    load = JobOperations(asked.backend).load(asked.caller)
    active = sorted(queue for queue, state in load if state is JobState.RUNNING)
    if active:
        answer.active_queues_by_pool["default"].queues.extend(active)
    return answer


def _check_count(ids: Sequence[str], what: str) -> None:
    if len(ids) > MOST_IDS:
        refuse(f"request contained more than {MOST_IDS} {what}")


def _by_id(asked: Rpc, ids: Sequence[str]) -> dict[str, Job]:
    jobs = JobOperations(asked.backend)
    where = jobs.meant(asked.caller, JobQuery(ids=list(ids)))
    return {one.id: one for one in jobs.page(asked.caller, where, limit=LARGEST_PAGE).jobs} if ids else {}


def _states_of(asked: Rpc, found: Sequence[Job]) -> Mapping[str, submit.JobState]:
    unsure = [one for one in found if one.state in _UNSURE]
    return _states(found, JobOperations(asked.backend).latest(asked.caller, unsure))


def _states(found: Iterable[Job], latest: Mapping[str, Latest]) -> Mapping[str, submit.JobState]:
    states: dict[str, submit.JobState] = {}
    for one in found:
        if one.state in _WAITING:
            states[one.id] = submit.QUEUED
        elif one.state in _UNSURE and one.id in latest:
            states[one.id] = _last(one, latest[one.id].attempt)
        elif one.state is JobState.RUNNING:
            states[one.id] = submit.PENDING
        else:
            states[one.id] = _ENDED.get(one.state, submit.UNKNOWN)
    return states


def _last(one: Job, attempt: Attempt | None) -> submit.JobState:
    if one.state is JobState.RUNNING:
        return submit.RUNNING if attempt is not None and attempt.started_at is not None else submit.PENDING
    failure = None if attempt is None else attempt.failure
    conditions = frozenset[str]() if failure is None else failure.conditions
    if FailureCondition.UNSCHEDULABLE in conditions:
        return submit.REJECTED
    return submit.PREEMPTED if FailureCondition.PREEMPTED in conditions else submit.FAILED


def _run(details: job.JobRunDetails, run: Run, of: JobDetail) -> None:
    created_at = next((one.created_at for one in of.attempts if one.number == run.attempt), None)
    details.run_id, details.job_id = run.uid, run.job_id
    details.cluster, details.node, details.state = run.executor, run.node, _run_state(run)
    _at(details.leased_ts, created_at)
    _at(details.pending_ts, created_at)
    _at(details.started_ts, run.started_at)
    _at(details.finished_ts, run.ended_at)


def _run_state(run: Run) -> job.JobRunState:
    if run.outcome is not None and run.outcome.ended_by is EndedBy.PREEMPTION:
        return job.RUN_STATE_PREEMPTED
    if run.outcome is not None:
        failed = run.outcome.conditions or any(one.failed for one in run.outcome.containers)
        return job.RUN_STATE_FAILED if failed else job.RUN_STATE_SUCCEEDED
    if run.status is RunStatus.RUNNING or run.started_at is not None:
        return job.RUN_STATE_RUNNING
    return job.RUN_STATE_PENDING


def _at(moment: Timestamp, seconds: float | None) -> None:
    if seconds is not None:
        moment.FromNanoseconds(int(seconds * _NANOSECONDS))
