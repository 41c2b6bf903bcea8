"""What the controller keeps in memory of Kubernetes Jobs and of what is made of jobs, beside their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeAlias, TypeVar

from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.children import Child
    from holdfast.domain.workloads.kubejob.pods import LivePod
    from holdfast.domain.workloads.kubejob.records import KubeJobRecord


R = TypeVar("R", bound=Owner)
S = TypeVar("S")


class JobWork(Struct, eq=False, gc=True):
    """One job made of pods."""

    record: KubeJobRecord
    stored: KubeJobRecord | None = None
    """The record as it was last written."""
    pods: dict[str, LivePod] = field(default_factory=dict)
    """Those that have not ended, by name."""
    pod_names: dict[str, str] = field(default_factory=dict)
    """The pod of each run that has not ended, by the run's uid."""
    wake_at: float | None = None
    """When to look at it again although nothing happens."""
    grace_s: float | None = None
    """Grace for stopping from now on, when that is less than its template's."""
    last_failure: Failure | None = None
    """Of the last run that failed by itself."""


class Work(Struct, Generic[R, S], eq=False, gc=True):
    """One workload that is made of jobs."""

    row: R
    spec: S
    jobs: dict[str, str] = field(default_factory=dict)
    """Ids of its jobs that are not over, by name."""
    children: dict[str, Child] = field(default_factory=dict)
    """Its existing jobs, by name, as last seen."""
    gone: list[Job] = field(default_factory=list)
    """Those that have just gone and are not begun anew."""
    submitted: set[str] = field(default_factory=set)
    """Names of those submitted with a commit that may not be over yet."""
    over: list[str] = field(default_factory=list)
    """Names of those that have just ended for good, to be shown once more."""
    first: Mapping[str, int] = field(default_factory=dict)
    """The global index of the first job made from each thing, where they are counted through."""
    reports: dict[str, tuple[int, ...]] | None = None
    """Of a set that restarts in place: how often pods last reported to have done so, by job."""


SetWork: TypeAlias = Work[JobSet, JobSetSpec]
