"""One look at a gang: its specification, its job and what was observed in, what becomes of the job and what to do out.

The runs of a gang start, fail and restart together. How its attempt moves until it is over is the lifecycle's affair;
here it is decided what follows: a success, a cancellation, a retry and when it is due, a hold, a failure. Store the
attempts that are over and the job before carrying orders out.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias, assert_never

from holdfast.domain.classify import classify, initiating
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition, in_words
from holdfast.domain.job import JOB_WAITING, Attempt, Job, JobState, evolve
from holdfast.domain.lifecycle import (
    CANCEL_JOB,
    ENDING_STATUS,
    TOTAL_DEADLINE,
    AttemptStatus,
    Ending,
    Outcome,
    RequestRow,
    Step,
)
from holdfast.domain.placement import Shape
from holdfast.domain.policy.decide import in_short
from holdfast.domain.policy.decide import retry_at as due_at
from holdfast.domain.policy.model import Action, Decision, DecisionCode, RetryHistory
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.retry import Ruleset, decide_retry, refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.workloads.spec import JobSpec


_CLOCKS_DIFFER_S = 1.0
"""Whatever runs a program measures its deadline by another clock, which may be slightly fast."""


class Asked(StrEnum):
    """What a user asks of a job."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


class Over(NamedTuple):
    """How an attempt came to its end, and what its judgement takes."""

    attempt: Attempt
    """As it was until then."""
    step: Step
    """By which its lifecycle ends it."""
    runs: Sequence[Run]
    """By rank; none if it found no place."""
    ruleset: Ruleset
    draw: float = 0.0
    """In [0, 1), for random jitter."""
    suspicion: Suspicion | None = None
    """The evidence against the job, if it was lost with its place."""


class Observed(NamedTuple):
    """What there is to see of a gang besides its job."""

    attempt: Attempt | None = None
    """In flight."""
    waiting: Attempt | None = None
    """That waits for a place and has a history."""
    over: Over | None = None
    """If one of them has just come to its end."""
    asked: Asked | None = None
    reason: str = ""
    """Why it is asked."""


class EndedAttempt(NamedTuple):
    """An attempt that is over, with its failure and the whole decision about it, if it failed."""

    attempt: Attempt
    step: Step
    """For its history."""


class StopAttempt(NamedTuple):
    """Stop the attempt in flight; where it is stopping already, its executors are told the reason as it is now."""

    row: RequestRow[AttemptStatus]


class ExpireAttempt(NamedTuple):
    """Give up the attempt that waits for a place."""

    message: str


GangResult: TypeAlias = "Result[Job, StopAttempt | ExpireAttempt, Never, EndedAttempt]"
"""Events of gangs follow from how their records change (``domain.event_mapping``)."""


def reconcile(spec: JobSpec, job: Job, seen: Observed, now: float) -> GangResult:
    """Look at a gang once: at an attempt that is over, at what a user asks, or else at the time.

    Args:
        spec: What it asks for.
        job: Its state after the last look.
        seen: What was observed.
        now: The time.
    """
    if seen.over is not None:
        return conclude(spec, job, seen.over, now)
    if seen.asked is not None:
        return _asked(spec, job, seen, seen.asked, now)
    due = next_due(job, spec)
    if due is None or due > now:
        return Result(state=job, wake_at=due)
    return _on_time(spec, job, seen, now)


def next_due(job: Job, spec: JobSpec) -> float | None:
    """Return when time alone changes something: a retry is due, or the time for a place or for all attempts is over."""
    if job.retry_at is None and spec.total_deadline_s is None and spec.scheduling_timeout_s is None:
        return None
    due = []
    if job.state is JobState.BACKOFF and job.retry_at is not None:
        due.append(job.retry_at)
    if job.state is JobState.QUEUED and spec.scheduling_timeout_s is not None:
        due.append(job.queued_at + spec.scheduling_timeout_s)
    if spec.total_deadline_s is not None:
        due.append(job.submitted_at + spec.total_deadline_s)
    return min(due, default=None)


