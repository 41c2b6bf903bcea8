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
    asked: Rpc, sent: controller.Controller.GetJobStateRequest
) -> controller.Controller.GetJobStateResponse:
    """Say which states jobs are in; those that are not known are left out."""
    if len(sent.job_ids) > MOST_IDS:
        refuse(f"job_ids has {len(sent.job_ids)}; at most {MOST_IDS}")
    found = jobs_named(asked).every(asked.caller, [*dict.fromkeys(sent.job_ids)])
    told = states(asked, [*found.values()])
    return _Controller.GetJobStateResponse(
        states={text: cast("job.JobState", int(told[one.id])) for text, one in found.items()}
    )


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(
    asked: Rpc, sent: controller.Controller.GetJobStatusRequest
) -> controller.Controller.GetJobStatusResponse:
    """Describe a job."""
    found = required(asked, sent.job_id)
    family = jobs_named(asked).beginning(asked.caller, f"{sent.job_id}/")
    request = iris.request_of(found)
    [told] = described(asked, [found], has_children={sent.job_id} if family else set())
    return _Controller.GetJobStatusResponse(job=told, request=_Controller.LaunchJobRequest(**request))


def described(asked: Rpc, jobs: Sequence[Job], *, has_children: Container[str]) -> list[job.JobStatus]:
    """Describe jobs; ``has_children`` are the names of those that have some."""
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
def terminate_job(asked: Rpc, sent: controller.Controller.TerminateJobRequest) -> job.Empty:
    """End a job and all below it; what has ended is left alone."""
    found = required(asked, sent.job_id)
    where = jobs_named(asked).meant(asked.caller, found.group)
    JobBatches(asked.backend).cancel_family(asked.caller, found, where, _TERMINATED)
    return job.Empty()


@CALLS.answers("CompleteJob", CONTROLLER)
def complete_job(asked: Rpc, sent: controller.Controller.CompleteJobRequest) -> job.Empty:
    """End a job as one that succeeded, and all below it; what has ended is left alone."""
    found = required(asked, sent.job_id)
    if found.terminal:
        return job.Empty()
    below = [one.job_id for one in jobs_named(asked).beginning(asked.caller, f"{found.group}/")]
    jobs, batches = JobOperations(asked.backend), JobBatches(asked.backend)
    for ids, reason in ((below, _PARENT_ENDED), ([found.id], iris.COMPLETED)):
        if ids:
            batches.cancel(asked.caller, jobs.meant(asked.caller, JobQuery(ids=ids)), reason)
    return job.Empty()
