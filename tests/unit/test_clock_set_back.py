"""The wall clock is set back over a restart: no delay lasts longer than its whole length from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from tests.unit.conftest import VirtualClock, exits, job_named, retrying
from tests.unit.jobset_lab import FOREVER, SetLab, fails_first
from tests.unit.test_controller_pods import Batch, native

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

HOUR = 3600.0
BACK = pytest.mark.parametrize("back_s", [4.0, HOUR])


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def fails_once(order: RunOrder) -> SimulatedRun:
    return exits(3 if order.attempt == 1 else 0)


def set_back(lab: SetLab, back_s: float) -> None:
    """Set the clock back, and start a server that finds it so."""
    lab.clock.set_by -= back_s
    lab.restart_controller()
    lab.restart_executor()
    lab.step(2)


def soon_after(lab: SetLab, within_s: float) -> None:
    """Let a time pass, and what a program and a few ticks need beside."""
    lab.pass_s(within_s + 8.0)


@BACK
def test_a_retry_is_due_after_its_whole_delay_at_the_latest_and_says_so(lab: SetLab, back_s: float) -> None:
    lab.plan = fails_once
    job = lab.submit(job_named("a", retrying(delay_s=60.0)))
    lab.pass_s(5)
    due = lab.job(job).retry_at
    set_back(lab, back_s)
    now = lab.clock.now()
    told = lab.job(job).retry_at
    assert due is not None
    assert told is not None
    assert lab.job(job).state is JobState.BACKOFF
    assert now + 50.0 < told <= min(due, now + 60.0)
    lab.pass_s(told - now - 5.0)
    assert lab.job(job).state is JobState.BACKOFF
    soon_after(lab, 5.0)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert len(lab.orders) == 2


@BACK
def test_a_failed_pod_is_replaced_after_its_whole_delay_at_the_latest(lab: SetLab, back_s: float) -> None:
    batch = Batch(lab, fails_first("pi", times=1), backoffLimit=2)
    lab.pass_s(3)
    set_back(lab, back_s)
    soon_after(lab, 10.0)
    assert batch.state() is JobState.SUCCEEDED


def test_an_index_is_tried_again_after_its_whole_delay_at_the_latest(lab: SetLab) -> None:
    batch = Batch(
        lab, fails_first("pi", times=1), backoffLimit=9, completions=1, completionMode="Indexed", backoffLimitPerIndex=2
    )
    lab.pass_s(3)
    set_back(lab, HOUR)
    soon_after(lab, 10.0)
    assert batch.state() is JobState.SUCCEEDED


def test_a_program_starts_again_in_its_pod_after_its_whole_delay_at_the_latest(lab: SetLab) -> None:
    lab.store.put_entry(evolve(retrying(2, delay_s=20.0), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=1))
    lab.pass_s(5)
    assert len(lab.orders) == 1
    set_back(lab, HOUR)
    lab.pass_s(15)
    assert len(lab.orders) == 1
    soon_after(lab, 5.0)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_program_that_waits_begins_its_delay_anew_with_no_restart_of_its_server(lab: SetLab) -> None:
    lab.store.put_entry(evolve(retrying(2, delay_s=20.0), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"]})
    lab.submit_set(document, fails_first("train-w-0", times=1))
    for _ in range(5):
        lab.pass_s(5)
        set_back(lab, 1.0)
    soon_after(lab, 0.0)
    assert len(lab.orders) == 2


def test_a_set_restarts_after_its_whole_delay_at_the_latest(lab: SetLab) -> None:
    failure = {"maxRestarts": 3, "backoff": {"initialDelay": "30s"}}
    document = native({"name": "w", "command": ["true"]}, failurePolicy=failure)
    set_id = lab.submit_set(document, fails_first("train-w-0", times=1))
    lab.pass_s(5)
    assert len(lab.orders) == 1
    set_back(lab, HOUR)
    lab.pass_s(20)
    assert len(lab.orders) == 1
    soon_after(lab, 10.0)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_pod_waits_no_longer_because_its_executors_clock_is_ahead(lab: SetLab) -> None:
    ahead = VirtualClock()
    ahead.time = lab.clock.time + HOUR
    plan = fails_first("pi", times=1)
    lab.engine = SimulatedEngine(ahead, lab.engine.nodes(), script=plan)
    lab.restart_executor()
    batch = Batch(lab, plan, backoffLimit=2)
    for _ in range(20):
        lab.pass_s(1)
        ahead.time = lab.clock.time + HOUR
    assert batch.state() is JobState.SUCCEEDED


def test_what_does_not_start_is_given_up_after_its_whole_time_at_the_latest(lab: SetLab) -> None:
    lab.plan = lambda _: SimulatedRun(start_delay_s=FOREVER)
    job = lab.submit(job_named("a"))
    lab.pass_s(5)
    set_back(lab, HOUR)
    lab.pass_s(580, every_s=10.0)
    assert len(lab.attempts(job)) == 1
    lab.pass_s(40, every_s=10.0)
    assert len(lab.attempts(job)) == 2
