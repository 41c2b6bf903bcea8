"""Makes the records of a job set's jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.jobset.loading import child_spec
from holdfast.domain.job import ChildOf, JobState
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.jobset.model import job_name
from holdfast.service.admission.records import new_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.domain.workloads.spec import JobSpec


def jobs_of(row: JobSet, spec: JobSetSpec, new_id: Callable[[str], str]) -> Iterator[tuple[Job, JobSpec]]:
    """Make every job of a set; those of one replicated job share one specification.

    Args:
        row: The set.
        spec: What it asks for.
        new_id: Gives a job of that name its id.

    Yields:
        The job as it is submitted, and what it asks for.
    """
    for group in spec.replicated_jobs:
        described = child_spec(spec, group)
        pattern = evolve(
            new_job(described, "", row.created_at),
            kind=KUBEJOB,
            state=JobState.WAITING,
            submitted_by=row.submitted_by,
            submitter_uid=row.submitter_uid,
            group=row.group,
        )
        for index in range(group.replicas):
            name = job_name(spec.name, group.name, index)
            yield evolve(pattern, id=new_id(name), name=name, child=ChildOf(row.id, group.name, index)), described
