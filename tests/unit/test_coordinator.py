"""The coordinator reaches every cell of the tables: each handler, each status it works on, each outcome."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.state import ControllerState
from holdfast.controller.workloads.gang_attempts import AttemptCoordinator
from holdfast.domain.job import Attempt, Job, JobState, Run
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    DETECT_FAILURE,
    GANG_PROMOTIONS,
    HANDLERS,
    RUN_TERMINAL,
    AttemptHandler,
    AttemptPromotion,
    AttemptStatus,
    Match,
    Outcome,
    RunStatus,
)
from holdfast.domain.lifecycle.judge import HandlerOptions, HandlerResult
from holdfast.domain.lifecycle.table import JUDGED
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.active import Active
    from holdfast.domain.lifecycle import Step

ENTERED, NOW = 100.0, 200.0
PATIENT, HASTY = HandlerOptions(timeout_s=1000.0, max_retries=5), HandlerOptions(timeout_s=50.0, max_retries=5)
LIVE_RUN = {
    AttemptStatus.PENDING: RunStatus.PENDING,
    AttemptStatus.SCHEDULED: RunStatus.SCHEDULED,
    AttemptStatus.PREPARING: RunStatus.SCHEDULED,
    AttemptStatus.PREPARED: RunStatus.PREPARED,
    AttemptStatus.TERMINATING: RunStatus.RUNNING,
}


class Scripted:
    """A handler that says what it is told to say."""

    def __init__(self, row: AttemptHandler, says: str) -> None:
        self.row = row
        self.says = says

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        del now
        names = tuple(active.attempt.job_id for active in targets)
        match self.says:
            case "success":
                return HandlerResult(successes=names)
            case "failure":
                return HandlerResult(failures=dict.fromkeys(names, ("E1", "it failed")))
            case "skipped":
                return HandlerResult(skipped=dict.fromkeys(names, "it waits"))
            case _:
                raise RuntimeError(self.says)


class Patient(AttemptCoordinator):
    """One that is as patient with every handler, and with promotions as their table says."""

    patience = PATIENT

    def options(self, row: AttemptHandler | AttemptPromotion, entity: Active) -> HandlerOptions:
        return self.patience if row in HANDLERS else super().options(row, entity)


class Stage:
    """One attempt with two runs, in any status."""

    def __init__(self, status: AttemptStatus, runs: Sequence[RunStatus], *, tries: int = 0) -> None:
        self.state = ControllerState(load_spec)
        self.concluded: list[str] = []
        spec = JobSpec(name="j", command=("true",), gang=2)
        job = Job("j", "j", "default", 0, 0.0, dump_spec(spec), gang=2, state=JobState.RUNNING, attempt=1)
        attempt = Attempt("j", 1, status, ENTERED, tries=tries, dispatch=1)
        placed = [Run(f"j-1-{rank}-1", "j", 1, rank, run, ENTERED) for rank, run in enumerate(runs)]
        self.active = self.state.open(job, attempt, placed)

    def coordinator(self, options: HandlerOptions) -> AttemptCoordinator:
        made = Patient(self.state, over=self._over, requeue=self._requeue)
        made.patience = options
        return made

    def _over(self, active: Active, step: Step) -> None:
        self.concluded.append(active.attempt.job_id)
        waited = active.attempt.status is AttemptStatus.PENDING
        ended = active.attempt.entered(AttemptStatus.CANCELLED if waited else AttemptStatus.TERMINATED, step.now)
        self.state.step(active, step, ended)
        self.state.put_job(evolve(active.job, state=JobState.SUCCEEDED))

    def _requeue(self, active: Active, step: Step) -> None:
        now = step.now
        for run in list(active.runs.values()):
            self.state.put_run(active, run.entered(RunStatus.CANCELLED, now))
        self.state.withdraw(active, step, active.attempt.entered(AttemptStatus.PENDING, now))

    @property
    def attempt(self) -> Attempt:
        return self.state.changes.attempts.get(("j", 1), self.active.attempt)

    def last_step(self) -> tuple[str, Outcome, AttemptStatus, AttemptStatus]:
        row = self.state.changes.history[max(self.state.changes.history)]
        return row.phase, row.outcome, AttemptStatus(row.from_status), AttemptStatus(row.to_status)


CELLS = [(row, status, outcome) for row in HANDLERS for status, outcome in product(sorted(row.targets), sorted(JUDGED))]
SAYS = {Outcome.SUCCESS: "success", Outcome.SKIPPED: "skipped"}


@pytest.mark.parametrize(
    ("row", "status", "outcome"), CELLS, ids=[f"{row.name}-{status}-{outcome}" for row, status, outcome in CELLS]
)
def test_every_cell_of_the_handler_table_is_reached(
    row: AttemptHandler, status: AttemptStatus, outcome: Outcome
) -> None:
    stage = Stage(status, [LIVE_RUN[status]] * 2, tries=5 if outcome is Outcome.GIVE_UP else 1)
    options = HASTY if outcome is Outcome.EXPIRED else PATIENT
    stage.coordinator(options).run(Scripted(row, SAYS.get(outcome, "failure")), [stage.active], NOW)
    target = row.transitions.get(outcome)
    expected = target.status if target is not None and target.status is not None else status
    assert stage.attempt.status is expected
    assert stage.last_step() == (row.name, outcome, status, expected)
    assert bool(stage.concluded) is (expected in ATTEMPT_TERMINAL)
    if target is not None and target.children not in {None, RunStatus.PENDING}:
        assert {run.status for run in stage.state.changes.runs.values()} == {target.children}
    if expected is status:
        counts = {Outcome.NEED_RETRY: 2, Outcome.SKIPPED: 1, Outcome.SUCCESS: 1}
        assert (stage.attempt.tries, stage.attempt.status_since) == (counts[outcome], ENTERED)
    elif expected not in ATTEMPT_TERMINAL:
        assert (stage.attempt.tries, stage.attempt.status_since) == (0, NOW)


def test_the_table_has_a_cell_for_every_handler_and_outcome() -> None:
    assert {(row.name, outcome) for row, _, outcome in CELLS} == {(row.name, o) for row in HANDLERS for o in JUDGED}


@pytest.mark.parametrize("row", HANDLERS, ids=lambda row: row.name)
def test_a_skip_expires_by_time_alone(row: AttemptHandler) -> None:
    status = min(row.targets)
    stage = Stage(status, [LIVE_RUN[status]] * 2)
    stage.coordinator(HASTY).run(Scripted(row, "skipped"), [stage.active], NOW)
    assert stage.last_step()[1] is Outcome.EXPIRED


def _fulfilling(row: AttemptPromotion) -> list[RunStatus]:
    """Return statuses of two runs that fulfil a promotion, and no other."""
    inside, outside = max(row.check), min(set(RunStatus) - row.check - DETECT_FAILURE.check)
    return {Match.ALL: [inside, inside], Match.ANY: [inside, outside], Match.NOT_ANY: [outside, outside]}[row.match]


PROMOTED = [(row, status) for row in GANG_PROMOTIONS for status in sorted(row.targets)]


@pytest.mark.parametrize(("row", "status"), PROMOTED, ids=[f"{row.name}-{status}" for row, status in PROMOTED])
def test_every_promotion_is_reached(row: AttemptPromotion, status: AttemptStatus) -> None:
    stage = Stage(status, _fulfilling(row))
    stage.coordinator(PATIENT).promote(stage.active, NOW)
    assert stage.attempt.status is row.success
    assert stage.last_step() == (row.name, Outcome.SUCCESS, status, row.success)


@pytest.mark.parametrize("row", [row for row in GANG_PROMOTIONS if row.expired], ids=lambda row: row.name)
def test_a_promotion_that_never_comes_expires(row: AttemptPromotion) -> None:
    status = min(row.targets)
    stage = Stage(status, [min(row.check)] * 2)
    assert row.timeout_s is not None
    stage.coordinator(PATIENT).promote(stage.active, ENTERED + row.timeout_s + 1)
    assert stage.attempt.status is row.expired


def test_a_handler_that_raises_has_failed_for_its_targets_only() -> None:
    broken, fine = (Stage(AttemptStatus.PREPARED, [RunStatus.PREPARED] * 2) for _ in range(2))
    row = next(row for row in HANDLERS if row.name == "StartAttempts")
    broken.coordinator(PATIENT).run(Scripted(row, "boom"), [broken.active], NOW)
    fine.coordinator(PATIENT).run(Scripted(row, "success"), [fine.active], NOW)
    history = broken.state.changes.history[max(broken.state.changes.history)]
    assert (history.outcome, history.error_code, history.message) == (Outcome.NEED_RETRY, "RuntimeError", "boom")
    assert fine.attempt.status is AttemptStatus.CREATING


def test_a_terminal_run_is_never_moved_by_a_transition() -> None:
    stage = Stage(AttemptStatus.TERMINATING, [RunStatus.ERROR, RunStatus.RUNNING])
    row = next(row for row in HANDLERS if row.name == "TerminateAttempts")
    stage.coordinator(HASTY).run(Scripted(row, "skipped"), [stage.active], NOW)
    assert stage.active.attempt.status is AttemptStatus.TERMINATED
    assert "j-1-0-1" not in stage.state.runs_changed
    assert {run.status for run in stage.state.changes.runs.values()} <= RUN_TERMINAL
