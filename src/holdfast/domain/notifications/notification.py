"""What notifications say about work, and when: once for each outcome, never for each attempt.

Pure: the controller stores what follows from a change in the commit that makes the change, and delivery uses
this module to decide when to retry.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping  # noqa: TC003 - the codec of what is stored looks it up
from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause, in_words
from holdfast.domain.job import JobState
from holdfast.domain.notifier import Occasion
from holdfast.domain.record import Struct, evolve, field

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job
    from holdfast.domain.notifier import Notify
    from holdfast.domain.workloads.base import Owner

GIVE_UP_AFTER_S = 86_400.0
"""How long delivery is tried."""
FIRST_DELAY_S, FACTOR, LONGEST_DELAY_S = 5.0, 3.0, 14_400.0
JITTER = 0.2
"""Part of a delay by which it varies, so that what failed together is not tried together."""
_ID_LENGTH = 24


class OutcomeReport(Struct, frozen=True, kw_only=True):
    """What is reported: exactly what happened, as it was then."""

    event: str
    """``job.failed``, ``array.succeeded``, ``jobset.completed``, ...."""
    kind: str
    """``job``, or that of the work that is made of jobs, such as ``array``."""
    id: str
    name: str
    at: float
    state: str
    queue: str = ""
    submitted_by: str = ""
    """Whose it is."""
    reason: str = ""
    """Why it is in this state, as ``get`` shows it."""
    cause: str = ""
    category: str = ""
    failure: str = ""
    """What happened to the attempt that decided it, in a line, with the line of its output that matters."""
    exit_code: int | None = None
    signal: int | None = None
    attempts: int = 0
    nodes: tuple[str, ...] = ()
    """Where its last attempt ran; of one that succeeded they are looked up before it is told."""
    started_at: float | None = None
    submitted_at: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Tasks of an array or jobs of a set, by how they ended; of a set its restarts, too."""
    causes: Mapping[str, int] = field(default_factory=dict)
    """Failed tasks of an array, by what they failed of; they are counted before it is told."""
    complete: bool = False
    """Whether what is looked up has been."""


class DeliveryState(StrEnum):
    """The delivery status of a notification."""

    WAITING = "Waiting"
    """To be tried, first or again."""
    DELIVERED = "Delivered"
    DEAD = "Dead"
    """Given up; it can be replayed."""


class Notification(Struct, frozen=True, kw_only=True):
    """One outcome to be reported to one notifier."""

    id: str
    """The same for every try and replay: receivers tell repetitions by it."""
    to: str
    """Name of its notifier."""
    report: OutcomeReport
    created_at: float
    state: DeliveryState = DeliveryState.WAITING
    tries: int = 0
    """Since it was made, or replayed."""
    since: float = 0.0
    """When the first of these was due."""
    next_at: float = 0.0
    """When the next try is due."""
    settled_at: float | None = None
    error: str = ""
    """Why the last try failed."""
    seq: int = 0
    """Given by the store; in order of commits."""

    def delivered(self, now: float) -> Notification:
        """Return it delivered."""
        tries = self.tries + 1
        return evolve(self, state=DeliveryState.DELIVERED, tries=tries, settled_at=now, error="")

    def failed(self, error: str, now: float, *, draw: float, final: bool) -> Notification:
        """Return it after a try that failed: to be tried again later, or given up.

        Args:
            error: What went wrong, for people.
            now: The time.
            draw: In [0, 1), for jitter.
            final: Whether to try again would be of no use.
        """
        tries = self.tries + 1
        due = now + delay_s(tries, draw)
        if final or due > self.since + GIVE_UP_AFTER_S:
            return evolve(self, state=DeliveryState.DEAD, tries=tries, settled_at=now, error=error)
        return evolve(self, tries=tries, next_at=due, error=error)

    def replayed(self, now: float) -> Notification:
        """Return it as new, under its id."""
        return evolve(self, state=DeliveryState.WAITING, tries=0, since=now, next_at=now, settled_at=None)


def delay_s(tries: int, draw: float) -> float:
    """Return how long to wait after that many failed tries: 5 s, 15 s, 45 s, ... 4 h, each give or take a fifth."""
    plain = min(FIRST_DELAY_S * FACTOR ** min(tries - 1, 20), LONGEST_DELAY_S)
    return plain * (1 - JITTER + 2 * JITTER * draw)


_ENDED = {
    JobState.SUCCEEDED: "job.succeeded",
    JobState.FAILED: "job.failed",
    JobState.CANCELLED: "job.cancelled",
}


def of_job(before: Job, after: Job, ended: Attempt | None, wishes: Iterable[Notify]) -> Sequence[Notification]:
    """Return who is to be told of a change of a job; nobody of most.

    Args:
        before: The job as it was.
        after: The job as it is now.
        ended: The attempt whose end changed it, if one did.
        wishes: What was asked for, by the job and its queue.
    """
    now = after.updated_at
    stalled = ended is not None and ended.failure is not None and ended.failure.cause is Cause.STALLED
    notifications: list[Notification] = []
    if stalled:
        notifications += _told(_report("job.stalled", after, ended), {Occasion.STALL}, wishes, "stall", now)
    if after.terminal:
        occasions, event = {Occasion.END}, _ENDED[after.state]
        if after.state is JobState.FAILED:
            occasions.add(Occasion.FAILURE)
        elif after.state is JobState.SUCCEEDED and after.attempt > 1:
            occasions.add(Occasion.RECOVERY)
            event = "job.recovered"
        notifications += _told(_report(event, after, ended), occasions, wishes, "end", now)
    elif after.state is JobState.HELD and before.state is not JobState.HELD:
        notifications += _told(_report("job.held", after, ended), {Occasion.HOLD}, wishes, f"hold/{now!r}", now)
    return notifications


def of_owner(row: Owner, wishes: Iterable[Notify], now: float) -> Sequence[Notification]:
    """Return who is to be told of work of any kind that has ended, or is held from now on.

    Of work that is deleted before it has ended nobody is told.
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
    return _told(report, occasions, wishes, "end" if ended else f"hold/{now!r}", now)


def what_of(failure: Failure | None) -> str:
    """Say in a few words what a task failed of, alike for those that failed alike."""
    if failure is None:
        return "unknown"
    return failure.category or in_words(evolve(failure, error_line="", message=""))


def _told(
    report: OutcomeReport, occasions: set[Occasion], wishes: Iterable[Notify], which: str, now: float
) -> list[Notification]:
    """Make a notification for each notifier that wants to know of any of the occasions: one, whatever it asked for."""
    names = dict.fromkeys(wish.to for wish in wishes if not occasions.isdisjoint(wish.on))
    return [
        Notification(id=_id(report.id, which, name), to=name, report=report, created_at=now, since=now, next_at=now)
        for name in names
    ]


def _id(subject: str, which: str, to: str) -> str:
    """Name a notification by what it tells to whom: the same outcome cannot be written twice."""
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
        failure=in_words(failure),
        exit_code=None if container is None else container.exit_code,
        signal=None if container is None else container.signal,
        nodes=(failure.node,) if failure.node else (),
    )
