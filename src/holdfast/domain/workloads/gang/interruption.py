"""What happens to a gang whose runs were stopped through no fault of their own.

For a hold or a drain it costs no retry. A preemption is a failure of its own kind, which policies decide about; so is
an eviction by a machine that runs out of memory or disk.

A run told to stop can exit immediately, in any way: with its checkpointed exit code, or with 0, which then also means
that it has saved, not that it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.classify import classify
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, RunOutcome
from holdfast.domain.lifecycle import DRAIN_NODE, EVICT_JOB, HOLD_JOB, PREEMPT_JOB, Ending, Interruption
from holdfast.domain.lifecycle.interruptions import EVICTIONS
from holdfast.domain.policy.model import Action, Decision, DecisionCode
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.job import Attempt

ROWS = {
    Interruption.HOLD: HOLD_JOB,
    Interruption.RELEASE: HOLD_JOB,
    Interruption.DRAIN: DRAIN_NODE,
    Interruption.PREEMPT: PREEMPT_JOB,
    Interruption.EVICT: EVICT_JOB,
    Interruption.EVICT_NOW: EVICT_JOB,
}
"""What each has the lifecycle do."""
FAILURES = frozenset({Interruption.PREEMPT, *EVICTIONS})
"""Those that are failures."""
_TOLD = frozenset({EndedBy.SUSPENSION, EndedBy.DRAIN, EndedBy.PREEMPTION, EndedBy.EVICTION})
_NOT_ITS_OWN = _TOLD | {EndedBy.CASCADE, EndedBy.LOST}


def failed_by_itself(ended: Sequence[tuple[int, RunOutcome]]) -> bool:
    """Whether a run failed for a reason of its own, by rank and outcome of those that said how they ended."""
    return any(not outcome.succeeded and outcome.ended_by not in _NOT_ITS_OWN for _, outcome in ended)


def interrupted(
    attempt: Attempt, ended: Sequence[tuple[int, RunOutcome]], why: Interruption, reason: str, now: float
) -> Attempt:
    """Say how an interrupted attempt ended; the first run that was told to stop stands for all.

    A drain is a failure of the place, and a retry is granted that counts nowhere. A user's hold is no failure, and
    nothing is decided about it.
    """
    told = [(rank, outcome) for rank, outcome in ended if outcome.ended_by in _TOLD or outcome.lost]
    rank, first = min(told, key=lambda one: (one[1].ended_at, one[0]), default=(0, RunOutcome(started=False)))
    drained = why is Interruption.DRAIN
    conditions = {FailureCondition.EVICTED} if drained else set()
    if drained and any(outcome.end_unknown for _, outcome in ended):
        conditions |= {FailureCondition.EXECUTOR_LOST, FailureCondition.END_UNKNOWN}
    failure = Failure(
        Cause.AGENT_TRANSIENT if drained else Cause.USER_CANCELLED,
        frozenset(conditions),
        containers=first.containers,
        rank=rank,
        node=first.node,
        executor=first.executor,
        started=first.started,
        ran_s=first.ran_s,
        failed_at=now,
        message=reason,
        ended_by=EndedBy.DRAIN if drained else EndedBy.SUSPENSION,
    )
    if not drained:
        return evolve(attempt, ending=Ending.CANCELLED if first.started else Ending.NEVER_STARTED, failure=failure)
    decision = Decision(Action.IGNORE, DecisionCode.INTERRUPTED, "it waits for another place")
    return evolve(attempt, ending=Ending.FAILED, failure=failure, decision=decision, retry_at=now)


def taken(
    attempt: Attempt,
    ended: Sequence[tuple[int, RunOutcome]],
    why: Interruption,
    reason: str,
    categories: CompiledCategories,
) -> Failure:
    """Make the failure of an attempt whose place was taken; it failed when that was asked, not when it had stopped.

    So a back-off and the time the programs take to stop pass together (Armada's document, "Graceful Shutdown on
    Retry").

    Args:
        attempt: As it was until then; it has been stopping since that was asked.
        ended: Rank and outcome of each of its runs that said how it ended; none if none was handed out.
        why: A preemption or an eviction.
        reason: Who asked, and why, or what the machine had left.
        categories: The operator's, compiled.
    """
    told = [(rank, outcome) for rank, outcome in ended if outcome.ended_by in _TOLD or outcome.lost]
    rank, first = min(told, key=lambda one: (one[1].ended_at, one[0]), default=(0, RunOutcome(started=False)))
    evicted = why in EVICTIONS
    conditions = {*first.conditions, FailureCondition.EVICTED if evicted else FailureCondition.PREEMPTED}
    if any(outcome.end_unknown for _, outcome in ended):
        conditions |= {FailureCondition.EXECUTOR_LOST, FailureCondition.END_UNKNOWN}
    ended_by = EndedBy.EVICTION if evicted else EndedBy.PREEMPTION
    first = evolve(first, conditions=frozenset(conditions), ended_by=ended_by, message=reason)
    return evolve(classify(first, rank=rank, categories=categories), failed_at=attempt.status_since)
