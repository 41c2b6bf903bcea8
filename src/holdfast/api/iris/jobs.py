"""Jobs: their states, their descriptions, lists of them, and how callers end them.

A list selects jobs by their names, so that only the jobs of a page are read. A list that filters or sorts by state,
failures or preemptions reads every job whose name matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.api.connect.refusals import refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER, last_attempts, named_jobs, require_job, states_of
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Attempt, Job
    from holdfast.ports.names import ListedName

MOST_IDS = 10_000
_TERMINATED, _PARENT_ENDED = "Terminated by user", "Parent job terminated"
_Controller = controller.Controller
LARGEST_PAGE, LARGEST_OFFSET = 500, 5_000
_CLUSTERS, _BACKENDS = {"", "local"}, {"", "default"}
"""The names of the only cluster and the only backend."""
_BY_JOBS = {
    _Controller.JOB_SORT_FIELD_STATE,
    _Controller.JOB_SORT_FIELD_FAILURES,
    _Controller.JOB_SORT_FIELD_PREEMPTIONS,
}
"""Orders for which the jobs themselves have to be read."""


@CALLS.answers("GetJobState", CONTROLLER)
def get_job_state(
    call: Rpc, request: controller.Controller.GetJobStateRequest
) -> controller.Controller.GetJobStateResponse:
    """Read the states of jobs; unknown jobs are left out."""
    if len(request.job_ids) > MOST_IDS:
        refuse(f"job_ids has {len(request.job_ids)}; at most {MOST_IDS}")
    jobs = named_jobs(call).every(call.caller, [*dict.fromkeys(request.job_ids)])
    by_id = states_of(call, [*jobs.values()])
    return _Controller.GetJobStateResponse(
        states={text: cast("job.JobState", int(by_id[record.id])) for text, record in jobs.items()}
    )


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(
    call: Rpc, message: controller.Controller.GetJobStatusRequest
) -> controller.Controller.GetJobStatusResponse:
    """Describe a job."""
    record = require_job(call, message.job_id)
    family = named_jobs(call).beginning(call.caller, f"{message.job_id}/")
    request = iris.request_of(record)
    [status] = describe_jobs(call, [record], has_children={message.job_id} if family else set())
    return _Controller.GetJobStatusResponse(job=status, request=_Controller.LaunchJobRequest(**request))


def describe_jobs(call: Rpc, jobs: Sequence[Job], *, has_children: Container[str]) -> list[job.JobStatus]:
    """Describe jobs; ``has_children`` has the names of those with children."""
    latest = JobOperations(call.backend).latest(call.caller, jobs) if jobs else {}
    described = []
    for record in jobs:
        last = latest.get(record.id)
        status = iris.job_status(record, last.attempt if last else None, last.runs if last else ())
        parent = record.group.rpartition("/")[0]
        described.append(
            job.JobStatus(
                **status,
                resources=job.ResourceSpecProto(**iris.request_of(record).get("resources", {})),
                has_children=record.group in has_children,
                parent_job_id=parent if "/" in parent[1:] else "",
            )
        )
    return described


@CALLS.answers("ListJobs", CONTROLLER)
def list_jobs(call: Rpc, request: controller.Controller.ListJobsRequest) -> controller.Controller.ListJobsResponse:
    """List jobs, by default the newest first."""
    query = request.query
    if query.offset > LARGEST_OFFSET:
        hint = "narrow the result set with state_filter/name_filter/parent_job_id instead of paging deeper"
        refuse(f"query.offset={query.offset} exceeds {LARGEST_OFFSET}; {hint}.")
    if query.scope == _Controller.JOB_QUERY_SCOPE_CHILDREN and not query.parent_job_id:
        refuse("query.parent_job_id is required for JOB_QUERY_SCOPE_CHILDREN")
    named = named_jobs(call)
    listed = named.beginning(call.caller, query.job_id_prefix)
    matching = [entry for entry in listed if _matches(entry.name, query)]
    last: Mapping[str, Attempt] = {}
    jobs: Mapping[str, Job] = {}
    state = query.state_filter.lower()
    if state:
        matching = [entry for entry in matching if entry.state in iris.STORED_AS.get(state, ())]
    if state or query.sort_field in _BY_JOBS:
        jobs = named.read(call.caller, [entry.job_id for entry in matching])
        last = last_attempts(call, [*jobs.values()])
        matching = [entry for entry in matching if entry.job_id in jobs]
    if state:
        matching = [entry for entry in matching if _state(entry, jobs, last).name.lower() == state]
    _sort(matching, query, jobs, last)
    limit = query.limit if 0 < query.limit <= LARGEST_PAGE else LARGEST_PAGE
    begin = max(0, query.offset)
    page = matching[begin : begin + limit]
    read = jobs or named.read(call.caller, [entry.job_id for entry in page])
    parents = {entry.name.rpartition("/")[0] for entry in listed}
    return _Controller.ListJobsResponse(
        jobs=describe_jobs(call, [read[entry.job_id] for entry in page if entry.job_id in read], has_children=parents),
        total_count=len(matching),
        has_more=begin + limit < len(matching),
    )


def _matches(name: str, query: controller.Controller.JobQuery) -> bool:
    parent = name.rpartition("/")[0]
    scope = query.scope
    return (
        query.name_filter.lower() in name.lower()
        and (scope != _Controller.JOB_QUERY_SCOPE_ROOTS or "/" not in parent[1:])
        and (scope != _Controller.JOB_QUERY_SCOPE_CHILDREN or parent == query.parent_job_id)
        and query.cluster in _CLUSTERS
        and query.backend_id in _BACKENDS
    )


def _state(entry: ListedName, jobs: Mapping[str, Job], last: Mapping[str, Attempt]) -> iris.IrisState:
    return iris.job_state(jobs[entry.job_id], last.get(entry.job_id))


def _sort(
    entries: list[ListedName],
    query: controller.Controller.JobQuery,
    jobs: Mapping[str, Job],
    last: Mapping[str, Attempt],
) -> None:
    def count(which: str) -> Callable[[ListedName], Any]:
        return lambda entry: iris.job_status(jobs[entry.job_id], last.get(entry.job_id), ())[which]

    keys: dict[int, Callable[[ListedName], Any]] = {
        _Controller.JOB_SORT_FIELD_NAME: lambda entry: entry.name,
        _Controller.JOB_SORT_FIELD_STATE: lambda entry: _state(entry, jobs, last),
        _Controller.JOB_SORT_FIELD_FAILURES: count("failure_count"),
        _Controller.JOB_SORT_FIELD_PREEMPTIONS: count("preemption_count"),
    }
    by_date = query.sort_field not in keys
    descending = query.sort_direction == _Controller.SORT_DIRECTION_DESC
    if query.sort_direction == _Controller.SORT_DIRECTION_UNSPECIFIED:
        descending = by_date
    entries.sort(key=keys.get(query.sort_field, lambda entry: entry.seq), reverse=descending)


@CALLS.answers("TerminateJob", CONTROLLER)
def terminate_job(call: Rpc, request: controller.Controller.TerminateJobRequest) -> job.Empty:
    """End a job and all below it; jobs that have ended are left alone."""
    record = require_job(call, request.job_id)
    where = named_jobs(call).subtree(call.caller, record.group)
    JobBatches(call.backend).cancel_family(call.caller, record, where, _TERMINATED)
    return job.Empty()


@CALLS.answers("CompleteJob", CONTROLLER)
def complete_job(call: Rpc, request: controller.Controller.CompleteJobRequest) -> job.Empty:
    """End a job as succeeded, and all below it; jobs that have ended are left alone."""
    record = require_job(call, request.job_id)
    if record.terminal:
        return job.Empty()
    below = [child.job_id for child in named_jobs(call).beginning(call.caller, f"{record.group}/")]
    jobs, batches = JobOperations(call.backend), JobBatches(call.backend)
    for ids, reason in ((below, _PARENT_ENDED), ([record.id], iris.COMPLETED)):
        if ids:
            batches.cancel(call.caller, jobs.job_filter(call.caller, JobQuery(ids=ids)), reason)
    return job.Empty()
