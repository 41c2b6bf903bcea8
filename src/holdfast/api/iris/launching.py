"""Launches jobs, under names of which an earlier job may have had one."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from holdfast.api.connect.plain import plain
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.iris._generated import controller
from holdfast.api.iris.calls import CALLS, CONTROLLER
from holdfast.api.iris.family import found_job, jobs_named
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
    asked: Rpc, sent: controller.Controller.LaunchJobRequest
) -> controller.Controller.LaunchJobResponse | Future[controller.Controller.LaunchJobResponse]:
    """Submit a job; what comes at about the same time is stored together."""
    place = asked.door.place
    launch = iris.launch_of(plain(sent), place.tasks, lambda: _refusal(asked))
    answer = _Controller.LaunchJobResponse(job_id=str(launch.name))
    parent = _parent(asked, launch.name)
    _require_place(asked, launch)
    taken = jobs_named(asked).taken(asked.caller, str(launch.name))
    there = None if taken is None else found_job(asked, launch.name)
    external = iris.named_by(launch, asked.caller, sent.SerializeToString(deterministic=True), there)
    if taken is not None:
        there = _in_the_way(launch, there)
        if _keeps_name(asked, launch, taken, there, external.digest):
            return answer
        # Stored with the new job or not at all: a launch may be refused until then.
        ends = jobs_named(asked).family_ends(asked.caller, str(launch.name), there, _REPLACED)
        external = evolve(external, ends=ends)
    submissions = Submissions(asked.backend)

    def keep(data: bytes, *, archive: bool) -> str:
        return submissions.keep_blob(asked.caller, data, archive=archive)

    priority = parent.priority if parent is not None and launch.inherits else None
    written = iris.with_identity(iris.written_of(launch, there, priority, keep), asked.caller.principal)
    return _answered(asked.door.launches.launch(asked.caller, written, external), launch, answer)


def _refusal(asked: Rpc) -> str | None:
    """Say why no callables can be run for who calls, if so."""
    calls = asked.backend.calls
    return "callables are not run here" if calls is None else calls.refusal(asked.caller.principal)


def _answered(
    stored: Future[str], launch: Launch, answer: controller.Controller.LaunchJobResponse
) -> Future[controller.Controller.LaunchJobResponse]:
    """Return the answer to a launch once it is stored."""
    told: Future[controller.Controller.LaunchJobResponse] = Future()

    def launched(done: Future[str]) -> None:
        error = done.exception()
        if not told.set_running_or_notify_cancel():
            return
        if isinstance(error, AlreadyExists) and launch.existing != KEEP:
            message = f"Job {launch.name} already exists (concurrent submission)"
            told.set_exception(Rejected(Code.ALREADY_EXISTS, message))
        elif error is not None and not isinstance(error, AlreadyExists):
            told.set_exception(error)
        else:
            told.set_result(answer)

    stored.add_done_callback(launched)
    return told


def _parent(asked: Rpc, name: JobName) -> Job | None:
    """Return the parent of a job, which must not have ended.

    Raises:
        Rejected: It has, or is not there.
    """
    if name.parent is None:
        return None
    found = found_job(asked, name.parent)
    if found is None:
        raise Rejected(Code.FAILED_PRECONDITION, f"Cannot submit job: there is no parent job {name.parent}")
    if found.terminal or found.cancel_requested:
        told = f"Cannot submit job: parent job {name.parent} has terminated ({found.state})"
        raise Rejected(Code.FAILED_PRECONDITION, told)
    return found


def _require_place(asked: Rpc, launch: Launch) -> None:
    """Make sure that some node could hold a task, if there are any.

    Raises:
        Rejected: None ever could.
    """
    # Whoever may submit is told whether that fits, also who may look at no node, as the token of a job.
    spec, nodes = launch.spec, asked.backend.store.nodes()
    labelled = [node for node in nodes if spec.node_selector.items() <= node.labels.items()]
    if not nodes or any(spec.resources.fits(node.capacity) for node in labelled):
        return
    told = f"no node has the labels {dict(spec.node_selector)}"
    if labelled:
        needs = spec.resources
        told = f"no node has enough: need {needs.cpu_m} cpu_millicores, {needs.memory} memory_bytes, {needs.gpu} gpu"
    raise Rejected(Code.FAILED_PRECONDITION, f"Job {launch.name} is unschedulable: {told}")


def _in_the_way(launch: Launch, there: Job | None) -> Job:
    """Return the job that has a name.

    Raises:
        Rejected: It is somebody else's.
    """
    if there is None:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists, and is somebody else's")
    return there


def _keeps_name(asked: Rpc, launch: Launch, taken: NamedJob, there: Job, digest: bytes) -> bool:
    """Say whether a launch means the job that has its name; if not, the name is given to another.

    Raises:
        Rejected: It keeps its name, and is not meant.
    """
    name = str(launch.name)
    finished = there.terminal or there.cancel_requested
    sent_again = taken.digest == digest and asked.backend.clock.now() - taken.taken_at <= asked.door.place.again_s
    if not finished and (sent_again or launch.existing == KEEP):
        return True
    if launch.existing == ERROR:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {name} already exists ({there.state})")
    if not finished and launch.existing != RECREATE:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {name} already exists and is still running")
    return False
