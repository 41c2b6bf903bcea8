"""Launches jobs, under names of which an earlier job may have had one."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from holdfast.api.connect.plain import plain
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
"""Of ``ExistingJobPolicy``; without one, a job that has finished is replaced, and another is in the way."""
_REPLACED = "Replaced by new submission"


@CALLS.answers("LaunchJob", CONTROLLER)
def launch_job(
    call: Rpc, request: controller.Controller.LaunchJobRequest
) -> controller.Controller.LaunchJobResponse | Future[controller.Controller.LaunchJobResponse]:
    """Submit a job; what comes at about the same time is stored together."""
    place = call.door.place
    launch = iris.launch_of(plain(request), place.tasks, lambda: _refusal(call))
    answer = _Controller.LaunchJobResponse(job_id=str(launch.name))
    parent = _parent(call, launch.name)
    _require_place(call, launch)
    named_job = named_jobs(call).holder(call.caller, str(launch.name))
    existing = None if named_job is None else find_job(call, launch.name)
    external = iris.named_by(launch, call.caller, request.SerializeToString(deterministic=True), existing)
    if named_job is not None:
        existing = _in_the_way(launch, existing)
        if _keeps_name(call, launch, named_job, existing, external.digest):
            return answer
        # Stored with the new job or not at all: a launch may be refused until then.
        ends = named_jobs(call).family_ends(call.caller, str(launch.name), existing, _REPLACED)
        external = evolve(external, ends=ends)
    submissions = Submissions(call.backend)

    def keep(data: bytes, *, archive: bool) -> str:
        return submissions.keep_blob(call.caller, data, archive=archive)

    priority = parent.priority if parent is not None and launch.inherits else None
    written = iris.with_identity(iris.written_of(launch, existing, priority, keep), call.caller.principal)
    return _answered(call.door.launches.launch(call.caller, written, external), launch, answer)


def _refusal(call: Rpc) -> str | None:
    """Say why no callables can be run for who calls, if so."""
    calls = call.backend.calls
    return "callables are not run here" if calls is None else calls.refusal(call.caller.principal)


def _answered(
    stored: Future[str], launch: Launch, answer: controller.Controller.LaunchJobResponse
) -> Future[controller.Controller.LaunchJobResponse]:
    """Return the answer to a launch once it is stored."""
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
    """Return the parent of a job, which must not have ended.

    Raises:
        Rejected: It has, or is not there.
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


def _require_place(call: Rpc, launch: Launch) -> None:
    """Make sure that some node could hold a task, if there are any.

    Raises:
        Rejected: None ever could.
    """
    # Whoever may submit is told whether that fits, also who may look at no node, as the token of a job.
    spec, nodes = launch.spec, call.backend.store.nodes()
    labelled = [node for node in nodes if spec.node_selector.items() <= node.labels.items()]
    if not nodes or any(spec.resources.fits(node.capacity) for node in labelled):
        return
    message = f"no node has the labels {dict(spec.node_selector)}"
    if labelled:
        needs = spec.resources
        message = f"no node has enough: need {needs.cpu_m} cpu_millicores, {needs.memory} memory_bytes, {needs.gpu} gpu"
    raise Rejected(Code.FAILED_PRECONDITION, f"Job {launch.name} is unschedulable: {message}")


def _in_the_way(launch: Launch, existing: Job | None) -> Job:
    """Return the job that has a name.

    Raises:
        Rejected: It is somebody else's.
    """
    if existing is None:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists, and is somebody else's")
    return existing


def _keeps_name(call: Rpc, launch: Launch, named_job: NamedJob, existing: Job, digest: bytes) -> bool:
    """Say whether a launch means the job that has its name; if not, the name is given to another.

    Raises:
        Rejected: It keeps its name, and is not meant.
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
