"""What is told or asked again, too late or too early, changes nothing, or what it should at once."""

from __future__ import annotations

from itertools import count

import pytest

from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import Observation, RunPhase
from holdfast.ports.exchange import ExchangeRequest
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying

FOREVER = SimulatedRun(duration_s=None)
STUBBORN = SimulatedRun(duration_s=None, term_delay_s=40.0)
_lives = count(1)


def tell(lab: Lab, *seen: Observation) -> None:
    """Have a new life of the executor tell of runs, in copies, as over a network."""
    observed = {each.uid: evolve(each) for each in seen}
    life = lab.clock.now() + next(_lives)
    lab.controller.tick([ExchangeRequest("local", 1, lab.engine.nodes(), observed, incarnation=life)])


def test_a_run_that_has_ended_is_not_ended_again_by_who_tells_it_again(lab: Lab) -> None:
    job = lab.submit(job_named("gang", gang=2), lambda order: exits(0, after_s=50.0 if order.rank else 1.0))
    lab.pass_s(0.5)
    lab.clock.time += 1.0
    ended = lab.engine.observe()[f"{job}-1-0-1"]
    lab.pass_s(5)
    before = lab.runs(job)
    assert [run.status for run in before] == [RunStatus.TERMINATED, RunStatus.RUNNING]
    tell(lab, ended, lab.engine.observe()[f"{job}-1-1-1"])
    assert (lab.runs(job), lab.store.quarantined()) == (before, {})


def test_what_is_told_of_an_earlier_attempt_or_of_a_run_that_nobody_knows_changes_nothing(lab: Lab) -> None:
    job = lab.submit(
        job_named("job", retrying(5)), lambda order: exits(3, after_s=1.0) if order.attempt == 1 else FOREVER
    )
    lab.pass_s(20)
    before = lab.job(job), lab.attempts(job), lab.runs(job)
    assert [(attempt.number, attempt.status) for attempt in before[1]][-1] == (2, AttemptStatus.RUNNING)
    running, over = lab.engine.observe()[f"{job}-2-0-1"], exits(0).outcome
    stale, unknown = (Observation(uid, RunPhase.FINISHED, outcome=over) for uid in (f"{job}-1-0-1", f"{job}-9-0-1"))
    for _ in range(2):
        lab.clock.time += 0.1
        tell(lab, stale, unknown, running)
    assert (lab.job(job), lab.attempts(job), lab.runs(job)) == before
    assert lab.store.quarantined() == {}


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize(
    ("plan", "state"),
    [
        pytest.param(FOREVER, JobState.CANCELLED, id="cancelled"),
        pytest.param(exits(0), JobState.SUCCEEDED, id="succeeded"),
        pytest.param(exits(1), JobState.FAILED, id="failed"),
    ],
)
def test_a_late_report_about_a_job_that_has_ended_changes_nothing(
    lab: Lab, plan: SimulatedRun, state: JobState, code: int
) -> None:
    job = lab.submit(job_named("job", retrying(0 if state is JobState.FAILED else 5)), plan)
    lab.pass_s(2)
    if state is JobState.CANCELLED:
        lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(5)
    before = lab.job(job), lab.attempts(job), lab.runs(job)
    assert before[0].state is state
    tell(lab, Observation(f"{job}-1-0-1", RunPhase.FINISHED, outcome=exits(code).outcome))
    lab.pass_s(5)
    assert (lab.job(job), lab.attempts(job), lab.runs(job)) == before
    assert len(lab.orders) == 1


def test_a_run_that_is_to_stop_is_still_to_stop_when_it_is_told_that_it_runs(lab: Lab) -> None:
    job = lab.submit(job_named("long", grace_s=60.0), STUBBORN)
    lab.pass_s(3)
    running = next(iter(lab.engine.observe().values()))
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(1)
    before = lab.runs(job)
    assert [run.status for run in before] == [RunStatus.TERMINATING]
    lab.clock.time += 1.0
    tell(lab, evolve(running, started_at=lab.clock.now()))
    assert lab.runs(job) == before, "and since when it is to stop is not forgotten"


def test_a_run_that_is_stopped_before_its_executor_heard_of_it_keeps_nobody_waiting(lab: Lab) -> None:
    job = lab.submit(job_named("job"), STUBBORN)
    lab.step()
    lab.tick()
    lab.restart_executor()
    lab.use(*lab.engine.nodes())
    lab.ask(RequestKind.CANCEL, job)
    lab.tick()
    lab.pass_s(2)
    assert lab.job(job).state is JobState.CANCELLED


@pytest.mark.parametrize("told", [None, "n7"])
def test_a_run_ended_on_the_node_that_its_engine_names_or_else_where_it_was_placed(lab: Lab, told: str | None) -> None:
    job = lab.submit(job_named("job"), exits(1, after_s=3.0))
    lab.pass_s(1)
    lab.clock.time += 5.0
    [ended] = lab.engine.observe().values()
    assert ended.outcome is not None
    placed = lab.runs(job)[0].node
    tell(lab, evolve(ended, outcome=evolve(ended.outcome, node=told)))
    [run] = lab.runs(job)
    assert run.outcome is not None
    assert (run.node, run.outcome.node) == (told or placed,) * 2
