"""Derives events from a record before and after a change, so that events can never disagree with the state.

Every change of a job's record is exactly one event about the job.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.events.jobs import (
    AttemptEnded,
    AttemptStatusChanged,
    FailureDecided,
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
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.sessions import SessionRetryExhausted, SessionRetryScheduled
from holdfast.domain.events.workloads import JobSetDecided, JobSetNoted
from holdfast.domain.job import ChildOf, JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, AttemptStatus, Ending
from holdfast.domain.notifications.notification import of_job, of_session
from holdfast.domain.sessions.model import RetryState, creation_id, session_id
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.jobset.state import SetEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.events.jobs import Place
    from holdfast.domain.events.registry import Event
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.notifier import Notify
    from holdfast.domain.sessions.model import Session
    from holdfast.domain.workloads.jobset.state import JobSet, SetDecision
    from holdfast.domain.workloads.spec import JobSpec

SHOWN_STATUSES = frozenset({AttemptStatus.RUNNING, AttemptStatus.TERMINATING})
"""Statuses of an attempt worth an event; the phases before are in its history."""
MOVES_TOLD = SHOWN_STATUSES | ATTEMPT_TERMINAL
"""Statuses that the outbox must be told about; before these, it has no status event to replace."""


_NOWHERE = ChildOf("", "", 0)


def set_log_event(row: JobSet, what: SetDecision | SetEvent, now: float) -> EventRecord:
    """Return the event for an entry in the log of a job set."""
    if isinstance(what, SetEvent):
        noted = JobSetNoted(row.id, row.name, what.type, what.reason, what.message)
        return EventRecord(None, now, noted, row.group, row)
    event = JobSetDecided(
        job_set=row.id,
        name=row.name,
        job=what.job,
        restart=what.attempt[0],
        job_restart=what.attempt[1],
        action="" if what.action is None else what.action.value,
        granted=what.granted,
        reason=what.reason,
        message=what.message,
        rule=what.rule,
        delay_s=what.delay_s,
    )
    return EventRecord(None, now, event, row.group, row)


def submitted_event(job: Job) -> EventRecord:
    """Return the event for a submitted job."""
    request, a_set = job.request, job.of_set
    where, task = a_set or _NOWHERE, _NOWHERE if a_set else job.child or _NOWHERE
    event = JobSubmitted(
        name=job.name,
        queue=job.queue,
        priority=job.priority,
        gang=job.gang,
        cpu_m=request.cpu_m,
        memory=request.memory,
        gpu=request.gpu,
        share_m=request.share_m,
        named=request.named,
        job_set=where.set_id,
        replicated_job=where.group,
        job_index=where.index,
        array=task.set_id,
        array_index=task.index,
        waits=job.reason if job.state is JobState.WAITING and a_set is None else "",
        submitted_by=job.submitted_by,
        group=job.group,
    )
    return EventRecord(job.id, job.submitted_at, event, job.group)


def started_event(job: Job, attempt: Attempt, runs: Sequence[Run]) -> EventRecord:
    """Return the event for a job whose attempt was placed."""
    # Consecutive ranks on one node are one entry.
    places: list[Place] = []
    for run in runs:
        if places and places[-1][:2] == (run.executor, run.node):
            places[-1] = (run.executor, run.node, places[-1][2] + 1)
        else:
            places.append((run.executor, run.node, 1))
    return EventRecord(job.id, job.updated_at, JobStarted(attempt.number, attempt.dispatch, tuple(places)))


def event_of(before: Job, after: Job, ended: Attempt | None = None) -> Event | None:
    """Return the event for a change of a job.

    Args:
        before: The job as it was.
        after: The job as it is now.
        ended: The attempt whose end changed it, if one did.
    """
    match after.state:
        case JobState.SUCCEEDED:
            return JobSucceeded(after.attempt, after.ended_at)
        case JobState.FAILED:
            return _failed(after, ended)
        case JobState.CANCELLED:
            return JobCancelled(after.attempt, after.reason)
        case JobState.HELD:
            return _held(before, after, ended)
        case JobState.RUNNING:
            return _running_event(before, after)
        case JobState.QUEUED | JobState.BACKOFF | JobState.WAITING:
            return _waiting_event(before, after, ended)
        case _:
            assert_never(after.state)


def _running_event(before: Job, after: Job) -> Event | None:
    if after.cancel_requested:
        return JobCancelRequested(after.attempt, after.reason)
    if after.kind == KUBEJOB:
        return JobWaiting(after.reason) if after.reason != before.reason else None
    return JobInterrupted(after.attempt, after.reason) if after.reason else None


def _waiting_event(before: Job, after: Job, ended: Attempt | None) -> Event:
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
            avoid_devices=after.avoid_devices,
            avoid_nodes=after.avoid_nodes,
            tried=_newly_tried(before, after),
        )
    if before.terminal or before.spec != after.spec:
        return _retried(before, after)
    if after.state is not JobState.QUEUED:
        return JobSetAside(after.attempt, after.state.value, after.reason, after.retry_at)
    if before.state is JobState.HELD:
        return JobReleased(after.attempt)
    if before.state is JobState.QUEUED and before.attempt == after.attempt:
        return JobWaiting(after.reason)
    return JobQueued(after.attempt, after.reason, _newly_tried(before, after))


def _newly_tried(before: Job, after: Job) -> tuple[str, ...]:
    return after.tried[len(before.tried) :]


def _retried(before: Job, after: Job) -> JobRetried:
    was, now = before.request, after.request
    return JobRetried(
        after.attempt,
        after.reason,
        cpu_m=None if was.cpu_m == now.cpu_m else now.cpu_m,
        memory=None if was.memory == now.memory else now.memory,
        gpu=None if was.gpu == now.gpu else now.gpu,
        share_m=None if was.share_m == now.share_m else now.share_m,
        named=None if was.named == now.named else now.named,
        waits=after.reason if after.state is JobState.WAITING else "",
    )


def _held(before: Job, after: Job, ended: Attempt | None) -> JobHeld:
    tried = _newly_tried(before, after)
    if ended is None or ended.decision is None:
        return JobHeld(after.attempt, after.reason, tried=tried)
    return JobHeld(after.attempt, after.reason, ended.decision.policy, ended.decision.rule, tried)


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
        ended_at=after.ended_at,
    )


def _retry_event(session: Session, ended: Attempt) -> SessionRetryScheduled | SessionRetryExhausted | None:
    """Return the event for what was decided about a session's failure, if it is retried or was the last."""
    failed, of, cause = session.retry_count + 1, 1 + session.max_retries, session.retry_cause or ""
    if session.retry_state is RetryState.EXHAUSTED:
        return SessionRetryExhausted(session.id, cause, failed, of)
    if session.retry_state is not RetryState.PENDING or ended.decision is None or ended.retry_at is None:
        return None
    return SessionRetryScheduled(
        session_id=session.id,
        child_id=session_id(session.job_id, failed),
        child_creation_id=creation_id(session.job_id, failed),
        cause=cause,
        attempt=failed + 1,
        of=of,
        delay_s=ended.decision.delay_s,
        retry_at=ended.retry_at,
    )


