"""Sorts a set's jobs into past, failed, succeeded and active ones, and counts them by replicated job in linear time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.state import ChildPhase, GroupStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.state import Child, JobSetState


@dataclass(slots=True)
class Sorted:
    """The jobs of a set."""

    present: set[str] = field(default_factory=set)
    """Every name still taken."""
    by_group: Mapping[str, int] = field(default_factory=dict)
    """How many of them each replicated job has."""
    previous: list[Child] = field(default_factory=list)
    """Of an earlier attempt: they must go."""
    failed: list[Child] = field(default_factory=list)
    """Failed and not judged yet."""
    left: list[Child] = field(default_factory=list)
    """Failed, judged, and left failed."""
    succeeded: list[Child] = field(default_factory=list)
    active: list[Child] = field(default_factory=list)


def is_previous(state: JobSetState, child: Child) -> bool:
    """Whether a job belongs to an attempt that is over."""
    return child.restart < state.restarts or child.job_restart < state.restarts_of(child.group, child.index)


def sort(spec: JobSetSpec, state: JobSetState, children: Iterable[Child]) -> Sorted:
    """Sort jobs as observed."""
    certain = spec.failure is not None and spec.failure.on_certain
    alone = {*state.job_restarts, *state.group_restarts}
    children = list(children)
    found, restarts, working, active = Sorted(), state.restarts, ChildPhase.ACTIVE, []
    found.present = {child.name for child in children}
    found.by_group = Counter([child.group for child in children])
    for child in children:
        if child.restart < restarts or (child.group in alone and is_previous(state, child)):
            found.previous.append(child)
        elif child.phase is working and not (certain and child.certain):
            active.append(child)
        elif child.phase is ChildPhase.SUCCEEDED:
            found.succeeded.append(child)
        else:
            judged = state.left_failed.get(child.name) == child.attempt
            (found.left if judged else found.failed).append(child)
    found.active = active
    return found


def group_statuses(spec: JobSetSpec, jobs: Sorted) -> tuple[GroupStatus, ...]:
    """Count the jobs of the current generation by replicated job."""
    counts = {group.name: _Count() for group in spec.replicated_jobs}
    for child in jobs.succeeded:
        if child.group in counts:
            counts[child.group].succeeded += 1
    for child in (*jobs.failed, *jobs.left):
        if child.group in counts:
            counts[child.group].failed += 1
    needed = {group.name: group.ready_pods for group in spec.replicated_jobs}
    for child in jobs.active:
        if child.group in counts:
            counts[child.group].add(child, needed[child.group])
    return tuple(
        GroupStatus(name, count.ready, count.succeeded, count.failed, count.active, count.suspended)
        for name, count in counts.items()
    )


@dataclass(slots=True)
class _Count:
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    active: int = 0
    suspended: int = 0

    def add(self, child: Child, needed: int) -> None:
        if child.suspended:
            self.suspended += 1
        elif child.succeeded_pods + child.ready_pods >= needed:
            self.ready += 1
        if child.active_pods:
            self.active += 1


def by_name(statuses: Iterable[GroupStatus]) -> Mapping[str, GroupStatus]:
    """Index statuses by replicated job."""
    return {status.name: status for status in statuses}


def all_ready(spec: JobSetSpec, statuses: Iterable[GroupStatus]) -> bool:
    """Whether every job is ready or has succeeded."""
    found = by_name(statuses)
    return all(found[one.name].ready + found[one.name].succeeded == one.replicas for one in spec.replicated_jobs)
