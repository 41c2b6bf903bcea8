"""One look at a gang: its specification, its job and observations in, what happens to the job and what to do out.

The runs of a gang start, fail and restart together. The lifecycle moves its attempt until it is over; this
module decides what follows: a success, a cancellation, a retry and when it is due, a hold, a failure. Store the
attempts that are over and the job before carrying orders out.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias, assert_never

from holdfast.domain.classify import classify, initiating
from holdfast.domain.failure import Cause, Failure, in_words
from holdfast.domain.job import JOB_WAITING, Attempt, Job, JobState
from holdfast.domain.lifecycle import (
    CANCEL_JOB,
    ENDING_STATUS,
    TOTAL_DEADLINE,
    AttemptStatus,
    Ending,
    Interruption,
    Outcome,
    RequestRow,
    Step,
)
from holdfast.domain.policy.decide import in_short
from holdfast.domain.policy.decide import retry_at as due_at
from holdfast.domain.policy.model import Action, Decision, DecisionCode, RetryHistory
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.dependencies import Standing, advanced, kept_waiting
from holdfast.domain.workloads.gang import interruption
from holdfast.domain.workloads.gang.endings import (
    cancelled,
    cancelled_while_pending,
    ended_by_total_deadline,
    never_started,
)
from holdfast.domain.workloads.gang.pending import held, queued, retried, shape_of, tried_by
from holdfast.domain.workloads.retry import Ruleset, decide_retry, refused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import RunOutcome
    from holdfast.domain.job import Run
    from holdfast.domain.policy.blame import Suspicion
    from holdfast.domain.workloads.spec import JobSpec


HELD_BY_USER = "held by a user"
"""The reason where nobody gave one."""


class Asked(StrEnum):
    """What a user or an operator requests for a job."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"
    RETRY = "retry"
    DRAIN = "drain"
    """Asked of all that runs on a node."""
    PREEMPT = "preempt"
    EVICT = "evict"
    EVICT_NOW = "evict-now"


class Over(NamedTuple):
    """How an attempt ended, and what is needed to judge it."""

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
    refusals: int = 0
    """How often in a row its node was short of something when it was to be started."""

    def ended_at(self, now: float) -> float:
        """Return when the last of its programs ended: before ``now``, where nobody was there to notice."""
        return max((run.ended_at for run in self.runs if run.ended_at is not None), default=now)


class Observed(NamedTuple):
    """What can be observed of a gang besides its job."""

    attempt: Attempt | None = None
    """In flight."""
    waiting: Attempt | None = None
    """That waits for a place and has a history."""
    over: Over | None = None
    """If one of them has just come to its end."""
    asked: Asked | None = None
    reason: str = ""
    """Why it is asked."""
    interrupted: Interruption | None = None
    """Why the attempt in flight was told to stop, if it did nothing wrong."""
    awaited: Sequence[Standing] | None = None
    """How each thing stands that it waits for, while it does."""
    paused: bool = False
    """Whether nothing is started: no time for a place passes."""


class EndedAttempt(NamedTuple):
    """An attempt that is over, with its failure and the whole decision about it, if it failed."""

    attempt: Attempt
    step: Step
    """For its history."""


class StopAttempt(NamedTuple):
    """Stop the attempt in flight; if it is already stopping, its executors are sent the current reason."""

    row: RequestRow[AttemptStatus]
    why: Interruption | None = None
    """Why, if it did nothing wrong."""


class ExpireAttempt(NamedTuple):
    """Give up the attempt that is waiting for a place."""

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
    if seen.awaited is not None:
        job = advanced(job, spec.after, seen.awaited, now)
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
    if spec.total_deadline_s is not None and not (spec.after and job.ready_at is None):
        due.append(counted_from(job) + spec.total_deadline_s)
    return min(due, default=None)


def counted_from(job: Job) -> float:
    """Return when a job's total deadline begins: at its submission, or when all had happened that it waited for."""
    return job.submitted_at if job.ready_at is None else job.ready_at


