"""Judges the reports of handlers and the statuses of children (retry, expire, give up, promote), and records steps.

Outcomes follow from counts and times, the same way for every kind of entity (BEP-1030, "Coordinator judges
conditions"; repairs of semantics 6). Repeated steps are one row of an entity's history.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol, assert_never

from holdfast.domain.lifecycle.table import C, EntityKind, HandlerRow, Match, Outcome, PromotionRow, S
from holdfast.domain.record import Struct, evolve, field

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


class SubStep(Struct, frozen=True):
    """A part of a step worth recording separately, such as one run of an attempt."""

    name: str
    outcome: Outcome
    error_code: str = ""
    message: str = ""


class Step(NamedTuple):
    """What happened to an entity in a phase."""

    phase: str
    outcome: Outcome
    now: float
    code: str = ""
    message: str = ""
    steps: tuple[SubStep, ...] = ()


class HistoryRow(Struct, frozen=True):
    """One step of an entity through a phase; equal neighbours are merged (BEP-1030, upstream's merge rule)."""

    kind: EntityKind
    id: str
    seq: int
    """Order within the entity's history, from 0; it only grows."""
    phase: str
    """The name of the handler, the promotion or the request."""
    from_status: str
    to_status: str
    outcome: Outcome
    created_at: float
    updated_at: float
    error_code: str = ""
    message: str = ""
    attempts: int = 1
    """How many equal steps this row stands for."""
    steps: tuple[SubStep, ...] = ()

    @property
    def key(self) -> tuple[str, str, int]:
        """Its identity."""
        return (self.kind, self.id, self.seq)

    @property
    def job_id(self) -> str:
        """The job whose attempt this is about."""
        return self.id.partition("/")[0]

    @property
    def attempt(self) -> int:
        """The number of that attempt."""
        return int(self.id.rpartition("/")[2])


def attempt_id(job_id: str, number: int) -> str:
    """Return an attempt's id in the history."""
    return f"{job_id}/{number}"


def recorded(last: HistoryRow | None, row: HistoryRow) -> HistoryRow:
    """Return the row to write: the last one counted up when the step repeats it, else the new one after it.

    A step repeats the last one if it has the same phase, error code and target, and both are tries or both skips. A
    merged row keeps the creation time, and of tries the first message; it takes the new outcome and update time. A
    skip for the same reason as the last is nothing new: it is the last row itself, so that waiting costs no write.
    """
    if last is None:
        return row
    skipped = row.outcome is Outcome.SKIPPED
    same = last.phase == row.phase and last.error_code == row.error_code and last.to_status == row.to_status
    if not same or (last.outcome is Outcome.SKIPPED) is not skipped:
        return row if row.seq == last.seq + 1 else evolve(row, seq=last.seq + 1)
    if not skipped:
        return evolve(last, attempts=last.attempts + 1, outcome=row.outcome, updated_at=row.updated_at)
    if row.message == last.message:
        return last
    return evolve(last, attempts=last.attempts + 1, message=row.message, updated_at=row.updated_at)


def following(last: HistoryRow | None, step: Step, job_id: str, number: int, status: str, to: str) -> HistoryRow:
    """Return the row that records one more step of an attempt at a job, from its status to another."""
    phase, outcome, now, code, message, steps = step
    seq, key = 0 if last is None else last.seq + 1, attempt_id(job_id, number)
    row = HistoryRow(EntityKind.ATTEMPT, key, seq, phase, status, to, outcome, now, now, code, message, 1, steps)
    return recorded(last, row)


class Report(NamedTuple):
    """What a handler reports about one entity: SUCCESS, FAILURE or SKIPPED, never a verdict."""

    id: str
    said: Outcome | None
    """``None``: nothing, of an entity it was given."""
    code: str = ""
    message: str = ""
    steps: tuple[SubStep, ...] = ()


class Reports(Protocol):
    """All a handler reports, whatever the outcomes of its kind."""

    def reports(self) -> Iterator[Report]:
        """Say what happened, one entity after the other."""


class HandlerResult(Struct, frozen=True):
    """All a handler of a judged kind can report: who succeeded, who failed, and whom it skipped."""

    successes: tuple[str, ...] = ()
    failures: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By id: an error code and a message."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By id: what it waits for."""

    def reports(self) -> Iterator[Report]:
        """Say what happened, one entity after the other."""
        for name in self.successes:
            yield Report(name, Outcome.SUCCESS)
        for name, (code, message) in self.failures.items():
            yield Report(name, Outcome.FAILURE, code, message)
        for name, message in self.skipped.items():
            yield Report(name, Outcome.SKIPPED, message=message)


class HandlerOptions(Struct, frozen=True):
    """The limits of one handler or promotion; ``None`` is no limit."""

    timeout_s: float | None = None
    max_retries: int | None = 5


HandlerLimits = Mapping[str, Mapping[str, int | float | None]]
"""Settings that override the tables, by a row's name: ``timeout_s``, ``max_retries``; ``None`` is no limit.

``int`` is named too, because whole numbers must come back whole from where they are stored.
"""


def resolve_options(row: HandlerRow[S, C] | PromotionRow[S, C], *layers: HandlerLimits) -> HandlerOptions:
    """Resolve a row's limits: the last layer that sets one, else the table's.

    An explicit null lifts the limit; a key that was not sent inherits (cases SC-027).

    Args:
        row: Of the table.
        layers: By name of a row, from the operator's settings to the queue's.
    """
    timeout_s: float | None = row.timeout_s
    retries: float | None = row.max_retries if isinstance(row, HandlerRow) else None
    for layer in layers:
        found = layer.get(row.name)
        if found:
            timeout_s, retries = found.get("timeout_s", timeout_s), found.get("max_retries", retries)
    return HandlerOptions(timeout_s, None if retries is None else int(retries))


def is_expired(since: float, timeout_s: float | None, now: float) -> bool:
    """Whether more than the timeout has passed since entering the status."""
    return timeout_s is not None and now - since > timeout_s


def judge(
    said: Outcome | None,
    options: HandlerOptions,
    outcomes: Collection[Outcome],
    *,
    tries: int,
    since: float,
    now: float,
) -> Outcome | None:
    """Judge the report on an entity, or the lack of one.

    Args:
        said: By the handler; ``None``: it did not mention the entity, which then expires like a skipped one.
        options: The handler's limits.
        outcomes: Those its kind has; where failures are not counted, FAILURE is an outcome itself.
        tries: Failures in this status before this one; skips are never among them.
        since: When the entity entered its current status; the clock of BEP-1030.
        now: The time.

    Returns:
        ``None`` where there is nothing to record.
    """
    if said is Outcome.FAILURE and Outcome.NEED_RETRY in outcomes:
        return judge_failure(tries, options, since=since, now=now)
    if said in {None, Outcome.SKIPPED} and Outcome.EXPIRED in outcomes:
        waiting = judge_waiting(options, since=since, now=now)
        return waiting if said is not None or waiting is Outcome.EXPIRED else None
    return said if said in outcomes else None


def judge_failure(tries: int, options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge a failure that counts: GIVE_UP before EXPIRED before NEED_RETRY."""
    if options.max_retries is not None and tries >= options.max_retries:
        return Outcome.GIVE_UP
    if is_expired(since, options.timeout_s, now):
        return Outcome.EXPIRED
    return Outcome.NEED_RETRY


def judge_waiting(options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge an entity its handler skipped: SKIPPED, or EXPIRED once its time in the status is over."""
    return Outcome.EXPIRED if is_expired(since, options.timeout_s, now) else Outcome.SKIPPED


def promotes(row: PromotionRow[S, C], statuses: Collection[C]) -> bool:
    """Whether children in these statuses promote their parent; no children never do."""
    if not statuses:
        return False
    match row.match:
        case Match.ALL:
            return row.check.issuperset(statuses)
        case Match.ANY:
            return not row.check.isdisjoint(statuses)
        case Match.NOT_ANY:
            return row.check.isdisjoint(statuses)
        case _:
            assert_never(row.match)
