"""How an attempt at a gang ends when no failure of its own explains it: cancelled, never started, or interrupted.

An interruption stops runs through no fault of their own. For a hold or a drain it costs no retry. A preemption is a
failure of its own kind, which policies decide about; so is an eviction by a machine that runs out of memory or disk.

A run told to stop may exit in any way: with its checkpointed exit code, or with 0, which then also means that it has
saved its work, not that it is done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.classify import NO_CATEGORIES, classify
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, RunOutcome
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import (
    DRAIN_NODE,
    ENDING_STATUS,
    EVICT_JOB,
    HOLD_JOB,
    PREEMPT_JOB,
    Ending,
    Interruption,
)
from holdfast.domain.lifecycle.statuses import EVICTIONS
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Decision
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.lifecycle import Step
    from holdfast.domain.workloads.spec import JobSpec

ROWS = {
    Interruption.HOLD: HOLD_JOB,
    Interruption.RELEASE: HOLD_JOB,
    Interruption.DRAIN: DRAIN_NODE,
    Interruption.PREEMPT: PREEMPT_JOB,
    Interruption.EVICT: EVICT_JOB,
    Interruption.EVICT_NOW: EVICT_JOB,
}
"""The lifecycle request of each interruption."""
FAILURES = frozenset({Interruption.PREEMPT, *EVICTIONS})
"""Interruptions that are failures."""
EXECUTOR_LOST, STILL_PULLING = "executor_lost", "still_pulling"
"""Why a phase failed or took too long, by the code of its step."""
_CAUSES = {
    EXECUTOR_LOST: (Cause.AGENT_TRANSIENT, FailureCondition.EXECUTOR_LOST),
    STILL_PULLING: (Cause.IMAGE_PULL_FAILURE, FailureCondition.IMAGE_PULL_FAILED),
}
"""What a session has failed of that lost its places too often, if its last phase says so."""
_ENDED_BY = {Interruption.DRAIN: EndedBy.DRAIN, Interruption.PREEMPT: EndedBy.PREEMPTION}
_TOLD = frozenset({EndedBy.SUSPENSION, EndedBy.DRAIN, EndedBy.PREEMPTION, EndedBy.EVICTION})
_NOT_ITS_OWN = _TOLD | {EndedBy.CASCADE, EndedBy.LOST}


def cancelled(attempt: Attempt, reason: str, now: float, *, started: bool) -> Attempt:
    """End an attempt on request."""
    ending = Ending.CANCELLED if started else Ending.NEVER_STARTED
    failure = Failure(
        Cause.USER_CANCELLED, frozenset(), started=started, failed_at=now, message=reason, ended_by=EndedBy.USER
    )
    status = ENDING_STATUS[ending]
    return evolve(attempt, status=status, status_since=now, ended_at=now, ending=ending, failure=failure)


def cancelled_while_pending(job: Job, reason: str, now: float) -> Job:
    """End a job that has no attempt in flight on a user's request."""
    return evolve(
        job,
        state=JobState.CANCELLED,
        reason=reason or "cancelled",
        cancel_requested=True,
        retry_at=None,
        ended_at=now,
        updated_at=now,
    )


_CLOCKS_DIFFER_S = 1.0
"""Engines measure deadlines by another clock, which may be slightly fast."""


def ended_by_total_deadline(spec: JobSpec, failure: Failure, since: float, now: float) -> bool:
    """Whether a run was ended by its job's total deadline, which counts from ``since``, rather than its attempt's."""
    if spec.total_deadline_s is None or failure.ended_by is not EndedBy.DEADLINE:
        return False
    return spec.deadline_s is None or now >= since + spec.total_deadline_s - _CLOCKS_DIFFER_S


def never_started(
    attempt: Attempt, runs: Sequence[Run], step: Step, categories: CompiledCategories = NO_CATEGORIES
) -> Failure:
    """Return the failure of an attempt that found no place in time, or whose runs did not all start in time.

    Args:
        attempt: The attempt.
        runs: Its runs; empty if it found no place.
        step: The step that ends it.
        categories: The categories, compiled.
    """
    failure = Failure(
        Cause.SCHEDULER_TIMEOUT,
        frozenset({FailureCondition.UNSCHEDULABLE}),
        started=False,
        failed_at=step.now,
        message=attempt.message,
    )
    if not runs:
        match = categories.match(failure, RunOutcome(started=False))
        return evolve(failure, category=match.category, subcategory=match.subcategory, hint=match.hint)
    late = min(runs, key=lambda run: (run.started_at is not None, run.rank))
    cause, condition = _CAUSES.get(step.code, (failure.cause, FailureCondition.LAUNCH_FAILED))
    return evolve(
        failure,
        cause=cause,
        conditions=frozenset({condition}),
        rank=late.rank,
        node=late.node or None,
        executor=late.executor or None,
        message=f"rank {late.rank} did not start in time" + (f" on node {late.node}" if late.node else ""),
    )


def failed_by_itself(ended: Sequence[tuple[int, RunOutcome]]) -> bool:
    """Whether any run failed by itself, given the rank and outcome of each run that reported its end."""
    return any(not outcome.succeeded and outcome.ended_by not in _NOT_ITS_OWN for _, outcome in ended)


def interrupted(
    attempt: Attempt, ended: Sequence[tuple[int, RunOutcome]], why: Interruption, reason: str, now: float
) -> Attempt:
    """Return an interrupted attempt with its ending; the first run that was told to stop represents all.

    A drain is a failure of the infrastructure, with an uncounted retry. A user's hold is not a failure, and has no
    decision.
    """
    stopped = [(rank, outcome) for rank, outcome in ended if outcome.ended_by in _TOLD or outcome.lost]
    rank, first = min(stopped, key=lambda pair: (pair[1].ended_at, pair[0]), default=(0, RunOutcome(started=False)))
    drained = why in _ENDED_BY  # A preemption is no failure only of a session.
    conditions = set[FailureCondition]()
    if drained:
        conditions.add(FailureCondition.EVICTED if why is Interruption.DRAIN else FailureCondition.PREEMPTED)
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
        ended_by=_ENDED_BY.get(why, EndedBy.SUSPENSION),
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
    """Return the failure of an attempt that was preempted or evicted: it failed when that was requested.

    So a back-off overlaps with the time that the programs take to stop (Armada's document, "Graceful Shutdown on
    Retry").

    Args:
        attempt: The attempt, which has been stopping since the request.
        ended: Rank and outcome of each run that reported its end; empty if none was handed out.
        why: A preemption or an eviction.
        reason: Who requested it and why, or what the machine had left.
        categories: The categories, compiled.
    """
    stopped = [(rank, outcome) for rank, outcome in ended if outcome.ended_by in _TOLD or outcome.lost]
    rank, first = min(stopped, key=lambda pair: (pair[1].ended_at, pair[0]), default=(0, RunOutcome(started=False)))
    evicted = why in EVICTIONS
    conditions = {*first.conditions, FailureCondition.EVICTED if evicted else FailureCondition.PREEMPTED}
    if any(outcome.end_unknown for _, outcome in ended):
        conditions |= {FailureCondition.EXECUTOR_LOST, FailureCondition.END_UNKNOWN}
    ended_by = EndedBy.EVICTION if evicted else EndedBy.PREEMPTION
    first = evolve(first, conditions=frozenset(conditions), ended_by=ended_by, message=reason)
    return evolve(classify(first, rank=rank, categories=categories), failed_at=attempt.status_since)
