"""Judges what handlers and runs report: retry, expire, give up, promote, record.

Decides outcomes from counts and times (BEP-1030, "Coordinator judges conditions"; repairs of semantics 6);
leaves the tables to ``lifecycle`` and carrying transitions out to ``controller``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, assert_never

from holdfast.domain.evolve import evolve
from holdfast.domain.lifecycle import (
    HandlerRow,
    Match,
    Outcome,
    PromotionRow,
    RunStatus,
    TransitionStatus,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from holdfast.domain.job import Attempt, HistoryRow
    from holdfast.domain.lifecycle import AttemptStatus


@dataclass(frozen=True, slots=True)
class HandlerResult:
    """All a handler can say: whom it worked on with success, with failure, and whom it passed over."""

    successes: tuple[str, ...] = ()
    failures: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """By job id: an error code and a message."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """By job id: what it waits for."""


@dataclass(frozen=True, slots=True)
class HandlerOptions:
    """How patient the coordinator is with one handler; ``None`` is without limit."""

    timeout_s: float | None = None
    max_retry_count: int | None = 5


def resolve_options(
    row: HandlerRow,
    default: HandlerOptions | None = None,
    by_handler: Mapping[str, Mapping[str, float | int | None]] | None = None,
) -> HandlerOptions:
    """Resolve a handler's options: its own override, else the operator's default, else the table's.

    An explicit null in an override lifts the limit; a key that was not sent inherits (cases SC-027).
    """
    base = default or HandlerOptions(row.timeout_s, row.max_retry_count)
    override = (by_handler or {}).get(row.name, {})
    retries = override.get("max_retry_count", base.max_retry_count)
    return HandlerOptions(
        timeout_s=override.get("timeout_s", base.timeout_s),
        max_retry_count=None if retries is None else int(retries),
    )


def is_expired(since: float, timeout_s: float | None, now: float) -> bool:
    """Whether more than the timeout has passed since entering the status."""
    return timeout_s is not None and now - since > timeout_s


def judge_failure(tries: int, options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge a reported failure: GIVE_UP before EXPIRED before NEED_RETRY.

    Args:
        tries: Failures of this phase before this one; skips are never among them.
        options: The handler's limits.
        since: When the attempt entered its current status; the clock of BEP-1030.
        now: The time.
    """
    if options.max_retry_count is not None and tries >= options.max_retry_count:
        return Outcome.GIVE_UP
    if is_expired(since, options.timeout_s, now):
        return Outcome.EXPIRED
    return Outcome.NEED_RETRY


def judge_waiting(options: HandlerOptions, *, since: float, now: float) -> Outcome:
    """Judge an attempt its handler passed over: SKIPPED, or EXPIRED once its time in the status is over."""
    return Outcome.EXPIRED if is_expired(since, options.timeout_s, now) else Outcome.SKIPPED


def phase_tries(last: HistoryRow | None, phase: str) -> int:
    """Count the failures an imported history shows for a phase; another phase or a skip counts none."""
    if last is None or last.phase != phase or last.outcome is Outcome.SKIPPED:
        return 0
    return last.attempts


def moved(attempt: Attempt, outcome: Outcome, target: AttemptStatus | None, now: float) -> Attempt:
    """Return the attempt after an outcome: a change of status restarts its clock and its count of tries."""
    if target is not None and target is not attempt.status:
        return attempt.entered(target, now)
    if outcome in {Outcome.NEED_RETRY, Outcome.GIVE_UP, Outcome.EXPIRED}:
        return evolve(attempt, tries=attempt.tries + 1)
    return attempt


def target_of(row: HandlerRow, outcome: Outcome) -> TransitionStatus:
    """Look up where an outcome of a handler leads; nowhere is an empty transition."""
    return row.transitions.on(outcome) or TransitionStatus()


def promotes(row: PromotionRow, statuses: Collection[RunStatus]) -> bool:
    """Whether runs in these statuses promote their attempt; no runs never do."""
    if not statuses:
        return False
    match row.match:
        case Match.ALL:
            return all(status in row.check for status in statuses)
        case Match.ANY:
            return any(status in row.check for status in statuses)
        case Match.NOT_ANY:
            return not any(status in row.check for status in statuses)
        case _:
            assert_never(row.match)


def merges(last: HistoryRow, row: HistoryRow) -> bool:
    """Whether a step repeats the last one: same phase, error code and target, both tries or both skips."""
    return (
        last.phase == row.phase
        and last.error_code == row.error_code
        and last.to_status is row.to_status
        and (last.outcome is Outcome.SKIPPED) == (row.outcome is Outcome.SKIPPED)
    )


def recorded(last: HistoryRow | None, row: HistoryRow) -> HistoryRow:
    """Return the row to write: the last one counted up when the step repeats it, else the new one after it.

    A merged row keeps the first message and creation time and takes the new outcome and update time.
    """
    if last is None:
        return row
    if merges(last, row):
        return evolve(last, attempts=last.attempts + 1, outcome=row.outcome, updated_at=row.updated_at)
    return row if row.seq == last.seq + 1 else evolve(row, seq=last.seq + 1)
