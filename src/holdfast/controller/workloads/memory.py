"""What the controller remembers of Kubernetes Jobs and owners beside their records."""

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
    """The record as last written."""
    pods: dict[str, LivePod] = field(default_factory=dict)
    """Unfinished pods by name."""
    pod_names: dict[str, str] = field(default_factory=dict)
    """The pod of each unfinished run, by the run's uid."""
    wake_at: float | None = None
    """When to look at it again if nothing happens before."""
    grace_s: float | None = None
    """The grace period for stopping from now on, if it is shorter than the template's."""
    last_failure: Failure | None = None
    """When the last run failed by itself."""


class Work(Struct, Generic[R, S], eq=False, gc=True):
    """One workload that owns jobs."""

    row: R
    spec: S
    jobs: dict[str, str] = field(default_factory=dict)
    """Ids of its unfinished jobs, by name."""
    children: dict[str, Child] = field(default_factory=dict)
    """Its existing jobs as last seen, by name."""
    gone: list[Job] = field(default_factory=list)
    """Names of jobs that have just gone and are not begun anew."""
    submitted: set[str] = field(default_factory=set)
    """Names of jobs submitted with a commit that may not be over yet."""
    over: list[str] = field(default_factory=list)
    """Names of jobs that have just ended for good, to be seen once more."""
    first: Mapping[str, int] = field(default_factory=dict)
    """The global index of the first job of each template, if indexes continue across them."""
    reports: dict[str, tuple[int, ...]] | None = None
    """For a set that restarts in place: the last restart that pods reported, by job."""


SetWork: TypeAlias = Work[JobSet, JobSetSpec]
