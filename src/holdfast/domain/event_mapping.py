"""Derives events from a record before and after a change: pure, so that events can never disagree with the state.

Every change of a job's record is exactly one event about the job.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.events import (
    AttemptEnded,
    AttemptStatusChanged,
    EventRecord,
    FailureDecided,
    JobCancelled,
    JobCancelRequested,
    JobFailed,
    JobHeld,
    JobQueued,
    JobReleased,
    JobRetryScheduled,
    JobSetAside,
    JobStarted,
    JobSubmitted,
    JobSucceeded,
    JobWaiting,
)
from holdfast.domain.job import ChildOf, JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, AttemptStatus, Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.events import JobEvent, Place
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Run

SHOWN_STATUSES = frozenset({AttemptStatus.RUNNING, AttemptStatus.TERMINATING})
"""Statuses of an attempt worth an event; the phases before are in its history."""


def submitted(job: Job) -> EventRecord:
    """Return the event of a submitted job."""
    request = job.request
    where = job.child or ChildOf("", "", 0)
    event = JobSubmitted(
        name=job.name,
        queue=job.queue,
        priority=job.priority,
        gang=job.gang,
        cpu_m=request.cpu_m,
        memory=request.memory,
        gpu=request.gpu,
        job_set=where.set_id,
        replicated_job=where.group,
        job_index=where.index,
    )
    return EventRecord(job.id, job.submitted_at, event)


def started(job: Job, attempt: Attempt, runs: Sequence[Run]) -> EventRecord:
    """Return the event of a job whose attempt got its places."""
    places: list[Place] = []  # consecutive ranks on one node are one entry
    for run in runs:
        if places and places[-1][:2] == (run.executor, run.node):
            places[-1] = (run.executor, run.node, places[-1][2] + 1)
        else:
            places.append((run.executor, run.node, 1))
    return EventRecord(job.id, job.updated_at, JobStarted(attempt.number, attempt.dispatch, tuple(places)))


def event_of(before: Job, after: Job, ended: Attempt | None = None) -> JobEvent | None:
    """Return the event of a job's change.

    Args:
        before: The job as it was.
        after: The job as it is now.
        ended: The attempt whose end changed it, if one did.
    """
    match after.state:
        case JobState.SUCCEEDED:
            return JobSucceeded(after.attempt)
        case JobState.FAILED:
            return _failed(after, ended)
        case JobState.CANCELLED:
            return JobCancelled(after.attempt, after.reason)
        case JobState.HELD:
            return _held(after, ended)
        case JobState.RUNNING:
            return JobCancelRequested(after.attempt, after.reason) if after.cancel_requested else None
        case JobState.QUEUED | JobState.BACKOFF | JobState.WAITING:
            return _waits(before, after, ended)
        case _:
            assert_never(after.state)


def _waits(before: Job, after: Job, ended: Attempt | None) -> JobEvent:
    if ended is not None and ended.decision is not None:
        decision = ended.decision
        return JobRetryScheduled(
            attempt=after.attempt,
            reason=after.reason,
            policy=decision.policy,
            rule=decision.rule,
            delay_s=decision.delay_s,
            retry_at=after.retry_at,
            counter=decision.counter,
            memory=None if after.request.memory == before.request.memory else after.request.memory,
            avoid_node=after.avoid_node,
        )
    if after.state is not JobState.QUEUED:
        return JobSetAside(after.attempt, after.state.value, after.reason, after.retry_at)
    if before.state is JobState.HELD:
        return JobReleased(after.attempt)
    if before.state is JobState.QUEUED and before.attempt == after.attempt:
        return JobWaiting(after.reason)
    return JobQueued(after.attempt, after.reason)


def _held(after: Job, ended: Attempt | None) -> JobHeld:
    if ended is None or ended.decision is None:
        return JobHeld(after.attempt, after.reason)
    return JobHeld(after.attempt, after.reason, ended.decision.policy, ended.decision.rule)


def _failed(after: Job, ended: Attempt | None) -> JobFailed:
    if ended is None or ended.decision is None or ended.failure is None:
        return JobFailed(after.attempt, after.reason)
    failure, decision = ended.failure, ended.decision
    exit_code, signal = _exit(failure)
    return JobFailed(
        attempt=after.attempt,
        reason=after.reason,
        cause=failure.cause.value,
        category=failure.category,
        subcategory=failure.subcategory,
        exit_code=exit_code,
        signal=signal,
        code=decision.code.value,
        policy=decision.policy,
        rule=decision.rule,
    )


def attempt_ended(attempt: Attempt) -> tuple[EventRecord, ...]:
    """Return the events of an attempt that is over: its end, and the decision about its failure."""
    ending = attempt.ending.value if attempt.ending is not None else ""
    failure, decision = attempt.failure, attempt.decision
    if failure is None:
        code = 0 if attempt.ending is Ending.SUCCEEDED else None
        ended = AttemptEnded(attempt.number, ending, attempt.status.value, attempt.started_at, exit_code=code)
    else:
        exit_code, signal = _exit(failure)
        ended = AttemptEnded(
            attempt=attempt.number,
            ending=ending,
            status=attempt.status.value,
            started_at=attempt.started_at,
            cause=failure.cause.value,
            category=failure.category,
            subcategory=failure.subcategory,
            conditions=tuple(sorted(failure.conditions)),
            exit_code=exit_code,
            signal=signal,
            rank=failure.rank,
            node=failure.node,
            executor=failure.executor,
            message=failure.message,
        )
    over = EventRecord(attempt.job_id, attempt.status_since, ended)
    if decision is None:
        return (over,)
    decided = FailureDecided(
        attempt=attempt.number,
        action=decision.action.value,
        code=decision.code.value,
        reason=decision.reason,
        policy=decision.policy,
        rule=decision.rule,
        policy_revision=decision.policy_revision,
        delay_s=decision.delay_s,
        retry_at=attempt.retry_at,
        limits=tuple([(each.name, each.used, each.limit) for each in decision.limits]),
    )
    return over, EventRecord(attempt.job_id, attempt.status_since, decided)


def _exit(failure: Failure) -> tuple[int | None, int | None]:
    """Return exit code and signal of the first container that failed."""
    found = failure.first_failed
    return (None, None) if found is None else (found.exit_code, found.signal)


class Outbox:
    """The events since the last commit, written into the changes as they happen, so that both are one commit.

    A status that an attempt enters and leaves within one tick gets no event.
    """

    def __init__(self) -> None:
        """Start empty."""
        self._numbers = count()
        self._ended: dict[str, Attempt] = {}
        """Attempts that ended and whose job has not moved on yet, by job id; both happen in one step."""
        self._moves: dict[str, int] = {}
        """The number of the last status event of each attempt in flight, by job id."""

    def attempt_moved(self, events: dict[int, EventRecord], attempt: Attempt) -> None:
        """Note an attempt's new status, replacing one of the same tick; the job of one that is over moves on next."""
        events.pop(self._moves.pop(attempt.job_id, -1), None)
        if attempt.status in SHOWN_STATUSES:
            self._moves[attempt.job_id] = number = next(self._numbers)
            event = AttemptStatusChanged(attempt.number, attempt.status.value)
            events[number] = EventRecord(attempt.job_id, attempt.status_since, event)
        elif attempt.status in ATTEMPT_TERMINAL:
            self._ended[attempt.job_id] = attempt
            for record in attempt_ended(attempt):
                self.emit(events, record)

    def job_changed(self, events: dict[int, EventRecord], before: Job, after: Job) -> None:
        """Note a change of a job."""
        event = event_of(before, after, self._ended.pop(after.id, None))
        if event is not None:
            self.emit(events, EventRecord(after.id, after.updated_at, event))

    def emit(self, events: dict[int, EventRecord], record: EventRecord) -> None:
        """Note an event."""
        events[next(self._numbers)] = record
