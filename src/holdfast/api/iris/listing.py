"""Lists jobs: which ones are meant is said by their names, so that only those on the page are read.

A list by their states or by what failed is one of all that are meant, and reads so many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.connect.refusals import refuse
from holdfast.api.iris._generated import controller
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import jobs_named, last_attempts
from holdfast.api.iris.jobs import described
from holdfast.service.manifests import iris

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Attempt, Job
    from holdfast.ports.names import ListedName

LARGEST_PAGE, LARGEST_OFFSET = 500, 5_000
_Controller = controller.Controller
_OF_HERE = ({"", "local"}, {"", "default"})
"""The cluster and the backend of all jobs."""
_BY_JOBS = {
    _Controller.JOB_SORT_FIELD_STATE,
    _Controller.JOB_SORT_FIELD_FAILURES,
    _Controller.JOB_SORT_FIELD_PREEMPTIONS,
}
"""Orders that take more than the names."""


@CALLS.answers("ListJobs", CONTROLLER)
def list_jobs(call: Rpc, request: controller.Controller.ListJobsRequest) -> controller.Controller.ListJobsResponse:
    """List jobs, the newest first if nothing else is asked for."""
    query = request.query
    if query.offset > LARGEST_OFFSET:
        hint = "narrow the result set with state_filter/name_filter/parent_job_id instead of paging deeper"
        refuse(f"query.offset={query.offset} exceeds {LARGEST_OFFSET}; {hint}.")
    if query.scope == _Controller.JOB_QUERY_SCOPE_CHILDREN and not query.parent_job_id:
        refuse("query.parent_job_id is required for JOB_QUERY_SCOPE_CHILDREN")
    named = jobs_named(call)
    listed = named.beginning(call.caller, query.job_id_prefix)
    matching = [entry for entry in listed if _is_meant(entry.name, query)]
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
        jobs=described(call, [read[entry.job_id] for entry in page if entry.job_id in read], has_children=parents),
        total_count=len(matching),
        has_more=begin + limit < len(matching),
    )


def _is_meant(name: str, query: controller.Controller.JobQuery) -> bool:
    parent = name.rpartition("/")[0]
    scope = query.scope
    return (
        query.name_filter.lower() in name.lower()
        and (scope != _Controller.JOB_QUERY_SCOPE_ROOTS or "/" not in parent[1:])
        and (scope != _Controller.JOB_QUERY_SCOPE_CHILDREN or parent == query.parent_job_id)
        and query.cluster in _OF_HERE[0]
        and query.backend_id in _OF_HERE[1]
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
