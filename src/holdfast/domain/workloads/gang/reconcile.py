"""Reconciles a gang: its job, its attempt with its runs, and what is requested or due in; what becomes of it out.

The runs of a gang start, fail and restart together. The lifecycle moves its attempt until all runs have ended; these
determine what follows: success, cancellation, a retry at some time, a hold, or failure.
"""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias, assert_never

from holdfast.domain.job import JOB_WAITING, Attempt, Job, JobState, Run
from holdfast.domain.lifecycle import (
    CANCEL_JOB,
    TOTAL_DEADLINE,
    AttemptStatus,
    Interruption,
    Outcome,
    RequestRow,
    Step,
)
from holdfast.domain.lifecycle.statuses import OF_PLACE, changes_nothing
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.dependencies import AwaitedState, advanced
from holdfast.domain.workloads.gang.conclude import (
    EndedAttempt,
    Over,
    awaits_start,
    conclude,
    counted_from,
    held,
    next_due,
    queued,
    released,
    retried_when_ready,
    until_start,
)
from holdfast.domain.workloads.gang.endings import ROWS, cancelled, cancelled_while_pending
from holdfast.domain.workloads.gang.flight import Flight, waiting_attempt

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.gang.flight import AttemptContext
    from holdfast.domain.workloads.spec import JobSpec


HELD_BY_USER = "held by a user"
"""The reason of a hold without one."""


class Intervention(StrEnum):
    """What a user or an operator requests for a job."""

    CANCEL = "cancel"
    CANCEL_UNLESS_STARTED = "cancel-unless-started"
    """Ignored once an attempt has begun, even while the job waits for the next one."""
    HOLD = "hold"
    RELEASE = "release"
    RETRY = "retry"
    DRAIN = "drain"
    """Requested of everything that runs on a node."""
    PREEMPT = "preempt"
    EVICT = "evict"
    EVICT_NOW = "evict-now"


class Observed(NamedTuple):
    """What is observed of a gang besides its job."""

    attempt: Attempt | None = None
    """The attempt in flight."""
    waiting: Attempt | None = None
    """The attempt that waits for a place, if it has a history."""
    intervention: Intervention | None = None
    reason: str = ""
    """Why it is requested."""
    interrupted: Interruption | None = None
    """Why the attempt in flight was told to stop, if not because of a failure."""
    awaited: Sequence[AwaitedState] | None = None
    """The state of each dependency, while the job waits or is to be retried after its end."""
    paused: bool = False
    """Whether nothing is started: scheduling timeouts do not run."""


class StopAttempt(NamedTuple):
    """Stop the attempt in flight; if it is stopping already, its executors are sent the current reason."""

    row: RequestRow[AttemptStatus]
    why: Interruption | None = None
    """Why, if not because of a failure."""


class ExpireAttempt(NamedTuple):
    """Give up the attempt that is waiting for a place."""

    message: str


Settled: TypeAlias = "Result[Job, StopAttempt | ExpireAttempt, Never, EndedAttempt]"
"""Events of gangs follow from how their records change (``domain.event_mapping``)."""


class GangOutcome(NamedTuple):
    """What becomes of a gang; all of it is stored in one transaction."""

    job: Job
    flight: Flight | None = None
    """Its attempt after the look, with the runs that changed."""
    ended: tuple[EndedAttempt, ...] = ()
    wake_at: float | None = None
    """When to reconcile the job again even if nothing happens."""


def reconcile(
    spec: JobSpec, job: Job, flight: Flight | None, seen: Observed, around: AttemptContext, now: float
) -> GangOutcome:
    """Reconcile a gang once: do what is requested or due, move its attempt, and conclude it if it has ended.

    Args:
        spec: The job's specification.
        job: The job after the last look.
        flight: Its attempt in flight, if there is one.
        seen: What was observed.
        around: What moving the attempt depends on.
        now: The time.
    """
    result = settle(spec, job, seen, now)
    job = result.state
    for order in result.orders:
        if isinstance(order, ExpireAttempt):
            flight = Flight(spec, job, seen.waiting or waiting_attempt(job), {}, around)
            flight.expire(order.message, now)
        elif flight is not None:
            flight.stop(order.row, order.why, job.reason, now)
    if flight is None:
        return GangOutcome(job, None, result.decisions, result.wake_at)
    if seen.intervention is None and flight.over is None:
        flight.advance(now)
    return _follow(spec, job, flight, result.wake_at, around, now)


