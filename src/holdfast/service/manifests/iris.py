"""Reads the launches of Iris' clients, and describes jobs in Iris' terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.iris.launches import IRIS, REQUEST, Launch, kept_request, read_launch
from holdfast.dialects.iris.names import JobName, TaskName, read_name, read_task, target_of
from holdfast.dialects.iris.program import TaskServer, is_called
from holdfast.dialects.iris.status import (
    COMPLETED,
    FINISHED,
    KICKED,
    STORED_AS,
    IrisState,
    job_state,
    job_status,
    task_status,
)
from holdfast.domain.record import evolve
from holdfast.domain.rights import hands_on
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind, OnUnmet
from holdfast.domain.workloads.preparing import Input
from holdfast.errors import InvalidManifest, Problem, UnreadableSpec
from holdfast.service.manifests.fluster import external_name
from holdfast.service.submit import WrittenJob

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.names import ExternalName

__all__ = [
    "COMPLETED",
    "FINISHED",
    "KICKED",
    "STORED_AS",
    "SYSTEM",
    "IrisState",
    "JobName",
    "Launch",
    "TaskName",
    "TaskServer",
    "job_state",
    "job_status",
    "launch_of",
    "named_by",
    "read_name",
    "read_task",
    "request_of",
    "target_of",
    "task_status",
    "with_identity",
    "written_of",
]
SYSTEM = IRIS
"""The prefix of the names of Iris' jobs."""
_HINT = (
    "HOLDFAST_FLUSTER_PYTHON names a Python that has cloudpickle and that the account of the job can run; "
    "or have setup scripts leave an environment in IRIS_VENV"
)


def launch_of(request: Mapping[str, Any], server: TaskServer, refusal: Callable[[], str | None]) -> Launch:
    """Read a launch; see ``read_launch``.

    Args:
        request: The fields that are set.
        server: The parts of this server that a task may use.
        refusal: Returns why its Python cannot run calls, if so.

    Raises:
        InvalidManifest: It is not valid; with every problem found.
    """
    problems: list[Problem] = []
    launch = read_launch(request, server, problems)
    why = refusal() if is_called(request) else None
    if why is not None:
        problems.append(Problem("entrypoint", why, hint=_HINT))
    if launch is None or problems:
        msg = "the launch is not valid"
        raise InvalidManifest(msg, problems=problems)
    return launch


def named_by(launch: Launch, caller: Caller, request: bytes, existing: Job | None) -> ExternalName:
    """Return the external name of a launched job, which replaces the job that has had the name."""
    name = external_name(str(launch.name), caller, request, SYSTEM)
    parent = "" if launch.name.parent is None else f"{SYSTEM}/{launch.name.parent}"
    return evolve(name, parent=parent, replaces="" if existing is None else existing.id)


def written_of(launch: Launch, existing: Job | None, priority: int | None, keep: Callable[..., str]) -> WrittenJob:
    """Return the job to submit for a launch.

    Args:
        launch: The launch.
        existing: The job that has had the name; if it has not ended, the new job waits for that.
        priority: The priority of its parent, if it inherits that.
        keep: Keeps a file, or with ``archive`` an archive, and returns its name.
    """
    spec = launch.spec if priority is None else evolve(launch.spec, priority=priority)
    if existing is not None and not existing.terminal:
        ended = Dependency(existing.id, Condition.ENDED, OnUnmet.RUN, target=DependencyKind.JOB)
        spec = evolve(spec, after=(ended,))
    files = launch.files
    if files.bundle:
        bundle = keep(files.bundle, archive=True)
        archive = Input(blob=bundle, unpack=True)
        spec = evolve(spec, inputs=(archive, *spec.inputs), env={**spec.env, "IRIS_BUNDLE_ID": bundle})
    large = tuple(Input(path, blob=keep(data, archive=False)) for path, data in files.large)
    spec = evolve(spec, inputs=(*spec.inputs, *large))
    return WrittenJob(spec, flat=True)


def with_identity(written: WrittenJob, principal: Principal) -> WrittenJob:
    """Give a job's tasks a token of their own for the jobs below it, if the launching principal may do that."""
    below = written.spec.group
    return evolve(written, spec=evolve(written.spec, identity=below)) if hands_on(principal, below) else written


def request_of(job: Job) -> dict[str, Any]:
    """Return the request that launched a job, without files and variables."""
    spec = _spec_of(job)
    return {} if spec is None or REQUEST not in spec.annotations else kept_request(spec.annotations)


def _spec_of(job: Job) -> JobSpec | None:
    try:
        return load_spec(job.spec)
    except UnreadableSpec:
        return None
