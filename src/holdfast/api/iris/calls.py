"""The table of calls that Iris' services answer, and the jobs that callers mean by the names they gave them.

Each module registers its calls in the table. A caller who may not see a job finds no job of its name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.calls import Methods
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.iris._generated.pool import PROTOCOL
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct
from holdfast.errors import InvalidManifest
from holdfast.service.manifests import iris
from holdfast.service.operations.jobs import JobOperations, NamedJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Attempt, Job
    from holdfast.errors import Problem
    from holdfast.service.manifests.iris import JobName, TaskServer

    T = TypeVar("T")

CONTROLLER = "iris.cluster.ControllerService"
ENDPOINTS = "iris.cluster.EndpointService"
LOGS = "finelog.logging.LogService"
PREFIX = "/iris.cluster."
"""The prefix of the paths of the first two."""
LOG_SERVER = "/proxy/system.log-server"
"""The path below which clients look for the third."""
CALLS = Methods(PROTOCOL, CONTROLLER, ENDPOINTS, LOGS)


class IrisSettings(Struct, frozen=True):
    """What tasks are told of the server, and how long it remembers their launches."""

    tasks: TaskServer
    again_s: float
    """How long a launch that is sent again gets the answer of the first: a client that lost the answer repeats it."""


def parse_name(read: Callable[[str, str, list[Problem]], T | None], text: str, path: str) -> T:
    """Parse a name with ``read``.

    Raises:
        InvalidManifest: It is not valid.
    """
    problems: list[Problem] = []
    name = read(text, path, problems)
    if name is None:
        msg = "the name is not valid"
        raise InvalidManifest(msg, problems=problems)
    return name


def named_jobs(call: Rpc) -> NamedJobs:
    """Return the jobs of this door, by name."""
    return NamedJobs(call.backend, iris.SYSTEM)


def find_job(call: Rpc, name: JobName) -> Job | None:
    """Find a job by its name."""
    return named_jobs(call).every(call.caller, [str(name)]).get(str(name))


def require_job(call: Rpc, text: str) -> Job:
    """Return the job with this name.

    Raises:
        InvalidManifest: It is not a valid name.
        Rejected: No job has it.
    """
    job = find_job(call, parse_name(iris.read_name, text, "job_id"))
    if job is None:
        raise Rejected(Code.NOT_FOUND, f"Job {text} not found")
    return job


def last_attempts(call: Rpc, jobs: Sequence[Job]) -> dict[str, Attempt]:
    """Return the last attempts of failed jobs by job id, which Iris' states of failed jobs depend on."""
    failed = [job for job in jobs if job.state is JobState.FAILED]
    latest = JobOperations(call.backend).latest(call.caller, failed) if failed else {}
    return {key: last.attempt for key, last in latest.items() if last.attempt is not None}


def states_of(call: Rpc, jobs: Sequence[Job]) -> dict[str, iris.IrisState]:
    """Return the states of jobs by job id."""
    last = last_attempts(call, jobs)
    return {job.id: iris.job_state(job, last.get(job.id)) for job in jobs}
