"""Reads what Iris' users send, and tells of jobs in its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_spec
from holdfast.dialects.iris.launches import DOOR, IRIS, REQUEST, Launch, kept_request, read_launch
from holdfast.dialects.iris.names import JobName, TaskName, read_name, read_task, target_of
from holdfast.dialects.iris.status import FINISHED, KICKED, State, job_state, job_status, task_status
from holdfast.domain.record import evolve
from holdfast.domain.workloads.preparing import Input
from holdfast.errors import InvalidManifest, Problem, UnreadableSpec
from holdfast.service.submit import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec

__all__ = [
    "FINISHED",
    "KICKED",
    "LABEL",
    "JobName",
    "Launch",
    "State",
    "TaskName",
    "digest_of",
    "job_state",
    "job_status",
    "launch_of",
    "read_name",
    "read_task",
    "request_of",
    "target_of",
    "task_status",
    "written_of",
]
LABEL = f"{DOOR}={IRIS}"
"""How jobs are found that came in here."""
DIGEST = "iris/digest"
"""The annotation that tells launches apart."""
_CLAIM = "iris/{name}/{after}"


def launch_of(given: Mapping[str, Any], controller: str, python: str) -> Launch:
    """Read a launch; see ``read_launch``.

    Raises:
        InvalidManifest: It is not valid; with every problem found.
    """
    problems: list[Problem] = []
    found = read_launch(given, controller, python, problems)
    if found is None:
        msg = "the launch is not valid"
        raise InvalidManifest(msg, problems=problems)
    return found


def written_of(launch: Launch, digest: str, after: str, priority: int | None, keep: Callable[..., str]) -> Written:
    """Return what is submitted of a launch.

    Args:
        launch: What was asked for.
        digest: What tells it apart from others of its name.
        after: Id of the job that has had the name before, empty for none: of all that follow it one is made.
        priority: The priority of its parent, where it inherits that.
        keep: Keeps a file, or with ``archive`` an archive, and returns its name.
    """
    spec = evolve(launch.spec, annotations={**launch.spec.annotations, DIGEST: digest})
    if priority is not None:
        spec = evolve(spec, priority=priority)
    files = launch.files
    if files.bundle:
        bundle = keep(files.bundle, archive=True)
        archive = Input(blob=bundle, unpack=True)
        spec = evolve(spec, inputs=(archive, *spec.inputs), env={**spec.env, "IRIS_BUNDLE_ID": bundle})
    large = tuple(Input(path, blob=keep(data, archive=False)) for path, data in files.large)
    spec = evolve(spec, inputs=(*spec.inputs, *large))
    return Written(spec, flat=True, claim=_CLAIM.format(name=launch.name, after=after))


def digest_of(job: Job) -> str:
    """Return what tells a job's launch apart."""
    spec = _spec_of(job)
    return "" if spec is None else spec.annotations.get(DIGEST, "")


def request_of(job: Job) -> dict[str, Any]:
    """Return what was asked for when a job was launched, without its files and variables."""
    spec = _spec_of(job)
    return {} if spec is None or REQUEST not in spec.annotations else kept_request(spec.annotations)


def _spec_of(job: Job) -> JobSpec | None:
    try:
        return load_spec(job.spec)
    except UnreadableSpec:
        return None
