"""Moves entities by their table: by their children, by the work of their phase, and by time alone.

A phase only reports how its work went; whether it is retried, has expired or is given up is judged only here, from
counts and times, in the same way for every kind of entity (BEP-1030, "Coordinator judges conditions").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, assert_never

from holdfast.domain.lifecycle.history import Step, SubStep
from holdfast.domain.lifecycle.table import C, HandlerRow, Match, Outcome, PromotionRow, S, TransitionStatus
from holdfast.domain.record import Struct
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.domain.lifecycle.table import Lifecycle


REPORTED = frozenset({Outcome.SUCCESS, Outcome.FAILURE, Outcome.SKIPPED})
"""The outcomes a phase may report; the others are verdicts."""


class Report(NamedTuple):
    """How the work of a phase went."""

    outcome: Outcome
    """One of ``REPORTED``; any other is ignored."""
    code: str = ""
    message: str = ""
    steps: tuple[SubStep, ...] = ()


class Entity(Protocol[S, C]):
    """An entity: it knows its status, does the work of its phases, and takes the steps that follow."""

    raised: Exception | None
    """The last exception from the work of a phase."""

    @property
    def status(self) -> S:
        """Its status."""

    @property
    def children(self) -> Collection[C]:
        """The statuses of its children."""

    @property
    def tries(self) -> int:
        """How often the work of its status has failed; skips do not count."""

    def since(self, now: float) -> float:
        """Return when it entered its status, by the clock of BEP-1030."""

    def options(self, row: HandlerRow[S, C] | PromotionRow[S, C]) -> HandlerOptions:
        """Return the limits of a row for this entity."""

    def work(self, row: HandlerRow[S, C], now: float) -> Report | None:
        """Do the work of a phase; ``None`` reports nothing, and expires like a skip."""

    def take(self, step: Step, to: TransitionStatus[S, C]) -> bool:
        """Take a step; returns whether the entity may move on at once."""


def advance(table: Lifecycle[S, C], entity: Entity[S, C], now: float) -> None:
    """Move an entity as far as it can go now: by its children first, else by the work of its phase."""
    while (move := _next(table, entity, now)) is not None and entity.take(*move):
        pass


def _next(table: Lifecycle[S, C], entity: Entity[S, C], now: float) -> tuple[Step, TransitionStatus[S, C]] | None:
    """Return the next step of an entity and its target, if there is anything to record."""
    status, children = entity.status, entity.children
    for promotion in table.promotions:
        if status not in promotion.targets:
            continue
        if promotes(promotion, children):
            return Step(promotion.name, Outcome.SUCCESS, now), TransitionStatus(promotion.success)
        # An entity that has just entered its status cannot have expired.
        if promotion.expired is not None and (since := entity.since(now)) < now:
            timeout_s = entity.options(promotion).timeout_s
            if is_expired(since, timeout_s, now):
                message = f"not {promotion.success} within {format_duration(timeout_s or 0.0)}"
                return Step(promotion.name, Outcome.EXPIRED, now, "", message), TransitionStatus(promotion.expired)
    for row in table.handlers:
        if status in row.targets and (row.child_targets is None or not row.child_targets.isdisjoint(children)):
            report = _worked(row, entity, now)
            outcome = None if report is None or report.outcome not in REPORTED else report.outcome
            if outcome is not Outcome.SUCCESS:
                options, since = entity.options(row), entity.since(now)
                outcome = judge(outcome, options, table.outcomes, tries=entity.tries, since=since, now=now)
            if outcome is None:
                return None
            _, code, message, steps = report or _SILENT
            return Step(row.name, outcome, now, code, message, steps), row.transitions.get(outcome) or _STAYS
    return None


def _worked(row: HandlerRow[S, C], entity: Entity[S, C], now: float) -> Report | None:
    """Do the work of a phase; an exception counts as a failure, and the entity keeps it."""
    try:
        return entity.work(row, now)
    except Exception as error:  # noqa: BLE001 - whatever it is
        entity.raised = error
        return Report(Outcome.FAILURE, type(error).__name__, str(error))


_SILENT = Report(Outcome.SKIPPED)
_STAYS: TransitionStatus[Any, Any] = TransitionStatus()


class HandlerOptions(Struct, frozen=True):
    """The limits of one handler or promotion; ``None`` is no limit."""

    timeout_s: float | None = None
    max_retries: int | None = 5


HandlerLimits = Mapping[str, Mapping[str, int | float | None]]
"""Settings that override the tables, by a row's name: ``timeout_s``, ``max_retries``; ``None`` is no limit.

The type includes ``int``, so that whole numbers are read back as such from the store.
"""


def resolve_options(row: HandlerRow[S, C] | PromotionRow[S, C], *layers: HandlerLimits) -> HandlerOptions:
    """Resolve a row's limits: the last layer that sets one, else the table.

    An explicit null removes the limit; a missing key inherits (cases SC-027).

    Args:
        row: The row.
        layers: Limits by row name, from the operator's settings to the queue's.
    """
    timeout_s: float | None = row.timeout_s
    retries: float | None = row.max_retries if isinstance(row, HandlerRow) else None
    for layer in layers:
        options = layer.get(row.name)
        if options:
            timeout_s, retries = options.get("timeout_s", timeout_s), options.get("max_retries", retries)
    return HandlerOptions(timeout_s, None if retries is None else int(retries))


def is_expired(since: float, timeout_s: float | None, now: float) -> bool:
    """Whether more than the timeout has passed since entering the status."""
    return timeout_s is not None and now - since > timeout_s


def judge(
    outcome: Outcome | None,
    options: HandlerOptions,
    outcomes: Collection[Outcome],
    *,
    tries: int,
    since: float,
    now: float,
) -> Outcome | None:
    """Judge the report on an entity, or the lack of one.

    Args:
        outcome: Reported by the handler; ``None`` if it did not report the entity, which then expires like a skip.
        options: The handler's limits.
        outcomes: The outcomes of its kind; if failures are not counted, FAILURE is one of them.
        tries: Failures in this status before this one; skips do not count.
        since: When the entity entered its current status; the clock of BEP-1030.
        now: The time.

    Returns:
        ``None`` if there is nothing to record.
    """
    if outcome is Outcome.FAILURE and Outcome.NEED_RETRY in outcomes:
        return judge_failure(tries, options, since=since, now=now)
    if outcome in {None, Outcome.SKIPPED} and Outcome.EXPIRED in outcomes:
        waiting = judge_waiting(options, since=since, now=now)
        return waiting if outcome is not None or waiting is Outcome.EXPIRED else None
    return outcome if outcome in outcomes else None


def judge_failure(tries: int, options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge a failure that counts: GIVE_UP before EXPIRED before NEED_RETRY."""
    if options.max_retries is not None and tries >= options.max_retries:
        return Outcome.GIVE_UP
    if is_expired(since, options.timeout_s, now):
        return Outcome.EXPIRED
    return Outcome.NEED_RETRY


def judge_waiting(options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge an entity that its handler skipped: SKIPPED, or EXPIRED after its time in the status."""
    return Outcome.EXPIRED if is_expired(since, options.timeout_s, now) else Outcome.SKIPPED


def promotes(row: PromotionRow[S, C], statuses: Collection[C]) -> bool:
    """Whether children in these statuses promote their parent; without children, never."""
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
