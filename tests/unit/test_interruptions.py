"""Jobs that are stopped though they did nothing wrong: how long they have, and that it costs them nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.audit import Act
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure, RunOutcome
from holdfast.domain.job import Attempt, JobState, Resources
from holdfast.domain.lifecycle import AttemptStatus, Ending, Interruption
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action
from holdfast.domain.workloads.gang.endings import interrupted
from holdfast.domain.workloads.gang.flight import KILL_ALLOWANCE_S
from holdfast.domain.workloads.watching import EarlyWarning
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.exchange import ExchangeRequest
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from holdfast.service.steering.control import Control
from holdfast.service.steering.jobs import JOBS
from tests.unit.conftest import exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.domain.workloads.spec import JobSpec
    from tests.unit.conftest import Lab

SAVED = 85
ENDLESS = SimulatedRun(0.0, None)
SAVING = SimulatedRun(0.0, None, saves_s=3.0)


def warned(**fields: object) -> JobSpec:
    fields = {"warning": EarlyWarning(20.0), "checkpointed_exit_code": SAVED, "grace_s": 5.0, **fields}
    return job_named("train", retrying(2), **fields)


def test_a_job_that_is_held_as_it_runs_saves_is_held_and_goes_on_when_released_at_no_cost(lab: Lab) -> None:
    job = lab.submit(warned(), lambda order: SAVING if order.attempt == 1 else exits(0))
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job, "the machine is needed")
    lab.pass_s(2)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.RUNNING, "the machine is needed")
    assert lab.attempts(job)[0].status is AttemptStatus.TERMINATING
    lab.pass_s(3)
    held = lab.job(job)
    assert (held.state, held.reason, held.retries) == (JobState.HELD, "the machine is needed", 0)
    (first,), (run,) = lab.attempts(job), lab.runs(job)
    assert (first.ending, first.decision, run.interrupted) == (Ending.CANCELLED, None, Interruption.HOLD)
    assert first.failure is not None
    assert (first.failure.cause, first.failure.ended_by) == (Cause.USER_CANCELLED, EndedBy.SUSPENSION)
    assert run.outcome is not None
    assert (run.outcome.containers[0].exit_code, run.outcome.warned_at) == (SAVED, lab.clock.now() - 5)
    told = " ".join(Explainer(lab.store).why(job).summary)
    assert "stopped because a user held the job: the machine is needed. That used no retry." in told
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.SUCCEEDED, 2)


def test_who_does_not_heed_the_warning_has_all_of_its_time_and_then_its_grace(lab: Lab) -> None:
    job = lab.submit(warned(), SimulatedRun(0.0, None, term_delay_s=3.0))
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(22)
    assert lab.job(job).state is JobState.RUNNING
    lab.pass_s(2)
    assert lab.job(job).state is JobState.HELD


@pytest.mark.parametrize("lease_s", [None, 60.0])
def test_a_stop_that_nobody_confirms_is_given_up_once_lease_warning_and_grace_are_over(
    make_lab: type[Lab], lease_s: float | None
) -> None:
    lab, spec = make_lab(lease_s=lease_s), warned(warning=EarlyWarning(300.0))
    job = lab.submit(spec, ENDLESS)
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job)
    lab.step()
    began, seen = lab.clock.now(), lab.engine.observe()
    while lab.job(job).state is JobState.RUNNING and lab.clock.now() < began + 1000.0:
        lab.clock.time += 1.0
        lab.controller.tick([ExchangeRequest("local", 1, lab.engine.nodes(), seen, lab.clock.now(), "memory 1")])
    allowed_s = 300.0 + (lease_s or 0.0) + spec.grace_s + KILL_ALLOWANCE_S
    assert (lab.job(job).state, lab.clock.now() - began) == (JobState.HELD, allowed_s + 1.0)


@pytest.mark.parametrize("why", [Interruption.HOLD, Interruption.RELEASE, Interruption.DRAIN])
def test_an_interrupted_attempt_says_where_when_and_after_how_long_its_first_run_was_stopped(why: Interruption) -> None:
    def stopped(rank: int, ended_by: EndedBy, ended_at: float, **more: object) -> tuple[int, RunOutcome]:
        given = {"containers": (ContainerResult(rank),), "node": f"n{rank}", "executor": f"e{rank}", **more}
        return rank, RunOutcome(ended_by=ended_by, started_at=10.0, ended_at=ended_at, **given)  # type: ignore[arg-type] # by name

    ended = [
        stopped(0, EndedBy.CASCADE, 12.0),
        stopped(1, EndedBy.DRAIN, 16.0),
        stopped(2, EndedBy.SUSPENSION, 15.0),
        stopped(3, EndedBy.SUSPENSION, 15.0),
    ]
    is_drained = why is Interruption.DRAIN
    told = interrupted(Attempt("job", 3), ended, why, "maintenance", 20.0)
    assert told.failure == Failure(
        Cause.AGENT_TRANSIENT if is_drained else Cause.USER_CANCELLED,
        frozenset({"Evicted"} if is_drained else ()),
        (ContainerResult(2),),
        rank=2,
        node="n2",
        executor="e2",
        started=True,
        ran_s=5.0,
        failed_at=20.0,
        message="maintenance",
        ended_by=EndedBy.DRAIN if is_drained else EndedBy.SUSPENSION,
    )
    assert told.ending is (Ending.FAILED if is_drained else Ending.CANCELLED)
    assert (told.retry_at, told.decision is None) == ((20.0, False) if is_drained else (None, True))


def test_a_controller_that_dies_in_the_middle_of_a_warning_gives_no_second_one_and_knows_what_follows(lab: Lab) -> None:
    job = lab.submit(warned(), ENDLESS)
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job, "maintenance")
    lab.pass_s(12)
    lab.restart_controller()
    lab.restart_executor()
    lab.pass_s(7)
    assert lab.job(job).state is JobState.RUNNING
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.HELD, "maintenance")
    assert len(lab.orders) == 1


def test_a_job_that_is_released_before_it_has_stopped_is_queued_once_it_has(lab: Lab) -> None:
    job = lab.submit(warned(), lambda order: SAVING if order.attempt == 1 else exits(0))
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(1)
    Control(JOBS, lab.store, lab.clock).ask(Act.RELEASE, job)
    lab.pass_s(8)
    assert (lab.job(job).state, lab.job(job).retries, lab.job(job).attempt) == (JobState.SUCCEEDED, 0, 2)


@pytest.mark.parametrize("kind", [RequestKind.HOLD, RequestKind.RELEASE])
def test_whoever_cancels_waits_for_no_warning_that_a_hold_has_begun(lab: Lab, kind: RequestKind) -> None:
    job = lab.submit(warned(), ENDLESS)
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(2)
    lab.ask(kind, job)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(2)
    assert lab.job(job).state is JobState.CANCELLED


def test_a_program_that_exits_with_0_once_it_is_told_to_stop_has_saved_and_is_not_done(lab: Lab) -> None:
    job = lab.submit(warned(checkpointed_exit_code=0), SAVING)
    lab.pass_s(10)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(5)
    (run,) = lab.runs(job)
    assert run.outcome is not None
    assert run.outcome.containers[0].exit_code == 0
    assert lab.job(job).state is JobState.HELD


def test_a_job_whose_runs_all_ended_well_before_they_were_told_has_succeeded(lab: Lab) -> None:
    job = lab.submit(warned(), exits(0, after_s=10.0))
    lab.pass_s(5)
    lab.ask(RequestKind.HOLD, job)
    lab.tick()
    lab.clock.time += 5.5
    lab.restart_executor()
    lab.engine.observe()
    lab.pass_s(1)
    assert lab.job(job).state is JobState.SUCCEEDED


def test_a_run_that_fails_by_itself_meanwhile_is_a_failure_that_is_held_to_be_looked_at(lab: Lab) -> None:
    fails = exits(3, after_s=11.0)
    job = lab.submit(warned(gang=2), lambda order: fails if order.rank else SimulatedRun(0.0, None, term_delay_s=4.0))
    lab.pass_s(12)
    lab.ask(RequestKind.HOLD, job, "look at it")
    lab.pass_s(20)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.HELD, 0)
    failed = lab.attempts(job)[0]
    assert failed.decision is not None
    assert failed.failure is not None
    assert (failed.decision.action, failed.decision.code) == (Action.HOLD, DecisionCode.INTERRUPTED)
    assert (failed.failure.cause, failed.ending) == (Cause.KERNEL_NONZERO_EXIT, Ending.FAILED)


def test_a_job_without_a_warning_is_stopped_at_once_in_its_grace(lab: Lab) -> None:
    job = lab.submit(job_named("plain", resources=Resources(1000)), ENDLESS)
    lab.pass_s(5)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(1)
    assert lab.job(job).state is JobState.HELD