def begin(
    spec: JobSpec,
    job: Job,
    waiting: Attempt | None,
    places: Iterable[tuple[PlaceKey, tuple[str, ...]]],
    around: AttemptContext,
    now: float,
) -> tuple[Job, Attempt, GangOutcome]:
    """Begin an attempt at a job that was placed, and move it as far as it can go at once.

    Args:
        spec: The job's specification.
        job: The pending job.
        waiting: The attempt that has waited, if it has a history.
        places: A place for each rank, with its devices there.
        around: What moving the attempt depends on.
        now: The time.

    Returns:
        The job and the attempt as they begin, and what becomes of them.
    """
    waiting = waiting or waiting_attempt(job)
    number, dispatch = waiting.number, waiting.dispatch + 1
    attempt = evolve(waiting, dispatch=dispatch, request=job.request)
    runs = {}
    for rank, ((executor, node), devices) in enumerate(places):
        uid = f"{job.id}-{number}-{rank}-{dispatch}"
        run = Run(
            uid=uid,
            job_id=job.id,
            attempt=number,
            rank=rank,
            status_since=now,
            executor=executor,
            node=node,
            request=job.request,
            devices=devices,
            token_digest=around.token_digest(uid) if spec.identity else "",
        )
        runs[run.uid] = run
    begun = evolve(
        job,
        state=JobState.RUNNING,
        reason="",
        attempt=number,
        retry_at=None,
        started_at=job.started_at or now,
        updated_at=now,
    )
    flight = Flight(spec, begun, attempt, runs, around)
    flight.advance(now)
    return begun, attempt, _follow(spec, begun, flight, next_due(begun, spec), around, now)


def waits(
    spec: JobSpec, job: Job, waiting: Attempt, around: AttemptContext, now: float, *, never: str = ""
) -> GangOutcome:
    """Record why a job waits for a place; its attempt fails if it waits too long, or will never get a place.

    Args:
        spec: The job's specification.
        job: The job, with the reason.
        waiting: The attempt that waits.
        around: What moving the attempt depends on.
        now: The time.
        never: Why it will never get a place, if so.
    """
    flight = Flight(spec, job, waiting, {}, around)
    if never:
        flight.expire(never, now)
    else:
        flight.advance(now)
    return _follow(spec, job, flight, next_due(job, spec), around, now)


def _follow(
    spec: JobSpec, job: Job, flight: Flight, wake_at: float | None, around: AttemptContext, now: float
) -> GangOutcome:
    """Conclude an attempt that has ended, or requeue the job of an attempt that lost its places."""
    if flight.over is not None:
        runs = sorted(flight.runs.values(), key=attrgetter("rank"))
        ended = conclude(spec, job, Over(flight.attempt, flight.over, runs, around.judging), now)
        return GangOutcome(ended.state, flight, ended.decisions)
    if flight.back is not None:
        why = flight.back.message
        flight.put_back(now)
        number = flight.attempt.number - 1
        job = evolve(job, state=JobState.QUEUED, reason=why, attempt=number, queued_at=now, updated_at=now)
    return GangOutcome(job, flight, (), wake_at)


def settle(spec: JobSpec, job: Job, seen: Observed, now: float) -> Settled:
    """Do what a user requests for a job, or else what is due.

    Args:
        spec: The job's specification.
        job: The job after the last look.
        seen: What was observed.
        now: The time.
    """
    if seen.intervention is not None:
        return _asked(spec, job, seen, seen.intervention, now)
    if seen.awaited is not None:
        job = until_start(spec, advanced(job, spec.after, seen.awaited, now), now)
    due = next_due(job, spec)
    if due is None or due > now:
        return Result(state=job, wake_at=due)
    return _on_time(spec, job, seen, now)


