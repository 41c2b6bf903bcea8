"""Shows workloads that are quarantined as what they are: jobs by their reason, job sets by a condition."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.jobset.state import SetCondition
from holdfast.errors import UnreadableSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.domain.workloads.jobset.state import JobSet

CONDITION = "Quarantined"
W = TypeVar("W", bound=Owner)


def shown_jobs(jobs: Sequence[Job], known: Mapping[str, Quarantined]) -> Sequence[Job]:
    """Show jobs, those that are quarantined with that as their reason."""
    if not known:
        return jobs
    return [evolve(job, reason=reason_of(known[job.id])) if job.id in known else job for job in jobs]


def shown_set(job_set: JobSet, known: Mapping[str, Quarantined]) -> JobSet:
    """Show a job set, with one condition more if it is quarantined."""
    found = known.get(job_set.id)
    if found is None:
        return job_set
    condition = SetCondition(CONDITION, status=True, reason=CONDITION, message=found.message, since=found.since)
    return evolve(job_set, state=evolve(job_set.state, conditions=(*job_set.state.conditions, condition)))


def reason_of(quarantined: Quarantined) -> str:
    """Say why a workload is left alone."""
    return f"quarantined: Holdfast failed while {quarantined.message}"


def readable(rows: Iterable[W], spec_of: Callable[[W], object]) -> list[W]:
    """Leave out of a list the workloads whose specification is damaged: there is nothing to show of them."""
    found = []
    for row in rows:
        with suppress(UnreadableSpec):
            spec_of(row)
            found.append(row)
    return found
