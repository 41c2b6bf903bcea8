"""Jobs: launch, look at, list and terminate them."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from holdfast.api.connect.plain import plain
from holdfast.api.connect.refusals import refuse
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, CONTROLLER
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.errors import Forbidden, Problem
from holdfast.service.manifests.fluster import SYSTEM, external_name, told_status, written_launch
from holdfast.service.manifests.fluster_calls import Along
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.jobs import JobOperations, NamedJobs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job
    from holdfast.service.launches import Launches
    from holdfast.service.operations.jobs import JobDetail

LARGEST_RESULT = 16 << 20
"""Bytes of what a call returned."""
TERMINATED = "Terminated by user"
"""The reason, as upstream records it."""


@CALLS.answers("LaunchJob", CONTROLLER, together=True)
def launch_job(asked: Rpc, sent: cluster.Controller.LaunchJobRequest) -> Future[cluster.Controller.LaunchJobResponse]:
    """Submit a job; what comes at about the same time is stored together."""
    launches: Launches = asked.door.launches
    if launches.is_here() and not _is_quick(sent):
        later: Future[cluster.Controller.LaunchJobResponse] = asked.door.threads.submit(launch_job, asked, sent)
        return later
    known = launches.known
    along = Along(asked.caller.principal, asked.backend.blobs, asked.backend.calls)
    name, written = written_launch(plain(sent), known.catalogue(), known.nodes(), along)
    limit = asked.caller.principal.limit
    if limit is not None and limit.below and not written.spec.group:
        message = f"the token of job {limit.below!r} may not launch a job {name!r} that is not below that"
        raise Forbidden(message, hint=f"name it {limit.below}/{name}")
    external = external_name(name, asked.caller, sent.SerializeToString(deterministic=True))
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

    launches.launch(asked.caller, written, external).add_done_callback(launched)
    return answer


def _is_quick(sent: cluster.Controller.LaunchJobRequest) -> bool:
    """Whether others may wait while it is read: nothing of it is unpacked, and no Python asked whether it will do."""
    packed = sent.bundle_blob or sent.environment.pip_packages or sent.environment.extras
    return sent.serialized_entrypoint.startswith(b"#!") and not packed


@CALLS.answers("GetJobStatus", CONTROLLER)
def get_job_status(asked: Rpc, sent: cluster.Controller.GetJobStatusRequest) -> cluster.Controller.GetJobStatusResponse:
    """Say how a job does."""
    job = NamedJobs(asked.backend, SYSTEM).find(asked.caller, _name(sent.job_id))
    [told] = _told(asked, {job.id: sent.job_id}, JobOperations(asked.backend).details(asked.caller, [job]))
    if sent.include_result and job.state is JobState.SUCCEEDED:
        result = JobOperations(asked.backend).result(asked.caller, job, limit=LARGEST_RESULT)
        if result is not None:
            told.serialized_result = result
    return cluster.Controller.GetJobStatusResponse(job=told)


@CALLS.answers("ListJobs", CONTROLLER)
def list_jobs(asked: Rpc, _sent: cluster.Controller.ListJobsRequest) -> cluster.Controller.ListJobsResponse:
    """Say how all jobs do that came in by this door, in the order in which they came."""
    named, answer = NamedJobs(asked.backend, SYSTEM), cluster.Controller.ListJobsResponse()
    for page in _pages(asked, named):
        names = named.names(asked.caller, page)
        shown = JobOperations(asked.backend).details(asked.caller, [job for job in page if job.id in names])
        answer.jobs.extend(_told(asked, names, shown))
    return answer


@CALLS.answers("TerminateJob", CONTROLLER)
def terminate_job(asked: Rpc, sent: cluster.Controller.TerminateJobRequest) -> None:
    """End a job and all below it, the deepest first; what has ended stays as it ended."""
    named, name = NamedJobs(asked.backend, SYSTEM), _name(sent.job_id)
    job = named.find(asked.caller, name)
    JobBatches(asked.backend).cancel_family(asked.caller, job, named.meant(asked.caller, name), TERMINATED)


def _name(job_id: str) -> str:
    if not job_id:
        refuse("job_id must not be empty", [Problem("job_id", "is required", hint="the full name of a job")])
    return job_id


def _pages(asked: Rpc, named: NamedJobs) -> Iterator[Sequence[Job]]:
    jobs, after, where = JobOperations(asked.backend), 0, named.meant(asked.caller)
    while True:
        page = jobs.page(asked.caller, where, after=after)
        yield page.jobs
        if page.next_after is None:
            return
        after = page.next_after


def _told(asked: Rpc, names: Mapping[str, str], details: Sequence[JobDetail]) -> list[cluster.JobStatus]:
    """Tell of jobs, whose names are given by their ids."""
    settings, now, told = asked.door.launches.known.catalogue().settings, asked.backend.clock.now(), []
    for detail in details:
        status: dict[str, Any] = told_status(detail, now, settings)
        if detail.attempts:  # whose logs are there also while none runs
            status["worker_address"] = asked.reached or asked.door.address
        told.append(cluster.JobStatus(job_id=names[detail.job.id], **status))
    return told
