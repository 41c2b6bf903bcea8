"""Decides which notifications follow from a change: once for each outcome, never for each attempt.

The controller stores notifications in the commit that makes the change; delivery asks this module when to retry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from holdfast.domain.events.registry import BY_KIND
from holdfast.domain.events.sessions import SessionRetryExhausted, SessionRetryScheduled
from holdfast.domain.failure import Cause, failure_in_words
from holdfast.domain.job import JobState
from holdfast.domain.notifier import Occasion
from holdfast.domain.record import Struct, asdict, evolve, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.notifier import Notify
    from holdfast.domain.workloads.base import Owner

GIVE_UP_AFTER_S = 86_400.0
"""How long delivery is retried."""
FIRST_DELAY_S, FACTOR, LONGEST_DELAY_S = 5.0, 3.0, 14_400.0
JITTER = 0.2
"""The fraction by which delays vary, so that deliveries that failed together are not retried together."""
_ID_LENGTH = 24


class OutcomeReport(Struct, frozen=True, kw_only=True):
    """What is reported: the facts at the time of the event."""

    event: str
    """``job.failed``, ``array.succeeded``, ``jobset.completed``, ...."""
    kind: str
    """``job``, or the kind of a workload made of jobs, such as ``array``."""
    id: str
    name: str
    at: float
    state: str
    queue: str = ""
    submitted_by: str = ""
    """Its owner."""
    reason: str = ""
    """Why it is in this state, as shown by ``get``."""
    cause: str = ""
    category: str = ""
    failure: str = ""
    """How the deciding attempt failed, in one line, with the error line of its output."""
    exit_code: int | None = None
    signal: int | None = None
    attempts: int = 0
    nodes: tuple[str, ...] = ()
    """Where its last attempt ran; for one that succeeded this is looked up before delivery."""
    started_at: float | None = None
    submitted_at: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Tasks of an array or jobs of a set by how they ended, and a set's restarts."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Failed tasks of an array by cause; counted before delivery."""
    session: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the event about a session's retry, if it is one."""
    complete: bool = False
    """Whether the fields that are looked up before delivery are filled."""


class DeliveryState(StrEnum):
    """The delivery status of a notification."""

    WAITING = "Waiting"
    """To be delivered, for the first time or again."""
    DELIVERED = "Delivered"
    DEAD = "Dead"
    """Delivery was given up; it can be replayed."""


class Notification(Struct, frozen=True, kw_only=True):
    """One outcome to be reported to one notifier."""

    id: str
    """The same for every try and replay, so that receivers recognise repetitions."""
    to: str
    """Name of its notifier."""
    report: OutcomeReport
    created_at: float
    state: DeliveryState = DeliveryState.WAITING
    tries: int = 0
    """Tries since it was created or replayed."""
    since: float = 0.0
    """When the first of these was due."""
    next_at: float = 0.0
    """When the next try is due."""
    settled_at: float | None = None
    error: str = ""
    """Why the last try failed."""
    seq: int = 0
    """Assigned by the store in order of commits."""

    def delivered(self, now: float) -> Notification:
        """Return it as delivered."""
        tries = self.tries + 1
        return evolve(self, state=DeliveryState.DELIVERED, tries=tries, settled_at=now, error="")

    def failed(self, error: str, now: float, *, draw: float, final: bool) -> Notification:
        """Return it after a failed try: to be retried later, or given up.

        Args:
            error: What went wrong, for people.
            now: The time.
            draw: In [0, 1), for jitter.
            final: Whether retrying would be useless.
        """
        tries = self.tries + 1
        due = now + delay_s(tries, draw)
        if final or due > self.since + GIVE_UP_AFTER_S:
            return evolve(self, state=DeliveryState.DEAD, tries=tries, settled_at=now, error=error)
        return evolve(self, tries=tries, next_at=due, error=error)

    def replayed(self, now: float) -> Notification:
        """Return it as new, with the same id."""
        return evolve(self, state=DeliveryState.WAITING, tries=0, since=now, next_at=now, settled_at=None)


def delay_s(tries: int, draw: float) -> float:
    """Return the delay after a number of failed tries: 5 s, 15 s, 45 s, ... 4 h, each plus or minus a fifth."""
    plain = min(FIRST_DELAY_S * FACTOR ** min(tries - 1, 20), LONGEST_DELAY_S)
    return plain * (1 - JITTER + 2 * JITTER * draw)


_ENDED = {
    JobState.SUCCEEDED: "job.succeeded",
    JobState.FAILED: "job.failed",
    JobState.CANCELLED: "job.cancelled",
}


