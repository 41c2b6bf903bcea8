"""Turns the facts of how a run ended into conditions, one cause and a category.

A user's cancel wins over everything. Out of memory needs evidence: exit code 137 alone is a program's own code.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.domain.category_match import NO_CATEGORIES
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.category_match import CompiledCategories
    from holdfast.domain.failure import ContainerResult, RunOutcome

_MEANS: dict[EndedBy, FailureCondition] = {
    EndedBy.DEADLINE: FailureCondition.DEADLINE_EXCEEDED,
    EndedBy.MEMORY: FailureCondition.OOM_KILLED,
    EndedBy.PREEMPTION: FailureCondition.PREEMPTED,
}
_CAUSES: tuple[tuple[FailureCondition, Cause], ...] = (
    (FailureCondition.OOM_KILLED, Cause.OOM_KILLED),
    (FailureCondition.IMAGE_PULL_FAILED, Cause.IMAGE_PULL_FAILURE),
    (FailureCondition.DEADLINE_EXCEEDED, Cause.EXECUTION_TIMEOUT),
    (FailureCondition.UNSCHEDULABLE, Cause.SCHEDULER_TIMEOUT),
    (FailureCondition.NODE_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.EXECUTOR_LOST, Cause.AGENT_TRANSIENT),
    (FailureCondition.PREEMPTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.EVICTED, Cause.AGENT_TRANSIENT),
    (FailureCondition.LAUNCH_FAILED, Cause.AGENT_TRANSIENT),
    (FailureCondition.APP_ERROR, Cause.KERNEL_NONZERO_EXIT),
)
"""The first condition that holds gives the cause."""
LOST = frozenset({FailureCondition.NODE_LOST, FailureCondition.EXECUTOR_LOST})
"""Conditions under which its place is gone, with whatever ran there."""


def classify(outcome: RunOutcome, *, rank: int = 0, categories: CompiledCategories = NO_CATEGORIES) -> Failure:
    """Classify a run that did not succeed.

    Args:
        outcome: The facts.
        rank: Of the run in its attempt.
        categories: The operator's, compiled.

    Returns:
        The failure, with every condition that holds, reported or derived.
    """
    conditions = _conditions(outcome)
    failure = Failure(
        cause=_cause(outcome, conditions),
        conditions=conditions,
        containers=outcome.containers,
        rank=rank,
        node=outcome.node,
        executor=outcome.executor,
        started=outcome.started,
        ran_s=outcome.ran_s,
        failed_at=outcome.ended_at,
        message=outcome.message,
        ended_by=outcome.ended_by,
    )
    if categories is NO_CATEGORIES:
        return failure
    found = categories.match(failure, outcome)
    return replace(failure, category=found.category, subcategory=found.subcategory, hint=found.hint)


def initiating(outcomes: Sequence[tuple[int, RunOutcome]]) -> int | None:
    """Find the failure that explains the others: the earliest by time, then by rank.

    Args:
        outcomes: Rank and outcome of each run that has ended.

    Returns:
        Its index; ``None`` when every run succeeded or was stopped by us because of another.
    """
    blamed = (
        (outcome.ended_at, rank, index)
        for index, (rank, outcome) in enumerate(outcomes)
        if not outcome.succeeded and outcome.ended_by is not EndedBy.CASCADE
    )
    first = min(blamed, default=None)
    return None if first is None else first[2]


def _conditions(outcome: RunOutcome) -> frozenset[str]:
    """Add what follows from the facts to the engine's conditions."""
    found = set(outcome.conditions)
    if outcome.ended_by in _MEANS:
        found.add(_MEANS[outcome.ended_by])
    if outcome.ended_by is EndedBy.LOST and not found & LOST:
        found.add(FailureCondition.EXECUTOR_LOST)
    if outcome.ended_by is EndedBy.ITSELF and not found:
        if not outcome.started:
            found.add(FailureCondition.LAUNCH_FAILED)
        elif any(_own_error(container) for container in outcome.containers):
            found.add(FailureCondition.APP_ERROR)
    if any(container.failed and container.reason == FailureCondition.OOM_KILLED for container in outcome.containers):
        found.add(FailureCondition.OOM_KILLED)
    return frozenset(found)


def _own_error(container: ContainerResult) -> bool:
    return container.failed and container.reason != FailureCondition.OOM_KILLED


def _cause(outcome: RunOutcome, conditions: frozenset[str]) -> Cause:
    if outcome.ended_by is EndedBy.USER:
        return Cause.USER_CANCELLED
    for condition, cause in _CAUSES:
        if condition in conditions:
            return cause
    return Cause.UNKNOWN
