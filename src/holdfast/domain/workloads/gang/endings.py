"""How gang attempts end when no run explains it: cancelled, or never started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.classify import NO_CATEGORIES
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, RunOutcome
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import ENDING_STATUS, Ending
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.classify import CompiledCategories
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.workloads.spec import JobSpec


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
"""Whatever runs a program measures its deadline by another clock, which may be slightly fast."""


def ended_by_total_deadline(spec: JobSpec, failure: Failure, since: float, now: float) -> bool:
    """Whether a run was ended by its job's total deadline, which counts ``since`` then, not by its attempt's."""
    if spec.total_deadline_s is None or failure.ended_by is not EndedBy.DEADLINE:
        return False
    return spec.deadline_s is None or now >= since + spec.total_deadline_s - _CLOCKS_DIFFER_S


def never_started(
    attempt: Attempt, runs: Sequence[Run], now: float, categories: CompiledCategories = NO_CATEGORIES
) -> Failure:
    """Make the failure of an attempt that found no place in time, or whose runs did not all start in time."""
    failure = Failure(
        Cause.SCHEDULER_TIMEOUT,
        frozenset({FailureCondition.UNSCHEDULABLE}),
        started=False,
        failed_at=now,
        message=attempt.message,
    )
    if not runs:
        found = categories.match(failure, RunOutcome(started=False))
        return evolve(failure, category=found.category, subcategory=found.subcategory, hint=found.hint)
    late = min(runs, key=lambda run: (run.started_at is not None, run.rank))
    return evolve(
        failure,
        conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
        rank=late.rank,
        node=late.node or None,
        executor=late.executor or None,
        message=f"rank {late.rank} did not start in time" + (f" on node {late.node}" if late.node else ""),
    )
