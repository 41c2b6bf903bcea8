"""The engine's judgements, as tables (BEP-1030 and its cases)."""

from __future__ import annotations

import pytest

from holdfast.domain import lifecycle
from holdfast.domain.job import Attempt
from holdfast.domain.lifecycle import (
    AttemptHandler,
    AttemptPromotion,
    EntityKind,
    HistoryRow,
    Outcome,
    TransitionStatus,
    attempt_id,
)
from holdfast.domain.lifecycle import AttemptStatus as A
from holdfast.domain.lifecycle import RunStatus as R
from holdfast.domain.lifecycle.engine import (
    HandlerOptions,
    judge_failure,
    judge_waiting,
    promotes,
    resolve_options,
)
from holdfast.domain.lifecycle.history import merge_row
from holdfast.domain.lifecycle.table import JUDGED
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.flight import after as after_step

FIVE = HandlerOptions(timeout_s=900.0, max_retries=5)


@pytest.mark.parametrize(
    ("tries", "options", "elapsed_s", "expected"),
    [
        (5, FIVE, 1.0, Outcome.GIVE_UP),
        (5, FIVE, 1000.0, Outcome.GIVE_UP),
        (4, FIVE, 1.0, Outcome.NEED_RETRY),
        (1, FIVE, 960.0, Outcome.EXPIRED),
        (0, FIVE, 1200.0, Outcome.EXPIRED),
        (1, FIVE, 900.0, Outcome.NEED_RETRY),
        (999, HandlerOptions(None, None), 7200.0, Outcome.NEED_RETRY),
        (0, HandlerOptions(None, 0), 0.0, Outcome.GIVE_UP),
    ],
)
def test_a_failure_is_given_up_before_it_expires_before_it_is_tried_again(
    tries: int, options: HandlerOptions, elapsed_s: float, expected: Outcome
) -> None:
    assert judge_failure(tries, options, since=100.0, now=100.0 + elapsed_s) is expected


@pytest.mark.parametrize(("elapsed_s", "expected"), [(900.0, Outcome.SKIPPED), (900.1, Outcome.EXPIRED)])
def test_a_skip_leaves_the_status_only_by_time(elapsed_s: float, expected: Outcome) -> None:
    assert judge_waiting(FIVE, since=0.0, now=elapsed_s) is expected


@pytest.mark.parametrize("row", lifecycle.HANDLERS, ids=lambda row: row.name)
@pytest.mark.parametrize("outcome", sorted(JUDGED))
def test_every_cell_of_the_handler_table_moves_or_maintains(row: AttemptHandler, outcome: Outcome) -> None:
    for start in row.targets:
        attempt = Attempt("j", 1, status=start, status_since=5.0, tries=2)
        to = row.transitions.get(outcome, TransitionStatus()).status
        after = after_step(attempt, outcome, to, 9.0)
        if to in {None, start}:
            assert after.status is start
            assert after.status_since == 5.0
            assert after.tries == (2 if outcome in {Outcome.SKIPPED, Outcome.SUCCESS} else 3)
        else:
            assert (after.status, after.status_since, after.tries) == (to, 9.0, 0)


BEP_1030 = {
    "ScheduleAttempts": (A.SCHEDULED, None, A.CANCELLED, A.CANCELLED),
    "PrepareAttempts": (A.PREPARING, None, A.PENDING, A.PENDING),
    "StartAttempts": (A.CREATING, None, A.PENDING, A.PENDING),
    "TerminateAttempts": (A.TERMINATED, None, A.TERMINATED, A.TERMINATED),
}


@pytest.mark.parametrize("row", lifecycle.HANDLERS, ids=lambda row: row.name)
def test_the_handler_table_is_the_documents(row: AttemptHandler) -> None:
    outcomes = (Outcome.SUCCESS, Outcome.NEED_RETRY, Outcome.EXPIRED, Outcome.GIVE_UP)
    leads = [row.transitions.get(outcome, TransitionStatus()) for outcome in outcomes]
    assert tuple(to.status for to in leads) == BEP_1030[row.name]
    assert all((to.children is None) == (to.status is None) for to in leads)
    assert row.transitions.keys() <= lifecycle.ATTEMPTS.outcomes


@pytest.mark.parametrize(
    ("row", "statuses", "expected"),
    [
        (lifecycle.PROMOTE_TO_PREPARED, [R.PREPARED, R.RUNNING], True),
        (lifecycle.PROMOTE_TO_PREPARED, [R.PREPARED, R.PULLING], False),
        (lifecycle.PROMOTE_TO_PREPARED, [R.RUNNING, R.TERMINATED], True),
        (lifecycle.PROMOTE_TO_RUNNING, [R.RUNNING, R.TERMINATED], True),
        (lifecycle.PROMOTE_TO_RUNNING, [R.RUNNING, R.CREATING], False),
        (lifecycle.PROMOTE_TO_TERMINATED, [R.TERMINATED, R.CANCELLED], True),
        (lifecycle.PROMOTE_TO_TERMINATED, [R.TERMINATED, R.TERMINATING], False),
        (lifecycle.DETECT_TERMINATION, [R.RUNNING, R.RUNNING, R.TERMINATED], True),
        (lifecycle.DETECT_TERMINATION, [R.RUNNING, R.RUNNING], False),
        (lifecycle.DETECT_FAILURE, [R.RUNNING, R.TERMINATED], False),
        (lifecycle.DETECT_FAILURE, [R.RUNNING, R.ERROR], True),
        (lifecycle.DETECT_COMPLETION, [R.RUNNING, R.TERMINATED], False),
        (lifecycle.DETECT_COMPLETION, [R.TERMINATED, R.TERMINATED], True),
    ],
)
def test_runs_promote_their_attempt(row: AttemptPromotion, statuses: list[R], expected: bool) -> None:  # noqa: FBT001 - a table column
    assert promotes(row, statuses) is expected