def of_job(before: Job, after: Job, ended: Attempt | None, wishes: Iterable[Notify]) -> Sequence[Notification]:
    """Return the notifications about a change of a job; most changes have none.

    Args:
        before: The job as it was.
        after: The job as it is now.
        ended: The attempt whose end changed it, if one did.
        wishes: The notifiers that the job and its queue name.
    """
    now = after.updated_at
    stalled = ended is not None and ended.failure is not None and ended.failure.cause is Cause.STALLED
    notifications: list[Notification] = []
    if stalled:
        notifications += _notifications(_report("job.stalled", after, ended), {Occasion.STALL}, wishes, "stall", now)
    if after.terminal:
        occasions, event = {Occasion.END}, _ENDED[after.state]
        if after.state is JobState.FAILED:
            occasions.add(Occasion.FAILURE)
        elif after.state is JobState.SUCCEEDED and after.attempt > 1:
            occasions.add(Occasion.RECOVERY)
            event = "job.recovered"
        notifications += _notifications(_report(event, after, ended), occasions, wishes, "end", now)
    elif after.state is JobState.HELD and before.state is not JobState.HELD:
        notifications += _notifications(
            _report("job.held", after, ended), {Occasion.HOLD}, wishes, f"hold/{now!r}", now
        )
    return notifications


def of_session(
    job: Job, event: SessionRetryScheduled | SessionRetryExhausted, ended: Attempt, wishes: Iterable[Notify]
) -> Sequence[Notification]:
    """Return the notifications about a session's failure whose retry is due, or that had the last retry.

    Args:
        job: The session's job after the decision.
        event: What was decided.
        ended: The attempt that failed.
        wishes: The notifiers that the job and its queue name.
    """
    occasion = Occasion.RETRY if isinstance(event, SessionRetryScheduled) else Occasion.EXHAUSTED
    report = evolve(_report(BY_KIND[type(event)].name, job, ended), session=asdict(event))
    return _notifications(report, {occasion}, wishes, f"{occasion}/{event.session_id}", job.updated_at)


def of_owner(row: Owner, wishes: Iterable[Notify], now: float) -> Sequence[Notification]:
    """Return the notifications about a workload that has ended, or is now held.

    There are none about a workload that is deleted before it has ended.
    """
    ended, counts = row.ended, row.counts
    recovered = ended == row.info.success and counts.get("restarts", 0) > 0
    occasions = {Occasion.END if ended else Occasion.HOLD, *([Occasion.RECOVERY] * recovered)}
    if ended == JobState.FAILED:
        occasions.add(Occasion.FAILURE)
    state = ended or JobState.HELD.value
    report = OutcomeReport(
        event=f"{row.kind}.{'recovered' if recovered else state.lower()}",
        kind=row.kind,
        id=row.id,
        name=row.name,
        at=now,
        state=state,
        queue=row.queue,
        submitted_by=row.submitted_by,
        reason=row.ended_because if ended else row.held_because,
        started_at=row.started_at,
        submitted_at=row.created_at,
        counts=counts,
        complete=not ended,
    )
    return _notifications(report, occasions, wishes, "end" if ended else f"hold/{now!r}", now)


def describe_failure(failure: Failure | None) -> str:
    """Describe a task's failure in a few words, the same for tasks that failed in the same way."""
    if failure is None:
        return "unknown"
    return failure.category or failure_in_words(evolve(failure, error_line="", message=""))


def _notifications(
    report: OutcomeReport, occasions: set[Occasion], wishes: Iterable[Notify], which: str, now: float
) -> list[Notification]:
    """Create one notification for each notifier that is interested in any of the occasions."""
    names = dict.fromkeys(wish.to for wish in wishes if not occasions.isdisjoint(wish.on))
    return [
        Notification(id=_id(report.id, which, name), to=name, report=report, created_at=now, since=now, next_at=now)
        for name in names
    ]


def _id(subject: str, which: str, to: str) -> str:
    """Return an id made from the outcome and the notifier: the same outcome cannot be written twice."""
    return f"msg_{hashlib.sha256(f'{subject}/{which}/{to}'.encode()).hexdigest()[:_ID_LENGTH]}"


def _report(event: str, job: Job, ended: Attempt | None) -> OutcomeReport:
    report = OutcomeReport(
        event=event,
        kind="job",
        id=job.id,
        name=job.name,
        at=job.updated_at,
        state=job.state.value,
        queue=job.queue,
        submitted_by=job.submitted_by,
        reason=job.reason,
        attempts=job.attempt,
        started_at=job.started_at,
        submitted_at=job.submitted_at,
    )
    failure = None if ended is None else ended.failure
    if failure is None:
        return report
    container = failure.first_failed
    return evolve(
        report,
        cause=failure.cause.value,
        category="/".join(filter(None, (failure.category, failure.subcategory))),
        failure=failure_in_words(failure),
        exit_code=None if container is None else container.exit_code,
        signal=None if container is None else container.signal,
        nodes=(failure.node,) if failure.node else (),
    )