def _on_time(spec: JobSpec, job: Job, seen: Observed, now: float) -> GangResult:
    """Act on what is due; a retry that is due no sooner than the total deadline is none."""
    total_s, timeout_s = spec.total_deadline_s, spec.scheduling_timeout_s
    if total_s is not None and counted_from(job) + total_s <= now:
        if seen.attempt is not None:
            stopping = seen.attempt.status is AttemptStatus.TERMINATING
            told = stopping and seen.attempt.status_since >= counted_from(job) + total_s
            return Result(state=job, orders=() if told else (StopAttempt(TOTAL_DEADLINE),))
        reason = f"total deadline of {format_duration(total_s)} is over ({DecisionCode.TOTAL_DEADLINE})"
        failed = evolve(job, state=JobState.FAILED, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        return Result(state=failed, decisions=_closed(job, seen.waiting, TOTAL_DEADLINE, reason, now))
    if job.state is JobState.BACKOFF and job.retry_at is not None and job.retry_at <= now:
        job = queued(job, now)
    elif job.state is JobState.QUEUED and timeout_s is not None and job.queued_at + timeout_s <= now:
        if seen.paused:
            return Result(state=evolve(job, queued_at=now), wake_at=now + timeout_s)
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
        case Asked.HOLD if job.state in JOB_WAITING or job.state is JobState.WAITING:
            job = held(job, seen.reason or HELD_BY_USER, now)
        case Asked.RELEASE if job.state is JobState.HELD:
            waits = spec.after and job.ready_at is None
            job = kept_waiting(job, spec.after, now) if waits else queued(job, now)
        case Asked.HOLD | Asked.RELEASE | Asked.DRAIN | Asked.PREEMPT | Asked.EVICT | Asked.EVICT_NOW:
            job, orders = _interrupt(job, seen, asked, now)
        case Asked.RETRY:
            if seen.attempt is None:
                ready_at = now if spec.after and job.ready_at is None else job.ready_at
                job = evolve(retried(job, seen.reason, now), ready_at=ready_at)
        case _:
            assert_never(asked)
    return Result(state=job, orders=orders, wake_at=next_due(job, spec))


def _interrupt(job: Job, seen: Observed, asked: Asked, now: float) -> tuple[Job, tuple[StopAttempt, ...]]:
    """Stop what runs, or change what follows once it has stopped; one that is being cancelled has an end already."""
    why, reason = Interruption(asked), seen.reason
    stopping = seen.attempt is not None and seen.attempt.status is AttemptStatus.TERMINATING
    nothing = seen.attempt is None or job.cancel_requested
    if nothing or interruption.changes_nothing(why, seen.interrupted, stopping=stopping):
        return job, ()
    if why not in interruption.OF_PLACE:
        reason = reason or (HELD_BY_USER if why is Interruption.HOLD else "released by a user")
    return evolve(job, reason=reason, updated_at=now), (StopAttempt(interruption.ROWS[why], why),)


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
    attempt, ended, succeeded, why = over.attempt, [], 0, None
    if attempt.status is AttemptStatus.PENDING:
        attempt = evolve(attempt, message=over.step.message)
        job = evolve(job, attempt=attempt.number)
    for run in over.runs:
        why = why or run.interrupted
        if run.outcome is not None:
            ended.append((run.rank, run.outcome))
            succeeded += run.outcome.succeeded
    if over.runs and succeeded == len(over.runs):
        status, ended_at = ENDING_STATUS[Ending.SUCCEEDED], over.ended_at(now)
        last = evolve(attempt, status=status, status_since=now, ended_at=ended_at, ending=Ending.SUCCEEDED)
        done = evolve(job, state=JobState.SUCCEEDED, reason="", ended_at=ended_at, updated_at=now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    if job.cancel_requested:
        last = cancelled(attempt, job.reason, now, started=any(run.may_have_run for run in over.runs))
        done = cancelled_while_pending(job, job.reason, now)
        return Result(state=done, decisions=(EndedAttempt(last, over.step),))
    over = over._replace(attempt=attempt)
    if why is not None and (why is Interruption.HOLD or not interruption.failed_by_itself(ended)):
        return _interrupted(spec, job, over, why, now, ended=ended)
    return fail(spec, job, over, judged_failure(over, ended, now), now)


def _interrupted(
    spec: JobSpec, job: Job, over: Over, why: Interruption, now: float, *, ended: Sequence[tuple[int, RunOutcome]]
) -> GangResult:
    """Hold a gang that was stopped, or have it wait for a place again; one that failed meanwhile is only held."""
    last, reason = over.attempt, job.reason
    if interruption.failed_by_itself(ended):
        failed = evolve(last, ending=Ending.FAILED, failure=judged_failure(over, ended, now))
        last = evolve(failed, decision=Decision(Action.HOLD, DecisionCode.INTERRUPTED, reason))
    elif why in interruption.FAILURES:
        return fail(spec, job, over, interruption.taken(last, ended, why, reason, over.ruleset.categories), now)
    else:
        last = interruption.interrupted(last, ended, why, reason, now)
        if why is Interruption.DRAIN and last.failure is not None:
            asked = over.ruleset.policies.about_drain(last.failure)
            if asked is not None:
                return fail(spec, job, over._replace(ruleset=evolve(over.ruleset, policies=asked)), last.failure, now)
    started = last.failure is not None and last.failure.started
    status = ENDING_STATUS[last.ending if started and last.ending else Ending.NEVER_STARTED]
    last = evolve(last, status=status, status_since=now, ended_at=over.ended_at(now))
    job = evolve(job, tried=tried_by(job, over.runs, last.failure))
    job = held(job, reason, now) if why is Interruption.HOLD else evolve(queued(job, now), reason=reason)
    return Result(state=job, decisions=(EndedAttempt(last, over.step),), wake_at=next_due(job, spec))


def fail(spec: JobSpec, job: Job, over: Over, failure: Failure, now: float) -> GangResult:
    """Judge a failure and move the job on: retry, hold or give up."""
    attempt, total_s = over.attempt, spec.total_deadline_s
    counters, memory = tuple(job.counters.items()), attempt.request.memory
    tried = tried_by(job, over.runs, failure)
    history = RetryHistory(job.id, attempt.number, counters, job.retries, memory, over.refusals, tried)
    if total_s is not None and ended_by_total_deadline(spec, failure, counted_from(job), now):
        failure = evolve(failure, message=f"total deadline of {format_duration(total_s)} is over")
        decision = Decision(Action.FAIL, DecisionCode.TOTAL_DEADLINE, failure.message)
    else:
        shape = shape_of(job, spec)
        decision = decide_retry(failure, history, over.ruleset, shape, draw=over.draw, suspicion=over.suspicion)
    due = due_at(failure.failed_at, decision.delay_s, confirmed_stopped_at=now, grace_s=spec.grace_s)
    lead_s = 0.0 if spec.warning is None else spec.warning.before_s  # later it would be warned as soon as it began
    if total_s is not None and decision.grants_retry and lead_s + max(now, due) >= counted_from(job) + total_s:
        reason = f"total deadline of {format_duration(total_s)} leaves no time for a retry"
        decision = refused(decision, DecisionCode.TOTAL_DEADLINE, reason)
    ended = evolve(
        attempt,
        status=ENDING_STATUS[Ending.FAILED if failure.started else Ending.NEVER_STARTED],
        status_since=now,
        ended_at=over.ended_at(now),
        ending=Ending.FAILED,
        failure=failure,
        decision=decision,
        retry_at=due if decision.grants_retry else None,
    )
    if decision.grants_retry or decision.action is Action.HOLD:
        job = evolve(job, tried=tried)
    job = _after(job, decision, failure, ended_at=over.ended_at(now), now=now, due=due)
    wake_at = None if job.terminal else next_due(job, spec)
    return Result(state=job, decisions=(EndedAttempt(ended, over.step),), wake_at=wake_at)


def _after(job: Job, decision: Decision, failure: Failure, *, ended_at: float, now: float, due: float) -> Job:
    """Return the job as it goes on after a decision about its failure."""
    what = f"{in_words(failure)}; {in_short(decision)}"
    if decision.action is Action.HOLD:
        return held(job, decision.reason, now)
    if not decision.grants_retry:
        what = f"{what}; hint: {failure.hint}" if failure.hint else what
        return evolve(job, state=JobState.FAILED, reason=what, retry_at=None, ended_at=ended_at, updated_at=now)
    waits, counters, counter = due > now, job.counters, decision.counter
    avoids = job if decision.code is DecisionCode.SHORTAGE else decision  # it never ran where it was to run
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
        avoid_node=avoids.avoid_node,
        avoid_devices=avoids.avoid_devices,
        avoid_nodes=avoids.avoid_nodes,
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
            return never_started(attempt, over.runs, now, over.ruleset.categories)
        return Failure(
            Cause.UNKNOWN, frozenset(), message=attempt.message or "no run reported how it ended", failed_at=now
        )
    rank, outcome = ended[index]
    failure = classify(outcome, rank=rank, categories=over.ruleset.categories)
    for run in over.runs:
        if run.outcome is outcome and run.devices:
            return evolve(failure, devices=run.devices)
    return failure
