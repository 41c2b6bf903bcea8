"""Launches jobs, under names of which an earlier job may have had one."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.iris._generated import controller
from holdfast.api.iris.calls import CALLS, CONTROLLER, Place, plain
from holdfast.api.iris.family import every, newest
from holdfast.service.manifests import iris
from holdfast.service.operations.batches import JobBatches
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import JobOperations
from holdfast.service.operations.nodes import Nodes
from holdfast.service.operations.submissions import Submissions

if TYPE_CHECKING:
    from holdfast.api.connect.calls import Asked, Call
    from holdfast.domain.job import Job
    from holdfast.service.manifests.iris import JobName, Launch

_Controller = controller.Controller
ERROR, KEEP, RECREATE = 1, 2, 3
"""Of ``ExistingJobPolicy``; without one, a job that has finished is replaced, and another is in the way."""
REPLAYED_S = 60.0
"""How long the same launch means the job that it made: a client that lost the answer sends it again."""
_REPLACED = "Replaced by new submission"


def launching(place: Place) -> Call:
    """Return what answers LaunchJob for tasks that are told this of the server."""

    def launch_job(asked: Asked, sent: controller.Controller.LaunchJobRequest) -> _Controller.LaunchJobResponse:
        launch = iris.launch_of(plain(sent), place.url, place.python)
        digest = sha256(sent.SerializeToString(deterministic=True)).hexdigest()
        parent = _parent(asked, launch.name)
        _require_place(asked, launch)
        there = newest(asked, launch.name)
        if there is None or _makes_way(asked, launch, there, digest):
            _submit(asked, launch, digest, there, parent)
        return _Controller.LaunchJobResponse(job_id=str(launch.name))

    return launch_job


CALLS.leave_out("LaunchJob", CONTROLLER, "LaunchJob is answered once the door is open")


def _parent(asked: Asked, name: JobName) -> Job | None:
    """Return the parent of a job, which must not have ended.

    Raises:
        Rejected: It has, or is not there.
    """
    if name.parent is None:
        return None
    found = newest(asked, name.parent)
    if found is None:
        raise Rejected(Code.FAILED_PRECONDITION, f"Cannot submit job: there is no parent job {name.parent}")
    if found.terminal or found.cancel_requested:
        told = f"Cannot submit job: parent job {name.parent} has terminated ({found.state})"
        raise Rejected(Code.FAILED_PRECONDITION, told)
    return found


def _require_place(asked: Asked, launch: Launch) -> None:
    """Make sure that some node could hold a task, if there are any.

    Raises:
        Rejected: None ever could.
    """
    spec, nodes = launch.spec, Nodes(asked.backend.store, asked.backend.clock).list(asked.caller).nodes
    labelled = [node for node in nodes if spec.node_selector.items() <= node.labels.items()]
    if not nodes or any(spec.resources.fits(node.capacity) for node in labelled):
        return
    told = f"no node has the labels {dict(spec.node_selector)}"
    if labelled:
        needs = spec.resources
        told = f"no node has enough: need {needs.cpu_m} cpu_millicores, {needs.memory} memory_bytes, {needs.gpu} gpu"
    raise Rejected(Code.FAILED_PRECONDITION, f"Job {launch.name} is unschedulable: {told}")


def _makes_way(asked: Asked, launch: Launch, there: Job, digest: str) -> bool:
    """Say whether a name is given to another job; if not, the one that has it is meant.

    Raises:
        Rejected: It keeps its name.
    """
    finished = there.terminal or there.cancel_requested
    if not finished and iris.digest_of(there) == digest and asked.backend.clock.now() - there.submitted_at < REPLAYED_S:
        return False
    if launch.existing == KEEP and not finished:
        return False
    if launch.existing == RECREATE and not finished:
        where = JobOperations(asked.backend).meant(asked.caller, JobQuery(group=f"{launch.name}/", labels=[iris.LABEL]))
        JobBatches(asked.backend).cancel(asked.caller, where, _REPLACED)
        return True
    if launch.existing == ERROR:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists ({there.state})")
    if not finished:
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists and is still running")
    return True


def _submit(asked: Asked, launch: Launch, digest: str, there: Job | None, parent: Job | None) -> None:
    """Submit it, as the one that follows the job that has had the name.

    Raises:
        Rejected: Another one does at the same moment.
    """
    priority = parent.priority if parent is not None and launch.inherits else None
    submissions = Submissions(asked.backend)

    def keep(data: bytes, *, archive: bool) -> str:
        return submissions.keep_blob(asked.caller, data, archive=archive)

    written = iris.written_of(launch, digest, "" if there is None else there.id, priority, keep)
    [outcome] = submissions.submit_many(asked.caller, [written])
    if outcome.made is not None and digest not in map(iris.digest_of, every(asked, str(launch.name))):
        raise Rejected(Code.ALREADY_EXISTS, f"Job {launch.name} already exists (concurrent submission)")
