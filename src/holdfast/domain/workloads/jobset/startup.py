"""Which replicated jobs may start now: startup order and dependencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.model import DependencyStatus, StartupOrder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.workloads.jobset.model import JobSetSpec, ReplicatedJob
    from holdfast.domain.workloads.jobset.state import GroupStatus


def started(group: ReplicatedJob, status: GroupStatus) -> bool:
    """Whether each of its jobs is ready or has ended; being active alone is not started."""
    return status.ready + status.failed + status.succeeded == group.replicas


def dependencies_met(spec: JobSetSpec, group: ReplicatedJob, statuses: Mapping[str, GroupStatus]) -> bool:
    """Whether a replicated job's dependencies have the status it asks for."""
    for dependency in group.depends_on:
        other = spec.by_name[dependency.name]
        status = statuses[other.name]
        if dependency.status is DependencyStatus.COMPLETE and status.succeeded != other.replicas:
            return False
        if dependency.status is DependencyStatus.READY and not started(other, status):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Startup:
    """Which replicated jobs may have jobs now."""

    allowed: tuple[ReplicatedJob, ...]
    in_order: bool
    """Whether the set starts in order at all, and is not suspended."""
    done: bool
    """Whether every replicated job has started."""


def startup(spec: JobSetSpec, statuses: Mapping[str, GroupStatus]) -> Startup:
    """Return which replicated jobs may have jobs: in order, up to the first that has not started."""
    in_order = spec.startup is StartupOrder.IN_ORDER and not spec.suspend
    allowed = []
    for group in spec.replicated_jobs:
        if not dependencies_met(spec, group, statuses):
            continue
        allowed.append(group)
        if in_order and not started(group, statuses[group.name]):
            return Startup(tuple(allowed), in_order=True, done=False)
    return Startup(tuple(allowed), in_order=in_order, done=True)
