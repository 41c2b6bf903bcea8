"""Concludes an attempt at a gang: from the facts of its runs to the job's next state, and when that is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.domain.classify import classify, initiating
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, in_words
from holdfast.domain.job import Attempt, Job, JobState, evolve
from holdfast.domain.lifecycle import ENDING_STATUS, Ending
from holdfast.domain.placement import Shape
from holdfast.domain.policy.decide import in_short
from holdfast.domain.policy.decide import retry_at as due_at
from holdfast.domain.policy.model import Action, Decision, DecisionCode, RetryHistory
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.retry import Ruleset, decide_retry, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.job import Run
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.workloads.spec import JobSpec


_CLOCKS_DIFFER_S = 1.0
"""Whatever runs a program measures its deadline by another clock, which may be slightly fast."""


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What one decision depends on."""

    ruleset: Ruleset
    spec: JobSpec
    now: float
    draw: float = 0.0
    """In [0, 1), for random jitter."""
    suspicion: Suspicion | None = None
    """The evidence against the job, if it was lost with its place."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """A job and its attempt after the attempt is over."""

    job: Job
    attempt: Attempt


def shape_of(job: Job, selector: Mapping[str, str]) -> Shape:
    """Return the shape of the job's next attempt."""
    return Shape(job.request, job.gang, tuple(sorted(selector.items())), job.avoid_node)


def conclude(job: Job, attempt: Attempt, runs: Sequence[Run], at: DecisionContext) -> Conclusion:
    """Conclude an attempt whose runs have all stopped, or that found no place in time."""
    if runs and all(run.outcome is not None and run.outcome.succeeded for run in runs):
        return _succeeded(job, attempt, at.now)
    if job.cancel_requested:
        started = any(run.started_at is not None for run in runs)
        return cancelled(job, attempt, at.now, started=started)
    return fail(job, attempt, judged_failure(attempt, runs, at.ruleset, at.now), at)


def fail(job: Job, attempt: Attempt, failure: Failure, at: DecisionContext) -> Conclusion:
    """Judge a failure and move the job on: retry, hold or give up."""
    history = RetryHistory(
        job_id=job.id,
        attempt=attempt.number,
        counters=tuple(job.counters.items()),
        total=job.retries,
        memory=attempt.request.memory,
    )
    over = _over_total_deadline(job, failure, at)
    if over:
        failure = evolve(failure, message=over)
        decision = Decision(Action.FAIL, DecisionCode.TOTAL_DEADLINE, over)
    else:
        shape = shape_of(job, at.spec.node_selector)
        decision = decide_retry(failure, history, at.ruleset, shape, draw=at.draw, suspicion=at.suspicion)
    due = due_at(failure.failed_at, decision.delay_s, confirmed_stopped_at=at.now, grace_s=at.spec.grace_s)
    decision = _within_total_deadline(decision, job, at, due)
    ended = evolve(
        attempt,
        status=ENDING_STATUS[Ending.FAILED if failure.started else Ending.NEVER_STARTED],
        status_since=at.now,
        ended_at=at.now,
        ending=Ending.FAILED,
        failure=failure,
        decision=decision,
        retry_at=due if decision.grants_retry else None,
    )
    return Conclusion(_after(job, decision, failure, now=at.now, due=due), ended)


def judged_failure(attempt: Attempt, runs: Sequence[Run], ruleset: Ruleset, now: float) -> Failure:
    """Classify the failure to judge: the earliest one, never one we caused ourselves."""
    ended = [(run.rank, run.outcome) for run in runs if run.outcome is not None]
    index = initiating(ended)
    if index is None:
        if attempt.started_at is None:
            return _never_started(attempt, runs, now)
        return Failure(
            Cause.UNKNOWN, frozenset(), message=attempt.message or "no run reported how it ended", failed_at=now
        )
    rank, outcome = ended[index]
    return classify(outcome, rank=rank, categories=ruleset.categories)


def _never_started(attempt: Attempt, runs: Sequence[Run], now: float) -> Failure:
    """Make the failure of an attempt that found no place in time, or whose runs did not all start in time."""
    failure = Failure(
        Cause.SCHEDULER_TIMEOUT,
        frozenset({FailureCondition.UNSCHEDULABLE}),
        started=False,
        failed_at=now,
        message=attempt.message,
    )
    if not runs:
        return failure
    late = min(runs, key=lambda run: (run.started_at is not None, run.rank))
    return evolve(
        failure,
        conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
        rank=late.rank,
        node=late.node or None,
        executor=late.executor or None,
        message=f"rank {late.rank} did not start in time" + (f" on node {late.node}" if late.node else ""),
    )


