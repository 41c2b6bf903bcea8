"""The engine's judgements, as tables; cases of BEP-1030 are named by their ids."""

from __future__ import annotations

import pytest

from holdfast.domain import lifecycle
from holdfast.domain.job import Attempt
from holdfast.domain.lifecycle import (
    DETECT_COMPLETION,
    DETECT_FAILURE,
    DETECT_TERMINATION,
    PROMOTE_TO_PREPARED,
    PROMOTE_TO_RUNNING,
    PROMOTE_TO_TERMINATED,
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
    REPORTED,
    HandlerOptions,
    judge_failure,
    judge_waiting,
    promotes,
    resolve_options,
)
from holdfast.domain.lifecycle.history import merge_row
from holdfast.domain.lifecycle.table import JUDGED, Match
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.flight import after as after_step

FIVE = HandlerOptions(timeout_s=900.0, max_retries=5)


@pytest.mark.parametrize(
    ("tries", "options", "elapsed_s", "expected"),
    [
        pytest.param(5, FIVE, 1.0, Outcome.GIVE_UP, id="SC-001"),
        pytest.param(1, FIVE, 960.0, Outcome.EXPIRED, id="SC-002"),
        pytest.param(1, FIVE, 300.0, Outcome.NEED_RETRY, id="SC-003"),
        pytest.param(5, FIVE, 1000.0, Outcome.GIVE_UP, id="late-and-too-often"),
        pytest.param(4, FIVE, 1.0, Outcome.NEED_RETRY, id="last-retry"),
        pytest.param(1, FIVE, 900.0, Outcome.NEED_RETRY, id="just-in-time"),
        pytest.param(999, HandlerOptions(None, None), 7200.0, Outcome.NEED_RETRY, id="SC-006"),
        pytest.param(0, FIVE, 1200.0, Outcome.EXPIRED, id="SC-023"),
        pytest.param(0, HandlerOptions(None, 0), 0.0, Outcome.GIVE_UP, id="no-retries"),
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


OVER = R.TERMINATED
BEP_1030 = [
    pytest.param(lifecycle.SCHEDULE, Outcome.SUCCESS, A.SCHEDULED, R.SCHEDULED, id="SB-001"),
    pytest.param(lifecycle.SCHEDULE, Outcome.NEED_RETRY, None, None, id="SB-002"),
    pytest.param(lifecycle.SCHEDULE, Outcome.EXPIRED, A.CANCELLED, R.CANCELLED, id="SB-003"),
    pytest.param(lifecycle.SCHEDULE, Outcome.GIVE_UP, A.CANCELLED, R.CANCELLED, id="SB-004"),
    pytest.param(lifecycle.PREPARE, Outcome.SUCCESS, A.PREPARING, R.PREPARING, id="prepare-success"),
    pytest.param(lifecycle.PREPARE, Outcome.NEED_RETRY, None, None, id="SB-007"),
    pytest.param(lifecycle.PREPARE, Outcome.EXPIRED, A.PENDING, R.PENDING, id="SB-008"),
    pytest.param(lifecycle.PREPARE, Outcome.GIVE_UP, A.PENDING, R.PENDING, id="SB-009"),
    pytest.param(lifecycle.PREPARE, Outcome.SKIPPED, None, None, id="SB-010"),
    pytest.param(lifecycle.START, Outcome.SUCCESS, A.CREATING, R.CREATING, id="SB-011"),
    pytest.param(lifecycle.START, Outcome.NEED_RETRY, None, None, id="start-need-retry"),
    pytest.param(lifecycle.START, Outcome.EXPIRED, A.PENDING, R.PENDING, id="start-expired"),
    pytest.param(lifecycle.START, Outcome.GIVE_UP, A.PENDING, R.PENDING, id="SB-014"),
    pytest.param(lifecycle.START, Outcome.SKIPPED, None, None, id="SB-015"),
    pytest.param(lifecycle.TERMINATE, Outcome.SUCCESS, A.TERMINATED, R.TERMINATED, id="SB-016"),
    pytest.param(lifecycle.TERMINATE, Outcome.NEED_RETRY, None, None, id="terminate-need-retry"),
    pytest.param(lifecycle.TERMINATE, Outcome.EXPIRED, A.TERMINATED, R.TERMINATED, id="terminate-expired"),
    pytest.param(lifecycle.TERMINATE, Outcome.GIVE_UP, A.TERMINATED, R.TERMINATED, id="SB-019"),
    pytest.param(lifecycle.TERMINATE, Outcome.SKIPPED, None, None, id="SB-020"),
]


@pytest.mark.parametrize(("row", "outcome", "status", "runs"), BEP_1030)
def test_the_handler_table_is_the_documents(
    row: AttemptHandler, outcome: Outcome, status: A | None, runs: R | None
) -> None:
    assert row.transitions.get(outcome, TransitionStatus()) == TransitionStatus(status, runs)


@pytest.mark.parametrize("row", lifecycle.HANDLERS, ids=lambda row: row.name)
def test_the_handler_table_has_only_outcomes_of_its_kind(row: AttemptHandler) -> None:
    assert row.transitions.keys() <= lifecycle.ATTEMPTS.outcomes


def test_a_phase_reports_how_its_work_went_and_no_verdict() -> None:
    """SC-022."""
    assert sorted(REPORTED) == [Outcome.FAILURE, Outcome.SKIPPED, Outcome.SUCCESS]


@pytest.mark.parametrize(
    ("row", "status", "runs", "expected"),
    [
        pytest.param(PROMOTE_TO_PREPARED, A.PREPARING, [R.PREPARED, R.RUNNING], A.PREPARED, id="SP-001"),
        pytest.param(PROMOTE_TO_PREPARED, A.PREPARING, [R.PREPARED, R.PULLING], None, id="SP-002"),
        pytest.param(PROMOTE_TO_PREPARED, A.SCHEDULED, [R.PREPARED, R.PREPARED], A.PREPARED, id="SP-003"),
        pytest.param(PROMOTE_TO_PREPARED, A.PREPARING, [R.RUNNING, OVER], A.PREPARED, id="SP-004"),
        pytest.param(PROMOTE_TO_RUNNING, A.CREATING, [R.RUNNING, OVER], A.RUNNING, id="SP-006"),
        pytest.param(DETECT_TERMINATION, A.RUNNING, [R.RUNNING, OVER], A.TERMINATING, id="SP-006-next"),
        pytest.param(PROMOTE_TO_RUNNING, A.CREATING, [R.RUNNING, R.CREATING], None, id="SP-007"),
        pytest.param(PROMOTE_TO_TERMINATED, A.TERMINATING, [OVER] * 2, A.TERMINATED, id="SP-008"),
        pytest.param(PROMOTE_TO_TERMINATED, A.TERMINATING, [OVER, R.TERMINATING], None, id="SP-009"),
        pytest.param(PROMOTE_TO_TERMINATED, A.TERMINATING, [OVER, R.CANCELLED], A.TERMINATED, id="SP-010"),
        pytest.param(DETECT_TERMINATION, A.RUNNING, [R.RUNNING] * 2 + [OVER], A.TERMINATING, id="SP-011"),
        pytest.param(DETECT_TERMINATION, A.RUNNING, [R.RUNNING, R.RUNNING], None, id="all-run"),
        pytest.param(DETECT_FAILURE, A.RUNNING, [R.RUNNING, OVER], None, id="one-is-done"),
        pytest.param(DETECT_FAILURE, A.RUNNING, [R.RUNNING, R.ERROR], A.TERMINATING, id="one-failed"),
        pytest.param(DETECT_COMPLETION, A.RUNNING, [R.RUNNING, OVER], None, id="not-all-are-done"),
        pytest.param(DETECT_COMPLETION, A.RUNNING, [OVER] * 2, A.TERMINATING, id="all-are-done"),
    ],
)
def test_runs_promote_their_attempt(row: AttemptPromotion, status: A, runs: list[R], expected: A | None) -> None:
    assert status in row.targets
    assert (row.success if promotes(row, runs) else None) is expected


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        pytest.param(Match.ALL, [True, False, False], id="all"),
        pytest.param(Match.ANY, [True, True, False], id="SP-016"),
        pytest.param(Match.NOT_ANY, [False, False, True], id="SP-017"),
    ],
)
def test_a_promotion_counts_the_runs_in_its_statuses(match: Match, expected: list[bool]) -> None:
    row = evolve(DETECT_FAILURE, match=match)
    all_one_none = [[R.ERROR, R.CANCELLED], [R.ERROR, R.RUNNING], [R.RUNNING, R.RUNNING]]
    assert [promotes(row, runs) for runs in all_one_none] == expected


