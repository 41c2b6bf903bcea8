"""What all kinds of work have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec

GANG = "gang"
KUBEJOB = "kubejob"
JOBSET = "jobset"
UNREAD = "job"
"""The kind of a job whose kind is unknown."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A workload that is left alone because handling it failed; no other is affected."""

    id: str
    kind: str
    since: float
    message: str
    """What failed, and how."""


def kind_of(job: Job, spec: JobSpec) -> str:
    """Return the kind of a job; jobs of job sets are Kubernetes Jobs."""
    return KUBEJOB if job.child is not None or spec.kube is not None else GANG
