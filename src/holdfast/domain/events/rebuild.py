"""Rebuilds a job from its events, which proves that the events are complete.

Fields that no event carries stay empty: the specification's text, the order of submission, when each dependency was
met, and the uid of the submitter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.events.jobs import (
    JobCancelled,
    JobCancelRequested,
    JobFailed,
    JobHeld,
    JobInterrupted,
    JobQueued,
    JobReleased,
    JobReprioritized,
    JobRetried,
    JobRetryScheduled,
    JobSetAside,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
    JobWaiting,
)
from holdfast.domain.job import ChildOf, Job, JobState, Resources
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.domain.events.registry import Event, EventRecord, StoredEvent


def rebuild(events: Iterable[EventRecord | StoredEvent]) -> Job | None:
    """Rebuild a job from its events, in order; ``None`` without events.

    Raises:
        ValueError: The events are not those of one job from its submission on.
    """
    job: Job | None = None
    for event in events:
        if isinstance(event.event, JobSubmitted):
            _require(job is None and event.job_id is not None, "a job is submitted once")
            job = _submitted(event.job_id or "", event.at, event.event)
            continue
        if job is None or event.job_id != job.id:
            msg = f"{event.event} is not of a job whose submission came before"
            raise ValueError(msg)
        change = _CHANGES.get(type(event.event))
        if change is not None:
            is_retry = isinstance(event.event, JobRetried)
            _require(is_retry or not job.terminal, f"{event.event} comes after the end of job {job.id}")
            job = evolve(change(job, event.at, event.event), updated_at=event.at)
    return job


def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - an assertion
    if not holds:
        raise ValueError(message)


def _submitted(job_id: str, at: float, event: JobSubmitted) -> Job:
    task = ChildOf(event.array, "", event.array_index) if event.array else None
    return Job(
        id=job_id,
        name=event.name,
        queue=event.queue,
        priority=event.priority,
        submitted_at=at,
        spec="",
        request=Resources(event.cpu_m, event.memory, event.gpu, event.share_m, event.named),
        gang=event.gang,
        queued_at=at,
        updated_at=at,
        state=JobState.WAITING if event.job_set or event.waits else JobState.QUEUED,
        reason=event.waits,
        child=ChildOf(event.job_set, event.replicated_job, event.job_index) if event.job_set else task,
        submitted_by=event.submitted_by,
        group=event.group,
    )


def _set_aside(job: Job, _: float, event: JobSetAside) -> Job:
    state = JobState(event.state)
    return evolve(job, state=state, attempt=event.attempt, reason=event.reason, retry_at=event.retry_at)


def _queued(job: Job, at: float, event: JobQueued) -> Job:
    state = JobState.QUEUED
    tried = (*job.tried, *event.tried)
    return evolve(
        job, state=state, attempt=event.attempt, reason=event.reason, retry_at=None, queued_at=at, tried=tried
    )


def _waiting(job: Job, _: float, event: JobWaiting) -> Job:
    return evolve(job, reason=event.reason)


def _started(job: Job, at: float, event: JobStarted) -> Job:
    first = job.started_at if job.started_at is not None else at
    return evolve(job, state=JobState.RUNNING, attempt=event.attempt, reason="", retry_at=None, started_at=first)


def _retried(job: Job, at: float, event: JobRetryScheduled) -> Job:
    counters, name = job.counters, event.counter
    if name is not None:
        counters = {**counters, name: counters.get(name, 0) + 1}
    return evolve(
        job,
        state=JobState.QUEUED if event.retry_at is None else JobState.BACKOFF,
        attempt=event.attempt,
        reason=event.reason,
        retry_at=event.retry_at,
        queued_at=at,
        counters=counters,
        retries=job.retries + (name is not None),
        request=job.request if event.memory is None else evolve(job.request, memory=event.memory),
        avoid_node=event.avoid_node,
        avoid_devices=event.avoid_devices,
        avoid_nodes=event.avoid_nodes,
        tried=(*job.tried, *event.tried),
    )


def _held(job: Job, _: float, event: JobHeld) -> Job:
    tried = (*job.tried, *event.tried)
    return evolve(job, state=JobState.HELD, attempt=event.attempt, reason=event.reason, retry_at=None, tried=tried)


def _released(job: Job, at: float, event: JobReleased) -> Job:
    return evolve(job, state=JobState.QUEUED, attempt=event.attempt, reason="", retry_at=None, queued_at=at)


def _retried_by_hand(job: Job, at: float, event: JobRetried) -> Job:
    names = ("cpu_m", "memory", "gpu", "share_m", "named")
    changed = {name: getattr(event, name) for name in names if getattr(event, name) is not None}
    return evolve(
        job,
        state=JobState.WAITING if event.waits else JobState.QUEUED,
        attempt=event.attempt,
        reason=event.reason,
        retry_at=None,
        queued_at=at,
        started_at=None if job.terminal else job.started_at,
        ended_at=None,
        cancel_requested=False,
        request=evolve(job.request, **changed),
        avoid_nodes=() if job.terminal else job.avoid_nodes,
        tried=() if job.terminal else job.tried,
    )


def _reprioritized(job: Job, _: float, event: JobReprioritized) -> Job:
    return evolve(job, priority=event.priority)


def _cancel_requested(job: Job, _: float, event: JobCancelRequested) -> Job:
    return evolve(job, cancel_requested=True, attempt=event.attempt, reason=event.reason)


def _interrupted(job: Job, _: float, event: JobInterrupted) -> Job:
    return evolve(job, attempt=event.attempt, reason=event.reason)


def _succeeded(job: Job, at: float, event: JobSucceeded) -> Job:
    return evolve(job, state=JobState.SUCCEEDED, attempt=event.attempt, reason="", ended_at=_ended(at, event))


def _failed(job: Job, at: float, event: JobFailed) -> Job:
    ended_at = _ended(at, event)
    return evolve(
        job, state=JobState.FAILED, attempt=event.attempt, reason=event.reason, retry_at=None, ended_at=ended_at
    )


def _ended(at: float, event: JobSucceeded | JobFailed) -> float:
    return at if event.ended_at is None else event.ended_at


def _cancelled(job: Job, at: float, event: JobCancelled) -> Job:
    return evolve(
        job,
        state=JobState.CANCELLED,
        attempt=event.attempt,
        reason=event.reason,
        cancel_requested=True,
        retry_at=None,
        ended_at=at,
    )


_CHANGES: dict[type[Event], Callable[[Job, float, Any], Job]] = {
    JobQueued: _queued,
    JobWaiting: _waiting,
    JobSetAside: _set_aside,
    JobStarted: _started,
    JobRetryScheduled: _retried,
    JobHeld: _held,
    JobReleased: _released,
    JobRetried: _retried_by_hand,
    JobReprioritized: _reprioritized,
    JobCancelRequested: _cancel_requested,
    JobInterrupted: _interrupted,
    JobSucceeded: _succeeded,
    JobFailed: _failed,
    JobCancelled: _cancelled,
}
"""How each event changes its job; other events are about attempts and do not change it."""
