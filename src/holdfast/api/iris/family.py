"""Finds jobs by their names: the group of each is its name, and of those that have had one the newest is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import Code, Rejected
from holdfast.errors import InvalidManifest
from holdfast.service.manifests import iris
from holdfast.service.operations.filters import JobQuery
from holdfast.service.operations.jobs import LARGEST_PAGE, JobOperations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    from holdfast.api.connect.calls import Asked
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


def newest(asked: Asked, name: JobName) -> Job | None:
    """Return the job that has a name; ``None``: none has."""
    return next(reversed([*every(asked, str(name))]), None)


def required(asked: Asked, text: str) -> Job:
    """Return the job that has a name.

    Raises:
        InvalidManifest: It is no name.
        Rejected: No job has it.
    """
    found = newest(asked, named(iris.read_name, text, "job_id"))
    if found is None:
        raise Rejected(Code.NOT_FOUND, f"Job {text} not found")
    return found


def below(asked: Asked, name: str) -> dict[str, Job]:
    """Return the jobs whose names begin with one and a slash, and that one's, by name; of an empty name all."""
    return {job.group: job for job in every(asked, f"{name}/" if name else None)}


def every(asked: Asked, group: str | None) -> Iterator[Job]:
    """Yield all jobs of a group that came in here, in order of submission."""
    jobs, after = JobOperations(asked.backend), 0
    where = jobs.meant(asked.caller, JobQuery(group=group, labels=[iris.LABEL]))
    while True:
        page = jobs.page(asked.caller, where, after=after, limit=LARGEST_PAGE)
        yield from page.jobs
        if page.next_after is None:
            return
        after = page.next_after


def states(asked: Asked, jobs: list[Job]) -> dict[str, iris.State]:
    """Return the states of jobs by id."""
    failed = [job for job in jobs if job.terminal]
    latest = JobOperations(asked.backend).latest(asked.caller, failed) if failed else {}

    def last(job: Job) -> Attempt | None:
        return latest[job.id].attempt if job.id in latest else None

    return {job.id: iris.job_state(job, last(job)) for job in jobs}
