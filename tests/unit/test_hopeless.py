"""A job that no node could ever hold fails of that after a while, if the operator says so, and policies decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.controller.controller import ControllerSettings
from holdfast.controller.hopeless import HopelessAfter
from holdfast.domain.failure import Cause
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, Rule
from holdfast.domain.workloads.kubejob.program import Program
from holdfast.domain.workloads.spec import PodProgram
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.service.explain import Explainer
from tests.unit.conftest import Lab, exits, job_named
from tests.unit.test_drains import BY, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

HUGE = Resources(64_000)
POD = PodProgram(Program(command=("true",)), {})
WHY = "needs 64 cpu, the largest node has 4: no node could ever take it"
SMALL, LARGE = NodeInfo("n0", Resources(4000, 8 << 30, 0)), NodeInfo("n1", Resources(64_000, 8 << 30, 0))


def policy(action: Action, limit: int | None = None) -> RetryPolicy:
    rule = Rule(action, "mine", conditions=frozenset({"Unschedulable"}), retry_limit=limit, backoff=Backoff(5.0))
    return RetryPolicy("p", (rule,))


@pytest.fixture
def giving_up() -> Callable[[float | None, float | None], Lab]:
    def lab(usual_s: float | None, of_doors_s: float | None) -> Lab:
        class Patient(Lab):
            settings = ControllerSettings(hopeless=HopelessAfter(usual_s, of_doors_s))

        return Patient()

    return lab


def test_it_waits_forever_where_nobody_says_otherwise_but_at_a_door(
    giving_up: Callable[[float | None, float | None], Lab],
) -> None:
    lab = giving_up(None, 10.0)
    native, pod = lab.submit(job_named("n", resources=HUGE)), lab.submit(job_named("p", resources=HUGE, pod=POD))
    lab.pass_s(9)
    assert [lab.job(job).state for job in (native, pod)] == [JobState.QUEUED] * 2
    lab.pass_s(3)
    assert [lab.job(job).state for job in (native, pod)] == [JobState.QUEUED, JobState.FAILED]
    (attempt,) = lab.attempts(pod)
    assert attempt.failure is not None
    assert (attempt.failure.cause, attempt.failure.message) == (Cause.SCHEDULER_TIMEOUT, WHY)
    assert (attempt.failure.conditions, attempt.failure.started) == (frozenset({"Unschedulable"}), False)
    assert (attempt.failure.category, attempt.failure.subcategory) == ("internal", "job-rejected")
    assert WHY in " ".join(Explainer(lab.store).why(pod, 1).summary)
    lab.pass_s(10_000, every_s=100.0)
    assert (lab.job(native).state, lab.job(native).reason) == (JobState.QUEUED, WHY)


@pytest.mark.parametrize(
    ("action", "state", "attempts"),
    [(Action.FAIL, JobState.FAILED, 1), (Action.HOLD, JobState.HELD, 1), (Action.RETRY, JobState.FAILED, 3)],
)
def test_a_rule_that_names_unschedulable_decides(
    giving_up: Callable[[float | None, float | None], Lab], action: Action, state: JobState, attempts: int
) -> None:
    lab = giving_up(10.0, 10.0)
    job = lab.submit(job_named("n", policy(action, 2 if action is Action.RETRY else None), resources=HUGE))
    lab.pass_s(100)
    assert (lab.job(job).state, len(lab.attempts(job))) == (state, attempts)


def test_each_try_has_its_whole_time_and_a_node_that_comes_meanwhile_takes_it(
    giving_up: Callable[[float | None, float | None], Lab],
) -> None:
    lab = giving_up(10.0, 10.0)
    job = lab.submit(job_named("n", policy(Action.RETRY), resources=HUGE), exits(0))
    lab.pass_s(11 + 5 + 7)
    assert (lab.job(job).state, len(lab.attempts(job))) == (JobState.QUEUED, 1)
    lab.use(SMALL, LARGE)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.SUCCEEDED


def test_one_that_comes_later_has_its_own_time(giving_up: Callable[[float | None, float | None], Lab]) -> None:
    lab = giving_up(10.0, 10.0)
    first = lab.submit(job_named("first", resources=HUGE))
    lab.pass_s(8)
    second = lab.submit(job_named("second", resources=HUGE))
    lab.pass_s(6)
    assert [lab.job(job).state for job in (first, second)] == [JobState.FAILED, JobState.QUEUED]
    lab.pass_s(6)
    assert lab.job(second).state is JobState.FAILED


def test_what_others_have_or_will_not_give_now_is_no_reason(
    giving_up: Callable[[float | None, float | None], Lab],
) -> None:
    lab = giving_up(10.0, 10.0)
    lab.submit(job_named("has", resources=Resources(4000)), SimulatedRun(0.0, None))
    lab.pass_s(2)
    job = lab.submit(job_named("waits", resources=Resources(4000)), exits(0))
    lab.pass_s(60)
    assert lab.job(job).state is JobState.QUEUED
    nodes(lab).cordon(BY, "n0", "a new kernel", drain=True)
    lab.pass_s(60)
    assert lab.job(job).state is JobState.QUEUED


def test_where_no_node_was_reported_nothing_is_known(
    giving_up: Callable[[float | None, float | None], Lab],
) -> None:
    lab = giving_up(10.0, 10.0)
    job = lab.submit(job_named("waits", resources=HUGE))
    for _ in range(60):
        lab.clock.time += 1.0
        lab.tick()
    assert lab.job(job).state is JobState.QUEUED


def test_of_many_alike_all_fail_at_once(giving_up: Callable[[float | None, float | None], Lab]) -> None:
    lab = giving_up(10.0, 10.0)
    jobs = [lab.submit(job_named(f"n{number}", resources=HUGE)) for number in range(30)]
    lab.pass_s(5)
    later = lab.submit(job_named("later", resources=HUGE))
    lab.pass_s(7)
    assert {lab.job(job).state for job in jobs} == {JobState.FAILED}
    assert lab.job(later).state is JobState.QUEUED
