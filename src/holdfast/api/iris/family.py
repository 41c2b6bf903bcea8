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
    found = read(text, path, problems)
    if found is None:
        msg = "the name is not valid"
        raise InvalidManifest(msg, problems=problems)
    return found


def jobs_named(asked: Rpc) -> NamedJobs:
    """Return the jobs that came in here, by their names."""
    return NamedJobs(asked.backend, iris.SYSTEM)


def found_job(asked: Rpc, name: JobName) -> Job | None:
    """Return the job that has a name; ``None``: none has."""
    return jobs_named(asked).every(asked.caller, [str(name)]).get(str(name))


def required(asked: Rpc, text: str) -> Job:
    """Return the job that has a name.

    Raises:
        InvalidManifest: It is no name.
        Rejected: No job has it.
    """
    found = found_job(asked, named(iris.read_name, text, "job_id"))
    if found is None:
        raise Rejected(Code.NOT_FOUND, f"Job {text} not found")
    return found


def last_attempts(asked: Rpc, jobs: Sequence[Job]) -> dict[str, Attempt]:
    """Return the last attempts of those jobs that have failed, by id: these say as what they ended."""
    failed = [job for job in jobs if job.state is JobState.FAILED]
    latest = JobOperations(asked.backend).latest(asked.caller, failed) if failed else {}
    return {key: found.attempt for key, found in latest.items() if found.attempt is not None}


def states(asked: Rpc, jobs: Sequence[Job]) -> dict[str, iris.IrisState]:
    """Return the states of jobs by id."""
    last = last_attempts(asked, jobs)
    return {job.id: iris.job_state(job, last.get(job.id)) for job in jobs}
