"""A flight reaches every cell of the tables: each handler, each status it works on, each outcome."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Never

import pytest

from holdfast.domain.job import Attempt, Job, JobState, Run
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    DETECT_FAILURE,
    GANG_PROMOTIONS,
    HANDLERS,
    RUN_TERMINAL,
    START,
    TERMINATE,
    AttemptHandler,
    AttemptPromotion,
    AttemptStatus,
    EntityKind,
    Lifecycle,
    Match,
    Outcome,
    RunStatus,
    Step,
    TransitionStatus,
)
from holdfast.domain.lifecycle.engine import HandlerOptions, Report, advance
from holdfast.domain.lifecycle.table import JUDGED
from holdfast.domain.workloads.gang.flight import AttemptContext, Flight
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

ENTERED, NOW = 100.0, 200.0
PATIENT, HASTY = HandlerOptions(timeout_s=1000.0, max_retries=5), HandlerOptions(timeout_s=50.0, max_retries=5)
LIVE_RUN = {
    AttemptStatus.PENDING: RunStatus.PENDING,
    AttemptStatus.SCHEDULED: RunStatus.SCHEDULED,
    AttemptStatus.PREPARING: RunStatus.SCHEDULED,
    AttemptStatus.PREPARED: RunStatus.PREPARED,
    AttemptStatus.TERMINATING: RunStatus.RUNNING,
}


class Scripted(Flight):
    """An attempt whose phases say what they are told to say, and that has as much patience with each."""

    says = "success"
    patience = PATIENT
    row: AttemptHandler | None = None

    def work(self, row: AttemptHandler, now: float) -> Report:
        del now
        if row is not self.row:
            return Report(Outcome.SKIPPED)
        match self.says:
            case "success":
                return Report(Outcome.SUCCESS)
            case "failure":
                return Report(Outcome.FAILURE, "E1", "it failed")
            case "skipped":
                return Report(Outcome.SKIPPED, message="it waits")
            case _:
                raise RuntimeError(self.says)

    def options(self, row: AttemptHandler | AttemptPromotion) -> HandlerOptions:
        return self.patience if row in HANDLERS else super().options(row)


def never(*about: object) -> Never:
    raise AssertionError(about)


AROUND = AttemptContext(alive=bool, engines={}, judging=never)


def standing(status: AttemptStatus, runs: Sequence[RunStatus], *, tries: int = 0) -> Scripted:
    """Make an attempt with two runs, in any status."""
    spec = JobSpec(name="j", command=("true",), gang=2)
    job = Job("j", "j", "default", 0, 0.0, "", gang=2, state=JobState.RUNNING, attempt=1)
    attempt = Attempt("j", 1, status, ENTERED, tries=tries, dispatch=1)
    placed = [Run(f"j-1-{rank}-1", "j", 1, rank, run, ENTERED) for rank, run in enumerate(runs)]
    return Scripted(spec, job, attempt, {run.uid: run for run in placed}, AROUND)


def worked(row: AttemptHandler, status: AttemptStatus, says: str, options: HandlerOptions, tries: int = 0) -> Scripted:
    """Let a phase of an attempt say something."""
    flight = standing(status, [LIVE_RUN[status]] * 2, tries=tries)
    flight.row, flight.says, flight.patience = row, says, options
    advance(Lifecycle(EntityKind.ATTEMPT, JUDGED, (row,)), flight, NOW)
    return flight


def first_step(flight: Scripted) -> tuple[str, Outcome]:
    step = flight.over or flight.back or flight.orders.steps[0][0]
    return step.phase, step.outcome


CELLS = [(row, status, outcome) for row in HANDLERS for status, outcome in product(sorted(row.targets), sorted(JUDGED))]
SAYS = {Outcome.SUCCESS: "success", Outcome.SKIPPED: "skipped"}


@pytest.mark.parametrize(
    ("row", "status", "outcome"), CELLS, ids=[f"{row.name}-{status}-{outcome}" for row, status, outcome in CELLS]
)
def test_every_cell_of_the_handler_table_is_reached(
    row: AttemptHandler, status: AttemptStatus, outcome: Outcome
) -> None:
    options = HASTY if outcome is Outcome.EXPIRED else PATIENT
    flight = worked(row, status, SAYS.get(outcome, "failure"), options, tries=5 if outcome is Outcome.GIVE_UP else 1)
    target = row.transitions.get(outcome, TransitionStatus())
    expected = target.status or status
    assert first_step(flight) == (row.name, outcome)
    assert (flight.over is not None) is (expected in ATTEMPT_TERMINAL)
    assert (flight.back is not None) is (target.status is AttemptStatus.PENDING)
    if target.children not in {None, RunStatus.PENDING}:
        assert {run.status for run in flight.orders.put.values()} == {target.children}
    if flight.back is not None:
        flight.put_back(NOW)
    if flight.over is None:
        assert flight.attempt.status is expected
    if target.status is None or (target.status is status and flight.back is None):
        counts = {Outcome.NEED_RETRY: 2, Outcome.SKIPPED: 1, Outcome.SUCCESS: 1}
        assert (flight.attempt.tries, flight.attempt.status_since) == (counts[outcome], ENTERED)
    elif flight.over is None:
        assert (flight.attempt.tries, flight.attempt.status_since) == (0, NOW)


def test_the_table_has_a_cell_for_every_handler_and_outcome() -> None:
    assert {(row.name, outcome) for row, _, outcome in CELLS} == {(row.name, o) for row in HANDLERS for o in JUDGED}


@pytest.mark.parametrize("row", HANDLERS, ids=lambda row: row.name)
def test_a_skip_expires_by_time_alone(row: AttemptHandler) -> None:
    assert first_step(worked(row, min(row.targets), "skipped", HASTY))[1] is Outcome.EXPIRED


def _fulfilling(row: AttemptPromotion) -> list[RunStatus]:
    """Return statuses of two runs that fulfil a promotion, and no other."""
    inside, outside = max(row.check), min(set(RunStatus) - row.check - DETECT_FAILURE.check)
    return {Match.ALL: [inside, inside], Match.ANY: [inside, outside], Match.NOT_ANY: [outside, outside]}[row.match]


PROMOTED = [(row, status) for row in GANG_PROMOTIONS for status in sorted(row.targets)]


@pytest.mark.parametrize(("row", "status"), PROMOTED, ids=[f"{row.name}-{status}" for row, status in PROMOTED])
def test_every_promotion_is_reached(row: AttemptPromotion, status: AttemptStatus) -> None:
    flight = standing(status, _fulfilling(row))
    flight.advance(NOW)
    if row.success in ATTEMPT_TERMINAL:
        assert flight.over == Step(row.name, Outcome.SUCCESS, NOW)
    else:
        step, attempt = flight.orders.steps[0]
        assert (step, attempt.status) == (Step(row.name, Outcome.SUCCESS, NOW), row.success)


@pytest.mark.parametrize("row", [row for row in GANG_PROMOTIONS if row.expired], ids=lambda row: row.name)
def test_a_promotion_that_never_comes_expires(row: AttemptPromotion) -> None:
    flight = standing(min(row.targets), [min(row.check)] * 2)
    assert row.timeout_s is not None
    flight.advance(ENTERED + row.timeout_s + 1)
    assert flight.orders.steps[0][1].status is row.expired


def test_a_phase_that_raises_has_failed_for_its_attempt_only() -> None:
    broken = worked(START, AttemptStatus.PREPARED, "boom", PATIENT)
    fine = worked(START, AttemptStatus.PREPARED, "success", PATIENT)
    ((step, _),) = broken.orders.steps
    assert (step.outcome, step.code, step.message) == (Outcome.NEED_RETRY, "RuntimeError", "boom")
    assert isinstance(broken.raised, RuntimeError)
    assert fine.attempt.status is AttemptStatus.CREATING


def test_a_terminal_run_is_never_moved_by_a_transition() -> None:
    flight = standing(AttemptStatus.TERMINATING, [RunStatus.ERROR, RunStatus.RUNNING])
    flight.row, flight.says, flight.patience = TERMINATE, "skipped", HASTY
    flight.advance(NOW)
    assert flight.over is not None
    assert [*flight.orders.put] == ["j-1-1-1"]
    assert {run.status for run in flight.runs.values()} <= RUN_TERMINAL
