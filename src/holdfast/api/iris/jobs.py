"""What can be asked of jobs: their states, one or many, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from holdfast.api.connect.refusals import refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import below, named, newest, required, states
from holdfast.errors import InvalidManifest
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.api.connect.calls import Asked
    from holdfast.domain.job import Job

LARGEST_PAGE, LARGEST_OFFSET = 500, 5_000
MOST_IDS = 500
_TERMINATED = "Terminated by user"
_Controller = controller.Controller


@CALLS.answers("GetJobState", CONTROLLER)
def get_job_state(
    asked: Asked, sent: controller.Controller.GetJobStateRequest
) -> controller.Controller.GetJobStateResponse:
    """Say which states jobs are in; those that are not known are left out."""
    if len(sent.job_ids) > MOST_IDS:
        refuse(f"job_ids has {len(sent.job_ids)}; at most {MOST_IDS}")
    found: dict[str, Job] = {}
    for text in dict.fromkeys(sent.job_ids):
        try:
            known = newest(asked, named(iris.read_name, text, "job_ids"))
        except InvalidManifest:
            continue
        if known is not None:
            found[text] = known
    told = states(asked, [*found.values()])
    return _Controller.GetJobStateResponse(
        states={text: cast("job.JobState", int(told[one.id])) for text, one in found.items()}
    )


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(
    asked: Asked, sent: controller.Controller.GetJobStatusRequest
) -> controller.Controller.GetJobStatusResponse:
    """Describe a job."""
    found = required(asked, sent.job_id)
    family = below(asked, found.group)
    request = iris.request_of(found)
    [told] = _described(asked, [found], has_children={found.group} if len(family) > 1 else set())
    return _Controller.GetJobStatusResponse(job=told, request=_Controller.LaunchJobRequest(**request))


@CALLS.answers("ListJobs", CONTROLLER)
def list_jobs(asked: Asked, sent: controller.Controller.ListJobsRequest) -> controller.Controller.ListJobsResponse:
    """List jobs, the newest first if nothing else is asked for."""
    query = sent.query
    if query.offset > LARGEST_OFFSET:
        hint = "narrow the result set with state_filter/name_filter/parent_job_id instead of paging deeper"
        refuse(f"query.offset={query.offset} exceeds {LARGEST_OFFSET}; {hint}.")
    if query.scope == _Controller.JOB_QUERY_SCOPE_CHILDREN and not query.parent_job_id:
        refuse("query.parent_job_id is required for JOB_QUERY_SCOPE_CHILDREN")
    known = below(asked, query.job_id_prefix.rpartition("/")[0].rstrip("/"))
    found = [one for one in known.values() if _is_meant(one, query)]
    told = states(asked, found) if query.state_filter or query.sort_field == _Controller.JOB_SORT_FIELD_STATE else {}
    if query.state_filter:
        found = [one for one in found if told[one.id].name.lower() == query.state_filter.lower()]
    _sort(found, query, told)
    limit = query.limit if 0 < query.limit <= LARGEST_PAGE else LARGEST_PAGE
    begin = max(0, query.offset)
    page = found[begin : begin + limit]
    parents = {group.rpartition("/")[0] for group in known}
    return _Controller.ListJobsResponse(
        jobs=_described(asked, page, has_children=parents),
        total_count=len(found),
        has_more=begin + limit < len(found),
    )


def _is_meant(one: Job, query: controller.Controller.JobQuery) -> bool:
    parent, _, local = one.group.rpartition("/")
    scope = query.scope
    return (
        one.group.startswith(query.job_id_prefix)
        and query.name_filter.lower() in local.lower()
        and (scope != _Controller.JOB_QUERY_SCOPE_ROOTS or "/" not in parent[1:])
        and (scope != _Controller.JOB_QUERY_SCOPE_CHILDREN or parent == query.parent_job_id)
        and query.cluster in {"", "local"}
        and query.backend_id in {"", "default"}
    )


def _sort(found: list[Job], query: controller.Controller.JobQuery, told: dict[str, iris.State]) -> None:
    keys: dict[int, Callable[[Job], Any]] = {
        _Controller.JOB_SORT_FIELD_NAME: lambda one: one.group,
        _Controller.JOB_SORT_FIELD_STATE: lambda one: told[one.id],
        _Controller.JOB_SORT_FIELD_FAILURES: lambda one: iris.job_status(one, None, ())["failure_count"],
        _Controller.JOB_SORT_FIELD_PREEMPTIONS: lambda one: iris.job_status(one, None, ())["preemption_count"],
    }
    by_date = query.sort_field not in keys
    descending = query.sort_direction == _Controller.SORT_DIRECTION_DESC
    if query.sort_direction == _Controller.SORT_DIRECTION_UNSPECIFIED:
        descending = by_date
    found.sort(key=keys.get(query.sort_field, lambda one: one.seq), reverse=descending)


def _described(asked: Asked, jobs: Sequence[Job], *, has_children: set[str]) -> list[job.JobStatus]:
    latest = JobOperations(asked.backend).latest(asked.caller, jobs) if jobs else {}
    described = []
    for one in jobs:
        last = latest.get(one.id)
        told = iris.job_status(one, last.attempt if last else None, last.runs if last else ())
        parent = one.group.rpartition("/")[0]
        described.append(
            job.JobStatus(
                **told,
                resources=job.ResourceSpecProto(**iris.request_of(one).get("resources", {})),
                has_children=one.group in has_children,
                parent_job_id=parent if "/" in parent[1:] else "",
            )
        )
    return described


@CALLS.answers("TerminateJob", CONTROLLER)
def terminate_job(asked: Asked, sent: controller.Controller.TerminateJobRequest) -> job.Empty:
    """End a job and all below it; what has ended is left alone."""
    found = required(asked, sent.job_id)
    where = JobOperations(asked.backend).meant(asked.caller, JobQuery(group=f"{found.group}/", labels=[iris.LABEL]))
    JobBatches(asked.backend).cancel(asked.caller, where, _TERMINATED)
    return job.Empty()
