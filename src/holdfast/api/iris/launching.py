"""Launches jobs, whose names earlier jobs may have had."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from holdfast.api.connect.mapping import plain
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.iris._generated import controller
from holdfast.api.iris.calls import CALLS, CONTROLLER, find_job, named_jobs
from holdfast.domain.record import evolve
from holdfast.errors import AlreadyExists
from holdfast.service.manifests import iris
from holdfast.service.operations.submissions import Submissions

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job
    from holdfast.ports.names import NamedJob
    from holdfast.service.manifests.iris import JobName, Launch

_Controller = controller.Controller
ERROR, KEEP, RECREATE = 1, 2, 3
"""Of ``ExistingJobPolicy``; without one, a finished job is replaced, and an active one makes the launch fail."""
_REPLACED = "Replaced by new submission"


@CALLS.answers("LaunchJob", CONTROLLER)
def launch_job(
    call: Rpc, request: controller.Controller.LaunchJobRequest
) -> controller.Controller.LaunchJobResponse | Future[controller.Controller.LaunchJobResponse]:
    """Submit a job; jobs that come at about the same time are stored together."""
    place = call.door.place
    launch = iris.launch_of(plain(request), place.tasks, lambda: _callables_refusal(call))
    answer = _Controller.LaunchJobResponse(job_id=str(launch.name))
    parent = _parent(call, launch.name)
    _require_node(call, launch)
    named_job = named_jobs(call).holder(call.caller, str(launch.name))
    existing = None if named_job is None else find_job(call, launch.name)
    external = iris.named_by(launch, call.caller, request.SerializeToString(deterministic=True), existing)
    if named_job is not None:
        existing = _require_visible(launch, existing)
        if _keeps_name(call, launch, named_job, existing, external.digest):
            return answer
        # The old jobs end in the transaction that stores the new one, as the launch can be refused until then.
        ends = named_jobs(call).family_ends(call.caller, str(launch.name), existing, _REPLACED)
        external = evolve(external, ends=ends)
    submissions = Submissions(call.backend)

    def keep(data: bytes, *, archive: bool) -> str:
        return submissions.keep_blob(call.caller, data, archive=archive)

    priority = parent.priority if parent is not None and launch.inherits else None
    written = iris.with_identity(iris.written_of(launch, existing, priority, keep), call.caller.principal)
    return _answer_once_stored(call.door.launches.launch(call.caller, written, external), launch, answer)


def _callables_refusal(call: Rpc) -> str | None:
    """Return why callables cannot run for the caller, or ``None``."""
    calls = call.backend.calls
    return "this server runs no callables" if calls is None else calls.refusal(call.caller.principal)


def _answer_once_stored(
    stored: Future[str], launch: Launch, answer: controller.Controller.LaunchJobResponse
) -> Future[controller.Controller.LaunchJobResponse]:
    future: Future[controller.Controller.LaunchJobResponse] = Future()

    def launched(done: Future[str]) -> None:
        error = done.exception()
        if not future.set_running_or_notify_cancel():
            return
        if isinstance(error, AlreadyExists) and launch.existing != KEEP:
            message = f"Job {launch.name} already exists (concurrent submission)"
            future.set_exception(Rejected(Code.ALREADY_EXISTS, message))
        elif error is not None and not isinstance(error, AlreadyExists):
            future.set_exception(error)
        else:
            future.set_result(answer)

    stored.add_done_callback(launched)
    return future


def _parent(call: Rpc, name: JobName) -> Job | None:
    """Return the parent of a job, or ``None`` for a root job.

    Raises:
        Rejected: It has ended, or does not exist.
    """
    if name.parent is None:
        return None
    job = find_job(call, name.parent)
    if job is None:
        raise Rejected(Code.FAILED_PRECONDITION, f"Cannot submit job: there is no parent job {name.parent}")
    if job.terminal or job.cancel_requested:
        message = f"Cannot submit job: parent job {name.parent} has terminated ({job.state})"
        raise Rejected(Code.FAILED_PRECONDITION, message)
    return job


def _require_node(call: Rpc, launch: Launch) -> None:
    """Check that a task fits on some node, if there are nodes.

    Raises:
        Rejected: It fits on none.
    """
    # Anyone who may submit learns whether it fits, even those who may not see nodes, such as a job with its token.
    spec, nodes = launch.spec, call.backend.store.nodes()
    labelled = [node for node in nodes if spec.node_selector.items() <= node.labels.items()]
    if not nodes or any(spec.resources.fits(node.capacity) for node in labelled):
        return
    message = f"no node has the labels {dict(spec.node_selector)}"
    if labelled:
        needs = spec.resources
        message = f"no node has enough: need {needs.cpu_m} cpu_millicores, {needs.memory} memory_bytes, {needs.gpu} gpu"
    raise Rejected(Code.FAILED_PRECONDITION, f"Job {launch.name} is unschedulable: {message}")


def _require_visible(launch: Launch, existing: Job | None) -> Job:
    """Return the job that has the name.

    Raises:
        Rejected: The caller may not see it.
    """
    if existing is None:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists, and belongs to somebody else")
    return existing


def _keeps_name(call: Rpc, launch: Launch, named_job: NamedJob, existing: Job, digest: bytes) -> bool:
    """Whether the existing job is the answer to a launch; if not, the name passes to the new job.

    Raises:
        Rejected: The existing job keeps its name, so that the launch fails.
    """
    name = str(launch.name)
    finished = existing.terminal or existing.cancel_requested
    sent_again = named_job.digest == digest and call.backend.clock.now() - named_job.taken_at <= call.door.place.again_s
    if not finished and (sent_again or launch.existing == KEEP):
        return True
    if launch.existing == ERROR:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {name} already exists ({existing.state})")
    if not finished and launch.existing != RECREATE:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {name} already exists and is still running")
    return False