@pytest.mark.parametrize("row", [*lifecycle.PROMOTIONS, *lifecycle.GANG_PROMOTIONS], ids=lambda row: row.name)
def test_an_attempt_without_runs_is_never_promoted(row: AttemptPromotion) -> None:
    assert not promotes(row, [])


def test_the_first_run_that_ends_ends_a_session() -> None:
    runs = [R.RUNNING, R.TERMINATED]
    ways = [row for row in lifecycle.PROMOTIONS if A.RUNNING in row.targets and promotes(row, runs)]
    assert [row.success for row in ways] == [A.TERMINATING]


def test_every_non_terminal_status_has_a_way_out() -> None:
    ways = {status for row in lifecycle.HANDLERS for status in row.targets if Outcome.EXPIRED in row.transitions}
    ways |= {status for promotion in lifecycle.GANG_PROMOTIONS for status in promotion.targets if promotion.expired}
    running_ends_by_deadline_or_lease = {A.RUNNING}
    assert set(A) - lifecycle.ATTEMPT_TERMINAL == ways | running_ends_by_deadline_or_lease


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({}, HandlerOptions(600.0, 3)),
        ({"max_retries": None}, HandlerOptions(600.0, None)),
        ({"max_retries": 2}, HandlerOptions(600.0, 2)),
        ({"timeout_s": 30.0}, HandlerOptions(30.0, 3)),
    ],
)
def test_an_explicit_null_lifts_a_limit_and_an_absent_key_inherits(
    override: dict[str, float | None], expected: HandlerOptions
) -> None:
    settings, queue = {"StartAttempts": {"max_retries": 3.0}}, {"StartAttempts": override, "PrepareAttempts": {}}
    assert resolve_options(lifecycle.START, settings, queue) == expected


def _row(phase: str = "p", outcome: Outcome = Outcome.NEED_RETRY, code: str = "", at: float = 1.0) -> HistoryRow:
    kind, name, pending = EntityKind.ATTEMPT, attempt_id("j", 1), A.PENDING
    return HistoryRow(kind, name, 0, phase, pending, pending, outcome, at, at, error_code=code, message=f"at {at}")


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (_row(at=2.0), True),
        (_row(outcome=Outcome.SKIPPED), False),
        (_row(code="other"), False),
        (_row(phase="q"), False),
        (evolve(_row(), to_status=A.SCHEDULED), False),
    ],
)
def test_equal_steps_merge_and_different_ones_do_not(second: HistoryRow, expected: bool) -> None:  # noqa: FBT001 - a table column
    assert (merge_row(_row(), second).attempts == 2) is expected


def test_a_merged_row_keeps_the_first_message_and_moves_its_update_time() -> None:
    merged = merge_row(_row(at=1.0), _row(at=2.0))
    assert (merged.attempts, merged.message, merged.created_at, merged.updated_at) == (2, "at 1.0", 1.0, 2.0)


def test_a_skip_for_the_same_reason_is_nothing_new_and_another_reason_is_told() -> None:
    first = _row(outcome=Outcome.SKIPPED, at=1.0)
    assert merge_row(first, evolve(_row(outcome=Outcome.SKIPPED, at=2.0), message=first.message)) is first
    told = merge_row(first, _row(outcome=Outcome.SKIPPED, at=2.0))
    assert (told.seq, told.attempts, told.message, told.created_at, told.updated_at) == (0, 2, "at 2.0", 1.0, 2.0)


def test_five_failures_are_one_row_and_the_sixth_gives_up() -> None:
    last: HistoryRow | None = None
    attempt = Attempt("j", 1)
    outcomes = []
    for at in range(6):
        outcome = judge_failure(attempt.tries, HandlerOptions(None, 5), since=0.0, now=float(at))
        outcomes.append(outcome)
        attempt = after_step(attempt, outcome, None, float(at))
        if outcome is Outcome.NEED_RETRY:
            last = merge_row(last, _row(at=float(at)))
    assert outcomes == [Outcome.NEED_RETRY] * 5 + [Outcome.GIVE_UP]
    assert last is not None
    assert last.attempts == 5


def test_a_skip_neither_counts_as_a_try_nor_resets_any_and_a_change_of_status_does() -> None:
    failed = after_step(Attempt("j", 1), Outcome.NEED_RETRY, None, 1.0)
    assert after_step(failed, Outcome.SKIPPED, None, 2.0).tries == 1
    assert after_step(failed, Outcome.SUCCESS, A.RUNNING, 3.0).tries == 0
