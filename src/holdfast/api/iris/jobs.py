"""What can be asked of jobs: their states, one or many, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.api.connect.refusals import refuse
from holdfast.api.iris._generated import controller, job
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import jobs_named, required, states
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job

MOST_IDS = 10_000
_TERMINATED, _PARENT_ENDED = "Terminated by user", "Parent job terminated"
_Controller = controller.Controller


@CALLS.answers("GetJobState", CONTROLLER)
def get_job_state(
    call: Rpc, request: controller.Controller.GetJobStateRequest
) -> controller.Controller.GetJobStateResponse:
    """Say which states jobs are in; those that are not known are left out."""
    if len(request.job_ids) > MOST_IDS:
        refuse(f"job_ids has {len(request.job_ids)}; at most {MOST_IDS}")
    jobs = jobs_named(call).every(call.caller, [*dict.fromkeys(request.job_ids)])
    by_id = states(call, [*jobs.values()])
    return _Controller.GetJobStateResponse(
        states={text: cast("job.JobState", int(by_id[record.id])) for text, record in jobs.items()}
    )


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(
    call: Rpc, message: controller.Controller.GetJobStatusRequest
) -> controller.Controller.GetJobStatusResponse:
    """Describe a job."""
    record = required(call, message.job_id)
    family = jobs_named(call).beginning(call.caller, f"{message.job_id}/")
    request = iris.request_of(record)
    [status] = described(call, [record], has_children={message.job_id} if family else set())
    return _Controller.GetJobStatusResponse(job=status, request=_Controller.LaunchJobRequest(**request))


def described(call: Rpc, jobs: Sequence[Job], *, has_children: Container[str]) -> list[job.JobStatus]:
    """Describe jobs; ``has_children`` are the names of those that have some."""
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


@CALLS.answers("TerminateJob", CONTROLLER)
def terminate_job(call: Rpc, request: controller.Controller.TerminateJobRequest) -> job.Empty:
    """End a job and all below it; what has ended is left alone."""
    record = required(call, request.job_id)
    where = jobs_named(call).subtree(call.caller, record.group)
    JobBatches(call.backend).cancel_family(call.caller, record, where, _TERMINATED)
    return job.Empty()


@CALLS.answers("CompleteJob", CONTROLLER)
def complete_job(call: Rpc, request: controller.Controller.CompleteJobRequest) -> job.Empty:
    """End a job as one that succeeded, and all below it; what has ended is left alone."""
    record = required(call, request.job_id)
    if record.terminal:
        return job.Empty()
    below = [child.job_id for child in jobs_named(call).beginning(call.caller, f"{record.group}/")]
    jobs, batches = JobOperations(call.backend), JobBatches(call.backend)
    for ids, reason in ((below, _PARENT_ENDED), ([record.id], iris.COMPLETED)):
        if ids:
            batches.cancel(call.caller, jobs.job_filter(call.caller, JobQuery(ids=ids)), reason)
    return job.Empty()