def cancelled(job: Job, attempt: Attempt, now: float, *, started: bool) -> Conclusion:
    """End an attempt and its job on a user's request."""
    ending = Ending.CANCELLED if started else Ending.NEVER_STARTED
    failure = Failure(
        Cause.USER_CANCELLED, frozenset(), started=started, failed_at=now, message=job.reason, ended_by=EndedBy.USER
    )
    ended = evolve(
        attempt,
        status=ENDING_STATUS[ending],
        status_since=now,
        ended_at=now,
        ending=ending,
        failure=failure,
    )
    return Conclusion(cancelled_while_pending(job, now), ended)


def cancelled_while_pending(job: Job, now: float) -> Job:
    """End a job without an attempt in flight on a user's request."""
    return evolve(
        job,
        state=JobState.CANCELLED,
        reason=job.reason or "cancelled",
        cancel_requested=True,
        retry_at=None,
        ended_at=now,
        updated_at=now,
    )


def held(job: Job, reason: str, now: float) -> Job:
    """Hold a waiting job."""
    return evolve(job, state=JobState.HELD, reason=reason or "held", retry_at=None, updated_at=now)


def queued(job: Job, now: float) -> Job:
    """Make a job pending again: its hold was lifted, or its retry is due."""
    return evolve(job, state=JobState.QUEUED, reason="", retry_at=None, queued_at=now, updated_at=now)


def _succeeded(job: Job, attempt: Attempt, now: float) -> Conclusion:
    ended = evolve(
        attempt, status=ENDING_STATUS[Ending.SUCCEEDED], status_since=now, ended_at=now, ending=Ending.SUCCEEDED
    )
    return Conclusion(evolve(job, state=JobState.SUCCEEDED, reason="", ended_at=now, updated_at=now), ended)


def _over_total_deadline(job: Job, failure: Failure, at: DecisionContext) -> str:
    """Say that a run was ended by the job's total deadline, not its attempt's; empty if not so."""
    total_s, deadline_s = at.spec.total_deadline_s, at.spec.deadline_s
    if total_s is None or failure.ended_by is not EndedBy.DEADLINE:
        return ""
    if deadline_s is not None and at.now < job.submitted_at + total_s - _CLOCKS_DIFFER_S:
        return ""
    return f"total deadline of {format_duration(total_s)} is over"


def _within_total_deadline(decision: Decision, job: Job, at: DecisionContext, due: float) -> Decision:
    """Refuse a retry that could only start after the job's total deadline."""
    total_s = at.spec.total_deadline_s
    if total_s is None or not decision.grants_retry or max(at.now, due) < job.submitted_at + total_s:
        return decision
    reason = f"total deadline of {format_duration(total_s)} leaves no time for a retry"
    return refused(decision, DecisionCode.TOTAL_DEADLINE, reason)


def _after(job: Job, decision: Decision, failure: Failure, *, now: float, due: float) -> Job:
    what = f"{in_words(failure)}; {in_short(decision)}"
    if decision.action is Action.HOLD:
        return held(job, decision.reason, now)
    if not decision.grants_retry:
        return evolve(job, state=JobState.FAILED, reason=what, retry_at=None, ended_at=now, updated_at=now)
    waits, counters, counter = due > now, job.counters, decision.counter
    if counter is not None:
        counters = {**counters, counter: counters.get(counter, 0) + 1}
    return evolve(
        job,
        state=JobState.BACKOFF if waits else JobState.QUEUED,
        reason=what,
        retry_at=due if waits else None,
        queued_at=now,
        updated_at=now,
        counters=counters,
        retries=job.retries + (counter is not None),
        request=job.request if decision.memory is None else evolve(job.request, memory=decision.memory),
        avoid_node=decision.avoid_node,
    )


def total_deadline(job: Job, spec: JobSpec) -> float | None:
    """Return when all attempts at a job must be over, if it has a total deadline."""
    return None if spec.total_deadline_s is None else job.submitted_at + spec.total_deadline_s


def retry_due(job: Job) -> float | None:
    """Return when a job's back-off is over, if it is in one."""
    return job.retry_at if job.state is JobState.BACKOFF else None


def scheduling_timeout(job: Job, spec: JobSpec) -> float | None:
    """Return when a queued job has waited for a place too long, if its wait is limited."""
    if job.state is not JobState.QUEUED or spec.scheduling_timeout_s is None:
        return None
    return job.queued_at + spec.scheduling_timeout_s


def next_due(job: Job, spec: JobSpec) -> float | None:
    """Return the first of these times; ``None`` where time alone changes nothing."""
    if job.retry_at is None and spec.total_deadline_s is None and spec.scheduling_timeout_s is None:
        return None
    times = (retry_due(job), total_deadline(job, spec), scheduling_timeout(job, spec))
    return min((at for at in times if at is not None), default=None)