def _on_time(spec: JobSpec, job: Job, seen: Observed, now: float) -> Settled:
    """Act on what is due; the total deadline comes before a retry."""
    if awaits_start(spec, job):
        job = evolve(queued(job, now), ready_at=now)
        return Result(state=job, wake_at=next_due(job, spec))
    total_s, timeout_s = spec.total_deadline_s, spec.scheduling_timeout_s
    if total_s is not None and counted_from(job) + total_s <= now:
        if seen.attempt is not None:
            stopping = seen.attempt.status is AttemptStatus.TERMINATING
            is_stopped = stopping and seen.attempt.status_since >= counted_from(job) + total_s
            return Result(state=job, orders=() if is_stopped else (StopAttempt(TOTAL_DEADLINE),))
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


def _asked(spec: JobSpec, job: Job, seen: Observed, intervention: Intervention, now: float) -> Settled:
    """Do what a user requests, where it applies."""
    orders: tuple[StopAttempt, ...] = ()
    match intervention:
        case Intervention.CANCEL_UNLESS_STARTED if job.started_at is not None:
            pass
        case Intervention.CANCEL | Intervention.CANCEL_UNLESS_STARTED:
            if seen.attempt is None:
                ended = _closed(job, seen.waiting, CANCEL_JOB, seen.reason, now)
                return Result(state=cancelled_while_pending(job, seen.reason, now), decisions=ended)
            if not job.cancel_requested:
                job = evolve(job, cancel_requested=True, reason=seen.reason, updated_at=now)
                orders = (StopAttempt(CANCEL_JOB),)
        case Intervention.HOLD if job.state in JOB_WAITING or job.state is JobState.WAITING:
            job = held(job, seen.reason or HELD_BY_USER, now)
        case Intervention.RELEASE if job.state is JobState.HELD:
            job = released(spec, job, now)
        case (
            Intervention.HOLD
            | Intervention.RELEASE
            | Intervention.DRAIN
            | Intervention.PREEMPT
            | Intervention.EVICT
            | Intervention.EVICT_NOW
        ):
            job, orders = _interrupt(job, seen, intervention, now)
        case Intervention.RETRY:
            if seen.attempt is None:
                job = retried_when_ready(spec, job, seen.awaited, seen.reason, now)
        case _:
            assert_never(intervention)
    return Result(state=job, orders=orders, wake_at=next_due(job, spec))


def _interrupt(job: Job, seen: Observed, intervention: Intervention, now: float) -> tuple[Job, tuple[StopAttempt, ...]]:
    """Stop the attempt, or change what follows its end; a job that is being cancelled is left alone."""
    why, reason = Interruption(intervention), seen.reason
    stopping = seen.attempt is not None and seen.attempt.status is AttemptStatus.TERMINATING
    nothing = seen.attempt is None or job.cancel_requested
    if nothing or changes_nothing(why, seen.interrupted, stopping=stopping):
        return job, ()
    if why not in OF_PLACE:
        reason = reason or (HELD_BY_USER if why is Interruption.HOLD else "released by a user")
    return evolve(job, reason=reason, updated_at=now), (StopAttempt(ROWS[why], why),)


def _closed(
    job: Job, waiting: Attempt | None, row: RequestRow[AttemptStatus], why: str, now: float
) -> tuple[EndedAttempt, ...]:
    """Cancel the attempt that waits for a place, if the job has one."""
    if waiting is None:
        if job.state is not JobState.QUEUED:
            return ()
        waiting = Attempt(job.id, job.attempt + 1)
    step = Step(row.name, Outcome.SUCCESS, now, message=why)
    return (EndedAttempt(cancelled(waiting, why, now, started=False), step),)
