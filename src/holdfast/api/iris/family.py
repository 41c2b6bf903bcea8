"""Finds jobs by the names that Iris' users gave them; who may not know of a job finds none of its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected
from holdfast.domain.job import JobState
from holdfast.errors import InvalidManifest
from holdfast.service.manifests import iris
from holdfast.service.operations.jobs import JobOperations, NamedJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeVar

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Attempt, Job
    from holdfast.errors import Problem
    from holdfast.service.manifests.iris import JobName

    T = TypeVar("T")


def named(read: Callable[[str, str, list[Problem]], T | None], text: str, path: str) -> T:
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


def jobs_named(call: Rpc) -> NamedJobs:
    """Return the jobs that came in here, by their names."""
    return NamedJobs(call.backend, iris.SYSTEM)


def found_job(call: Rpc, name: JobName) -> Job | None:
    """Return the job that has a name; ``None``: none has."""
    return jobs_named(call).every(call.caller, [str(name)]).get(str(name))


def required(call: Rpc, text: str) -> Job:
    """Return the job that has a name.

    Raises:
        InvalidManifest: It is no name.
        Rejected: No job has it.
    """
    job = found_job(call, named(iris.read_name, text, "job_id"))
    if job is None:
        raise Rejected(Code.NOT_FOUND, f"Job {text} not found")
    return job


def last_attempts(call: Rpc, jobs: Sequence[Job]) -> dict[str, Attempt]:
    """Return the last attempts of those jobs that have failed, by id: these say as what they ended."""
    failed = [job for job in jobs if job.state is JobState.FAILED]
    latest = JobOperations(call.backend).latest(call.caller, failed) if failed else {}
    return {key: last.attempt for key, last in latest.items() if last.attempt is not None}


def states(call: Rpc, jobs: Sequence[Job]) -> dict[str, iris.IrisState]:
    """Return the states of jobs by id."""
    last = last_attempts(call, jobs)
    return {job.id: iris.job_state(job, last.get(job.id)) for job in jobs}
