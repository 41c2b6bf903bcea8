"""What the controller keeps in memory of job sets and Kubernetes Jobs, beside their records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.workloads.jobset.children import Child, CreateJob
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import JobSet
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord


@dataclass(slots=True, eq=False)
class PodWork:
    """One pod: a place, and the programs that run in it one after the other."""

    record: PodRecord
    run: Run | None = None
    """Its program; ``None`` while it waits for a place or to start again."""
    first: str = ""
    """Uid its first run will have."""
    placement_id: str = ""
    """Its id in the pending queue; empty while it does not wait."""
    kept: Run | None = None
    """The place it keeps while it waits to restart in place, charged separately."""


@dataclass(slots=True, eq=False)
class JobWork:
    """One job made of pods."""

    record: KubeJobRecord
    stored: KubeJobRecord | None = None
    """The record as it was last written."""
    pods: dict[str, PodWork] = field(default_factory=dict)
    """Those that have not ended, by name."""
    pod_names: dict[str, str] = field(default_factory=dict)
    """The pod of each run that has not ended, by the run's uid."""
    created: CreateJob | None = None
    """The order its set created its attempt by, if it has a set."""
    wake_at: float | None = None
    """When to look at it again although nothing happens."""
    grace_s: float | None = None
    """Grace for stopping from now on, when that is less than its template's."""
    last_failure: tuple[int, RunOutcome] | None = None
    """Rank and facts of the last run that failed by itself."""

    def begin(self) -> None:
        """Forget what was of the attempt before."""
        self.pods, self.pod_names = {}, {}
        self.grace_s, self.last_failure, self.created = None, None, None


@dataclass(slots=True, eq=False)
class SetWork:
    """One job set."""

    row: JobSet
    spec: JobSetSpec
    jobs: dict[str, str] = field(default_factory=dict)
    """Ids of its jobs, by name."""
    children: dict[str, Child] = field(default_factory=dict)
    """Its existing jobs, by name, as last seen."""
    in_place: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """How often their pods last reported to have restarted in place, by name."""
