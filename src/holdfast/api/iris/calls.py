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
"""Of the paths of the first two."""
LOG_SERVER = "/proxy/system.log-server"
"""Below which clients look for the third."""
CALLS = Methods(PROTOCOL, CONTROLLER, ENDPOINTS, LOGS)


class IrisSettings(Struct, frozen=True):
    """What tasks are told of the server, and how long it remembers their launches."""

    tasks: TaskServer
    again_s: float
    """How long a launch that is sent again is answered as the first time: a client that lost the answer sends it."""


def parse_name(read: Callable[[str, str, list[Problem]], T | None], text: str, path: str) -> T:
    """Read a name.

    Raises:
        InvalidManifest: It is none.
    """
    problems: list[Problem] = []
    name = read(text, path, problems)
    if name is None:
        msg = "the name is not valid"
        raise InvalidManifest(msg, problems=problems)
    return name


def named_jobs(call: Rpc) -> NamedJobs:
    """Return the jobs that came in here, by their names."""
    return NamedJobs(call.backend, iris.SYSTEM)


def find_job(call: Rpc, name: JobName) -> Job | None:
    """Return the job that has a name; ``None``: none has."""
    return named_jobs(call).every(call.caller, [str(name)]).get(str(name))


def require_job(call: Rpc, text: str) -> Job:
    """Return the job that has a name.

    Raises:
        InvalidManifest: It is no name.
        Rejected: No job has it.
    """
    job = find_job(call, parse_name(iris.read_name, text, "job_id"))
    if job is None:
        raise Rejected(Code.NOT_FOUND, f"Job {text} not found")
    return job


def last_attempts(call: Rpc, jobs: Sequence[Job]) -> dict[str, Attempt]:
    """Return the last attempts of those jobs that have failed, by id: these say as what they ended."""
    failed = [job for job in jobs if job.state is JobState.FAILED]
    latest = JobOperations(call.backend).latest(call.caller, failed) if failed else {}
    return {key: last.attempt for key, last in latest.items() if last.attempt is not None}


def states_of(call: Rpc, jobs: Sequence[Job]) -> dict[str, iris.IrisState]:
    """Return the states of jobs by id."""
    last = last_attempts(call, jobs)
    return {job.id: iris.job_state(job, last.get(job.id)) for job in jobs}