@pytest.mark.parametrize("row", [*lifecycle.PROMOTIONS, *lifecycle.GANG_PROMOTIONS], ids=lambda row: row.name)
@pytest.mark.parametrize("match", list(Match))
def test_an_attempt_without_runs_is_never_promoted(row: AttemptPromotion, match: Match) -> None:
    """SP-014."""
    assert not promotes(evolve(row, match=match), [])


def test_the_first_run_that_ends_ends_a_session() -> None:
    runs = [R.RUNNING, R.TERMINATED]
    ways = [row for row in lifecycle.PROMOTIONS if A.RUNNING in row.targets and promotes(row, runs)]
    assert [row.success for row in ways] == [A.TERMINATING]


def test_every_non_terminal_status_has_a_way_out() -> None:
    """SC-028."""
    ways = {status for row in lifecycle.HANDLERS for status in row.targets if Outcome.EXPIRED in row.transitions}
    ways |= {status for promotion in lifecycle.GANG_PROMOTIONS for status in promotion.targets if promotion.expired}
    running_ends_by_deadline_or_lease = {A.RUNNING}
    assert set(A) - lifecycle.ATTEMPT_TERMINAL == ways | running_ends_by_deadline_or_lease


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ({}, HandlerOptions(600.0, 3)),
        pytest.param({"max_retries": None}, HandlerOptions(600.0, None), id="SC-027"),
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
        pytest.param(_row(at=2.0), True, id="SC-011"),
        pytest.param(_row(outcome=Outcome.SKIPPED), False, id="SC-012"),
        pytest.param(_row(code="other"), False, id="SC-013"),
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
    """SC-008."""
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
    """SC-005 and SC-007."""
    failed = after_step(Attempt("j", 1), Outcome.NEED_RETRY, None, 1.0)
    assert after_step(failed, Outcome.SKIPPED, None, 2.0).tries == 1
    assert after_step(failed, Outcome.SUCCESS, A.RUNNING, 3.0).tries == 0