def _on_time(spec: JobSpec, job: Job, seen: Observed, now: float) -> GangResult:
    """Act on what is due; a retry that is due no sooner than the total deadline is none."""
    total_s, timeout_s = spec.total_deadline_s, spec.scheduling_timeout_s
    if total_s is not None and job.submitted_at + total_s <= now:
        if seen.attempt is not None:
            stopping = seen.attempt.status is AttemptStatus.TERMINATING
            told = stopping and seen.attempt.status_since >= job.submitted_at + total_s
            return Result(state=job, orders=() if told else (StopAttempt(TOTAL_DEADLINE),))
        reason = f"total deadline of {format_duration(total_s)} is over ({DecisionCode.TOTAL_DEADLINE})"
        failed = evolve(job, state=JobState.FAILED, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        return Result(state=failed, decisions=_closed(job, seen.waiting, TOTAL_DEADLINE, reason, now))
    if job.state is JobState.BACKOFF and job.retry_at is not None and job.retry_at <= now:
        job = queued(job, now)
    elif job.state is JobState.QUEUED and timeout_s is not None and job.queued_at + timeout_s <= now:
        waited = f"found no place within {format_duration(timeout_s)}" + (f": {job.reason}" if job.reason else "")
        return Result(state=job, orders=(ExpireAttempt(waited),))
    return Result(state=job, wake_at=next_due(job, spec))


def _asked(spec: JobSpec, job: Job, seen: Observed, asked: Asked, now: float) -> GangResult:
    """Do what a user asks, where it applies."""
    orders: tuple[StopAttempt, ...] = ()
    match asked:
        case Asked.CANCEL:
            if seen.attempt is None:
                ended = _closed(job, seen.waiting, CANCEL_JOB, seen.reason, now)
                return Result(state=cancelled_while_pending(job, seen.reason, now), decisions=ended)
            if not job.cancel_requested:
                job = evolve(job, cancel_requested=True, reason=seen.reason, updated_at=now)
                orders = (StopAttempt(CANCEL_JOB),)
        case Asked.HOLD:
            if job.state in JOB_WAITING:
                job = held(job, seen.reason or "held by a user", now)
        case Asked.RELEASE:
            if job.state is JobState.HELD:
                job = queued(job, now)
        case _:
            assert_never(asked)
    return Result(state=job, orders=orders, wake_at=next_due(job, spec))


def _closed(
    job: Job, waiting: Attempt | None, row: RequestRow[AttemptStatus], why: str, now: float
) -> tuple[EndedAttempt, ...]:
    """End the attempt that waits for a place on request, if the job is to have one."""
    if waiting is None:
        if job.state is not JobState.QUEUED:
            return ()
        waiting = Attempt(job.id, job.attempt + 1)
    step = Step(row.name, Outcome.SUCCESS, now, message=why)
    return (EndedAttempt(cancelled(waiting, why, now, started=False), step),)


def conclude(spec: JobSpec, job: Job, over: Over, now: float) -> GangResult:
    """Conclude an attempt whose runs have all stopped, or that found no place in time."""
    attempt, ended, succeeded = over.attempt, [], 0
    if attempt.status is AttemptStatus.PENDING:
        attempt = evolve(attempt, message=over.step.message)
        job = evolve(job, attempt=attempt.number)
    for run in over.runs:
        if run.outcome is not None:
            ended.append((run.rank, run.outcome))
            succeeded += run.outcome.succeeded
    if over.runs and succeeded == len(over.runs):
        status = ENDING_STATUS[Ending.SUCCEEDED]
        last = evolve(attempt, status=status, status_since=now, ended_at=now, ending=Ending.SUCCEEDED)
        done = evolve(job, state=JobState.SUCCEEDED, reason="", ended_at=now, updated_at=now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    if job.cancel_requested:
        last = cancelled(attempt, job.reason, now, started=any(run.started_at is not None for run in over.runs))
        done = cancelled_while_pending(job, job.reason, now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    over = over._replace(attempt=attempt)
    return fail(spec, job, over, judged_failure(over, ended, now), now)


def fail(spec: JobSpec, job: Job, over: Over, failure: Failure, now: float) -> GangResult:
    """Judge a failure and move the job on: retry, hold or give up."""
    attempt, total_s = over.attempt, spec.total_deadline_s
    history = RetryHistory(
        job_id=job.id,
        attempt=attempt.number,
        counters=tuple(job.counters.items()),
        total=job.retries,
        memory=attempt.request.memory,
    )
    if total_s is not None and _ended_by_total_deadline(spec, job, failure, now):
        failure = evolve(failure, message=f"total deadline of {format_duration(total_s)} is over")
        decision = Decision(Action.FAIL, DecisionCode.TOTAL_DEADLINE, failure.message)
    else:
        shape = shape_of(job, spec.node_selector)
        decision = decide_retry(failure, history, over.ruleset, shape, draw=over.draw, suspicion=over.suspicion)
    due = due_at(failure.failed_at, decision.delay_s, confirmed_stopped_at=now, grace_s=spec.grace_s)
    if total_s is not None and decision.grants_retry and max(now, due) >= job.submitted_at + total_s:
        reason = f"total deadline of {format_duration(total_s)} leaves no time for a retry"
        decision = refused(decision, DecisionCode.TOTAL_DEADLINE, reason)
    ended = evolve(
        attempt,
        status=ENDING_STATUS[Ending.FAILED if failure.started else Ending.NEVER_STARTED],
        status_since=now,
        ended_at=now,
        ending=Ending.FAILED,
        failure=failure,
        decision=decision,
        retry_at=due if decision.grants_retry else None,
    )
    job = _after(job, decision, failure, now=now, due=due)
    wake_at = None if job.terminal else next_due(job, spec)
    return Result(state=job, decisions=(EndedAttempt(ended, over.step),), wake_at=wake_at)


def _ended_by_total_deadline(spec: JobSpec, job: Job, failure: Failure, now: float) -> bool:
    """Whether a run was ended by the job's total deadline, not by its attempt's."""
    if spec.total_deadline_s is None or failure.ended_by is not EndedBy.DEADLINE:
        return False
    return spec.deadline_s is None or now >= job.submitted_at + spec.total_deadline_s - _CLOCKS_DIFFER_S


def _after(job: Job, decision: Decision, failure: Failure, *, now: float, due: float) -> Job:
    """Return the job as it goes on after a decision about its failure."""
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


def judged_failure(over: Over, ended: Sequence[tuple[int, RunOutcome]], now: float) -> Failure:
    """Classify the failure to judge: the earliest one, never one we caused ourselves.

    Args:
        over: The attempt.
        ended: Rank and outcome of each of its runs that said how it ended.
        now: The time.
    """
    index, attempt = initiating(ended), over.attempt
    if index is None:
        if attempt.started_at is None:
            return _never_started(attempt, over.runs, now)
        return Failure(
            Cause.UNKNOWN, frozenset(), message=attempt.message or "no run reported how it ended", failed_at=now
        )
    rank, outcome = ended[index]
    return classify(outcome, rank=rank, categories=over.ruleset.categories)


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


def held(job: Job, reason: str, now: float) -> Job:
    """Hold a waiting job."""
    return evolve(job, state=JobState.HELD, reason=reason or "held", retry_at=None, updated_at=now)


def queued(job: Job, now: float) -> Job:
    """Make a job pending again: its hold was lifted, or its retry is due."""
    return evolve(job, state=JobState.QUEUED, reason="", retry_at=None, queued_at=now, updated_at=now)


def shape_of(job: Job, selector: Mapping[str, str]) -> Shape:
    """Return the shape of the job's next attempt."""
    return Shape(job.request, job.gang, tuple(sorted(selector.items())), job.avoid_node)
