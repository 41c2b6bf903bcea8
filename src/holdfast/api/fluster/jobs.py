"""Jobs: launch, read, list and terminate them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from holdfast.api.connect.mapping import plain
from holdfast.api.connect.refusals import refuse
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.errors import Forbidden, Problem
from holdfast.service.manifests.fluster import SYSTEM, Along, external_name, told_status, written_launch
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.jobs import JobOperations, NamedJobs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job
    from holdfast.service.launches import Launches
    from holdfast.service.operations.jobs import JobDetail

LARGEST_RESULT = 16 << 20
"""Bytes of a callable's result."""
TERMINATED = "Terminated by user"
"""The reason, as upstream records it."""


@CALLS.answers("LaunchJob", CONTROLLER, together=True)
def launch_job(call: Rpc, request: cluster.Controller.LaunchJobRequest) -> Future[cluster.Controller.LaunchJobResponse]:
    """Submit a job; jobs that come at about the same time are stored together."""
    launches: Launches = call.door.launches
    if launches.is_here() and not _is_quick(request):
        later: Future[cluster.Controller.LaunchJobResponse] = call.door.setup.threads.submit(launch_job, call, request)
        return later
    snapshot = launches.snapshot
    along = Along(call.caller.principal, call.backend.blobs, call.backend.calls)
    name, written = written_launch(plain(request), snapshot.catalogue(), snapshot.nodes(), along)
    limit = call.caller.principal.limit
    if limit is not None and limit.below and not written.spec.group:
        message = f"the token of job {limit.below!r} may not launch job {name!r}, which is not below that job"
        raise Forbidden(message, hint=f"name it {limit.below}/{name}")
    external = external_name(name, call.caller, request.SerializeToString(deterministic=True))
    if written.spec.group:
        external = evolve(external, parent=f"{SYSTEM}/{written.spec.group}")
    answer: Future[cluster.Controller.LaunchJobResponse] = Future()

    def launched(stored: Future[str]) -> None:
        error = stored.exception()
        if not answer.set_running_or_notify_cancel():
            return
        if error is None:
            answer.set_result(cluster.Controller.LaunchJobResponse(job_id=name))
        else:
            answer.set_exception(error)

    launches.launch(call.caller, written, external).add_done_callback(launched)
    return answer


def _is_quick(request: cluster.Controller.LaunchJobRequest) -> bool:
    """Whether other launches can wait while it is read: nothing has to be unpacked, and no Python has to be checked."""
    packed = request.bundle_blob or request.environment.pip_packages or request.environment.extras
    return request.serialized_entrypoint.startswith(b"#!") and not packed


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(
    call: Rpc, request: cluster.Controller.GetJobStatusRequest
) -> cluster.Controller.GetJobStatusResponse:
    """Read a job's status."""
    job = NamedJobs(call.backend, SYSTEM).find(call.caller, _required_name(request.job_id))
    [status] = _statuses(call, {job.id: request.job_id}, JobOperations(call.backend).details(call.caller, [job]))
    if request.include_result and job.state is JobState.SUCCEEDED:
        result = JobOperations(call.backend).result(call.caller, job, limit=LARGEST_RESULT)
        if result is not None:
            status.serialized_result = result
    return cluster.Controller.GetJobStatusResponse(job=status)


@CALLS.answers("ListJobs", CONTROLLER)
def list_jobs(call: Rpc, _request: cluster.Controller.ListJobsRequest) -> cluster.Controller.ListJobsResponse:
    """List the statuses of all jobs of this door, in order of submission."""
    named, answer = NamedJobs(call.backend, SYSTEM), cluster.Controller.ListJobsResponse()
    for page in _pages(call, named):
        names = named.names(call.caller, page)
        shown = JobOperations(call.backend).details(call.caller, [job for job in page if job.id in names])
        answer.jobs.extend(_statuses(call, names, shown))
    return answer


@CALLS.answers("TerminateJob", CONTROLLER)
def terminate_job(call: Rpc, request: cluster.Controller.TerminateJobRequest) -> None:
    """End a job and all below it, the deepest first; jobs that have ended are left alone."""
    named, name = NamedJobs(call.backend, SYSTEM), _required_name(request.job_id)
    job = named.find(call.caller, name)
    JobBatches(call.backend).cancel_family(call.caller, job, named.subtree(call.caller, name), TERMINATED)


def _required_name(job_id: str) -> str:
    if not job_id:
        refuse("job_id must not be empty", [Problem("job_id", "is required", hint="the full name of a job")])
    return job_id


def _pages(call: Rpc, named: NamedJobs) -> Iterator[Sequence[Job]]:
    jobs, after, where = JobOperations(call.backend), 0, named.subtree(call.caller)
    while True:
        page = jobs.page(call.caller, where, after=after)
        yield page.jobs
        if page.next_after is None:
            return
        after = page.next_after


def _statuses(call: Rpc, names: Mapping[str, str], details: Sequence[JobDetail]) -> list[cluster.JobStatus]:
    """Return the statuses of jobs; ``names`` has their names by id."""
    settings, now, statuses = call.door.launches.snapshot.catalogue().settings, call.backend.clock.now(), []
    for detail in details:
        status: dict[str, Any] = told_status(detail, now, settings)
        # A job that has had an attempt has logs, even while none runs.
        if detail.attempts:
            status["worker_address"] = call.reached or call.door.address
        statuses.append(cluster.JobStatus(job_id=names[detail.job.id], **status))
    return statuses
