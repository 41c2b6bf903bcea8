"""Decides when programs restarted in place may go on together, and when that has happened too often (KEP-467).

Each pod reports how often it has restarted in place. When all are equal the barrier lifts; until then the stragglers
restart; more than ``maxRestarts`` fails the set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.domain.workloads.jobset.conditions import REACHED_MAX_RESTARTS, Transition, failed

if TYPE_CHECKING:
    from holdfast.domain.workloads.jobset.model import FailurePolicy, JobSetSpec
    from holdfast.domain.workloads.jobset.state import JobSetState


@dataclass(frozen=True, slots=True)
class InPlace:
    """What the pods of a set report."""

    attempts: tuple[int | None, ...]
    """Of each pod; ``None`` before it has reported."""
    container_restarts: int = 0
    """The most restarts of any one container: one that fails too early never reaches the barrier."""


def expected_pods(spec: JobSetSpec) -> int:
    """Say how many pods must meet at the barrier."""
    return sum(group.replicas * group.job.parallelism for group in spec.replicated_jobs)


def restart_in_place(
    spec: JobSetSpec, policy: FailurePolicy, state: JobSetState, seen: InPlace, now: float
) -> Transition:
    """Move the barrier to where the pods are."""
    attempts = [attempt for attempt in seen.attempts if attempt is not None]
    latest = max(attempts, default=0)
    uncounted = state.restarts - state.restarts_counted
    if seen.container_restarts > policy.max_restarts or latest - uncounted > policy.max_restarts:
        return failed(state, *REACHED_MAX_RESTARTS, now)
    if len(attempts) == expected_pods(spec) and len(set(attempts)) == 1:
        return Transition(replace(state, in_place_current=latest))
    if latest == 0:
        return Transition(state)
    before = state.in_place_previous
    return Transition(replace(state, in_place_previous=latest - 1 if before is None else max(before, latest - 1)))