def attempt_ended_events(attempt: Attempt) -> tuple[EventRecord, ...]:
    """Return the events for an attempt that has ended: its end, and the decision about its failure."""
    ending = attempt.ending.value if attempt.ending is not None else ""
    failure, decision = attempt.failure, attempt.decision
    if failure is None:
        code = 0 if attempt.ending is Ending.SUCCEEDED else None
        ended = AttemptEnded(attempt.number, ending, attempt.status.value, attempt.started_at, exit_code=code)
    else:
        exit_code, signal = _exit(failure)
        failed = failure.first_failed
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
            container="" if failed is None else failed.name,
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
        limits=tuple([(limit.name, limit.used, limit.limit) for limit in decision.limits]),
    )
    return over, EventRecord(attempt.job_id, attempt.status_since, decided)


def _exit(failure: Failure) -> tuple[int | None, int | None]:
    """Return the exit code and signal of the first failed container."""
    first = failure.first_failed
    return (None, None) if first is None else (first.exit_code, first.signal)


def add_groups(events: dict[int, EventRecord], group_of: Callable[[str], str]) -> None:
    """Add the job's group to each event about a job."""
    for number, record in events.items():
        if record.job_id is not None and (group := group_of(record.job_id)):
            events[number] = record._replace(group=group)


class Outbox:
    """Collects events with the changes that cause them, so that both are written in one commit.

    A status that an attempt enters and leaves within one tick gets no event.
    """

    def __init__(self, load_spec: Callable[[str], JobSpec]) -> None:
        self._load_spec = load_spec
        self.queue_notify: Mapping[str, tuple[Notify, ...]] = {}
        """The notifiers of each queue that has any."""
        self._numbers = count()
        self._moves: dict[str, int] = {}
        """The number of the last status event of each attempt in flight, by job id."""

    def attempt_moved(self, events: dict[int, EventRecord], attempt: Attempt) -> None:
        """Emit an attempt's new status, replacing one of the same tick."""
        events.pop(self._moves.pop(attempt.job_id, -1), None)
        if attempt.status in SHOWN_STATUSES:
            self._moves[attempt.job_id] = number = next(self._numbers)
            event = AttemptStatusChanged(attempt.number, attempt.status.value)
            events[number] = EventRecord(attempt.job_id, attempt.status_since, event)
        elif attempt.status in ATTEMPT_TERMINAL:
            for record in attempt_ended_events(attempt):
                self.emit(events, record)

    def job_changed(
        self,
        events: dict[int, EventRecord],
        before: Job,
        after: Job,
        notifications: list[Notification] | None = None,
        *,
        ended: Attempt | None = None,
    ) -> None:
        """Emit the event and notifications for a change of a job.

        Args:
            events: The events of this commit.
            before: The job as it was.
            after: The job as it is now.
            notifications: The notifications of this commit; ``None`` sends none, as for a job whose specification
                cannot be read.
            ended: The attempt whose end changed it, if one did.
        """
        event = event_of(before, after, ended)
        if before.priority != after.priority:
            # A new priority changes nothing else.
            event = JobReprioritized(after.attempt, after.priority, before.priority)
        if event is not None:
            self.emit(events, EventRecord(after.id, after.updated_at, event))
        if notifications is not None and after.child is None:
            notify = self._load_spec(after.spec).notify + self.queue_notify.get(after.queue, ())
            if notify:
                notifications += of_job(before, after, ended, notify)

    def session_ended(
        self,
        events: dict[int, EventRecord],
        notifications: list[Notification],
        job: Job,
        session: Session,
        ended: Attempt,
    ) -> None:
        """Emit the event and notifications for what was decided about a session's failure, if it asks for them.

        Args:
            events: The events of this commit.
            notifications: The notifications of this commit.
            job: The session's job after the decision.
            session: The session as it ended.
            ended: The attempt that ended it.
        """
        event = _retry_event(session, ended) if session.policy.emit_retry_events else None
        if event is None:
            return
        self.emit(events, EventRecord(job.id, job.updated_at, event))
        notify = self._load_spec(job.spec).notify + self.queue_notify.get(job.queue, ())
        if notify:
            notifications += of_session(job, event, ended, notify)

    def emit(self, events: dict[int, EventRecord], *records: EventRecord) -> None:
        """Emit events in order."""
        for record in records:
            events[next(self._numbers)] = record
