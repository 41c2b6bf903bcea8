"""The table of what executors' reports do to a run, each cell by a real report."""

from __future__ import annotations

import pytest

from holdfast.controller.active import Active
from holdfast.controller.observations import Observations
from holdfast.controller.reconcile import Quarantine
from holdfast.controller.state import ControllerState
from holdfast.domain.evidence import NO_PATTERNS
from holdfast.domain.failure import ContainerResult, EndedBy, RunOutcome
from holdfast.domain.job import Attempt, Job, Run
from holdfast.domain.lifecycle import (
    RUN_ACTIVE,
    RUN_ENDED,
    RUN_FAILED,
    RUN_NEVER_STARTED,
    RUN_PREPARED,
    RUN_PULLING,
    RUN_STARTED,
    RUN_TERMINAL,
    RUNS,
    RequestRow,
    RunStatus,
)
from holdfast.ports.engine import Observation, RunPhase
from holdfast.ports.exchange import ExchangeRequest
from tests.unit.conftest import job_named

UID = "j-1-0-1"
ENDED = (ContainerResult(0),)
REPORTS = [
    (RUN_PULLING, Observation(UID, RunPhase.PULLING)),
    (RUN_PREPARED, Observation(UID, RunPhase.PREPARED)),
    (RUN_STARTED, Observation(UID, RunPhase.RUNNING, 5.0)),
    (RUN_ENDED, Observation(UID, RunPhase.FINISHED, outcome=RunOutcome(ENDED))),
    (RUN_ENDED, Observation(UID, RunPhase.FINISHED, outcome=RunOutcome(ENDED, ended_by=EndedBy.USER))),
    (
        RUN_NEVER_STARTED,
        Observation(UID, RunPhase.FINISHED, outcome=RunOutcome(ended_by=EndedBy.CASCADE, started=False)),
    ),
    (RUN_FAILED, Observation(UID, RunPhase.FINISHED, outcome=RunOutcome((ContainerResult(3),)))),
    (RUN_FAILED, Observation(UID, RunPhase.FINISHED, outcome=RunOutcome(ended_by=EndedBy.DRAIN, started=False))),
]


def reported(status: RunStatus, observation: Observation) -> RunStatus:
    """Return the status of a run after a report."""
    spec = job_named("j")
    state = ControllerState(lambda _: spec)
    job, run = Job("j", "j", "default", 0, 0.0, ""), Run(UID, "j", 1, 0, status, executor="local", node="n0")
    state.active["j"] = Active(job, Attempt("j", 1), spec, {UID: run})
    state.owner[UID] = "j"
    observations = Observations(
        state,
        Quarantine(state),
        controller_epoch="",
        lease_s=None,
        steady=lambda: 0.0,
        log_patterns=lambda _: NO_PATTERNS,
    )
    observations.take(ExchangeRequest("local", 1, (), {UID: observation}), 9.0)
    return state.active["j"].runs[UID].status


@pytest.mark.parametrize("status", RunStatus)
@pytest.mark.parametrize(("row", "observation"), REPORTS)
def test_a_report_leads_where_its_row_says_and_a_late_one_nowhere(
    row: RequestRow[RunStatus], observation: Observation, status: RunStatus
) -> None:
    assert reported(status, observation) is row.moves.get(status, status)


def test_no_report_brings_a_run_back_that_is_over_and_every_other_can_end() -> None:
    assert not {status for row in RUNS for status in row.moves} & RUN_TERMINAL
    assert all(row.moves.keys() == RUN_ACTIVE for row in (RUN_ENDED, RUN_NEVER_STARTED, RUN_FAILED))


def test_every_row_is_of_a_report() -> None:
    assert {row.name for row, _ in REPORTS} == {row.name for row in RUNS}


def test_what_was_lost_before_it_was_seen_to_start_may_have_run() -> None:
    run = Run(UID, "j", 1, 0, RunStatus.CREATING, executor="local", node="n0")
    lost = run.ended(run.lost(9.0), 9.0)
    assert lost.status is RunStatus.ERROR
    assert lost.outcome is not None
    assert (lost.outcome.started, lost.outcome.message) == (True, "executor local was lost; the program may have run")
