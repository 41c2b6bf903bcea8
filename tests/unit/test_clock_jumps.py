"""The wall clock is set forward or back: due times, deadlines and leases hold, and nothing runs twice.

How long is waited where it was set back over a restart: ``test_clock_set_back.py``.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import pytest

from holdfast.app.time import SystemClock
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.record import evolve
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.ports.engine import RunPhase
from holdfast.ports.exchange import ExchangeRequest
from tests.unit.conftest import Lab, VirtualClock, exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

HOUR = 3600.0


def fails_once(order: RunOrder) -> SimulatedRun:
    return exits(3 if order.attempt == 1 else 0)


def test_a_step_forward_makes_a_retry_due_and_grants_one(lab: Lab) -> None:
    job = lab.submit(job_named("a", retrying(delay_s=600.0)), fails_once)
    lab.pass_s(5)
    assert lab.job(job).state is JobState.BACKOFF
    lab.clock.time += HOUR
    lab.pass_s(5)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [order.attempt for order in lab.orders] == [1, 2]


def test_a_running_job_outlives_a_step_forward_longer_than_its_executors_lease(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    job = lab.submit(job_named("a"), exits(0, after_s=2 * HOUR))
    lab.pass_s(5)
    lab.clock.time += HOUR
    lab.step(3)
    assert lab.job(job).state is JobState.RUNNING
    lab.pass_s(HOUR + 10, every_s=30.0)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert len(lab.orders) == 1


def test_an_executor_that_was_heard_a_second_ago_is_not_lost_when_the_controllers_clock_is_set(lab: Lab) -> None:
    job = lab.submit(job_named("a"), exits(0, after_s=9 * HOUR))
    lab.pass_s(5)
    lab.clock.set_by += HOUR
    lab.tick()
    lab.step(3)
    assert (lab.job(job).state, len(lab.orders)) == (JobState.RUNNING, 1)


def test_an_executor_keeps_its_programs_when_its_clock_is_set_while_nobody_answers(lab: Lab) -> None:
    job = lab.submit(job_named("a"), exits(0, after_s=9 * HOUR))
    lab.pass_s(5)
    lab.transport.broken = True
    lab.clock.set_by += HOUR
    lab.step(3)
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.RUNNING]
    lab.transport.broken = False
    lab.pass_s(5)
    assert (lab.job(job).state, len(lab.orders)) == (JobState.RUNNING, 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_program_that_is_being_stopped_is_not_given_up_because_the_clock_was_set(lab: Lab, *, restarts: bool) -> None:
    slow_to_stop = evolve(exits(0, after_s=9 * HOUR), term_delay_s=50.0)
    spec = job_named("a", retrying(), gang=2, grace_s=60.0)
    job = lab.submit(spec, lambda order: exits(3, after_s=3.0) if order.rank else slow_to_stop)
    lab.pass_s(5)
    assert lab.attempts(job)[0].status is AttemptStatus.TERMINATING
    lab.clock.set_by += HOUR
    if restarts:
        lab.restart_controller()
    lab.tick()
    assert lab.attempts(job)[0].status is AttemptStatus.TERMINATING
    lab.pass_s(5)
    assert lab.attempts(job)[0].status is AttemptStatus.ERROR


def test_an_executor_whose_clock_was_behind_when_it_started_again_starts_nothing_twice(lab: Lab) -> None:
    job = lab.submit(job_named("a", retrying()), exits(0, after_s=30.0))
    lab.pass_s(5)
    lab.clock.set_by -= HOUR
    lab.use(*lab.engine.nodes())
    lab.clock.set_by += HOUR
    assert not lab.executor.step()
    lab.pass_s(65)
    assert [order.attempt for order in lab.orders] == [1, 2]
    lab.pass_s(40)
    assert lab.job(job).state is JobState.SUCCEEDED


def test_what_an_earlier_life_told_by_a_clock_that_was_ahead_ends_nothing(lab: Lab) -> None:
    late = ExchangeRequest("local", 9, lab.engine.nodes(), {}, incarnation=lab.clock.now() + HOUR)
    job = lab.submit(job_named("a", retrying()), exits(0, after_s=9 * HOUR))
    lab.pass_s(5)
    lab.controller.tick([late])
    lab.pass_s(5)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.RUNNING, 1)


def test_a_retry_does_not_wait_longer_because_an_executors_clock_is_ahead(lab: Lab) -> None:
    ahead = VirtualClock()
    ahead.time += HOUR
    lab.engine = SimulatedEngine(ahead, lab.engine.nodes(), script=fails_once)
    lab.restart_executor()
    job = lab.submit(job_named("a", retrying(delay_s=10.0)))
    for _ in range(20):
        lab.pass_s(1)
        ahead.time = lab.clock.time + HOUR
    assert lab.job(job).state is JobState.SUCCEEDED
    first, _ = lab.runs(job)
    assert first.outcome is not None
    assert (first.outcome.ran_s, first.ended_at) == (1.0, first.status_since)


def test_a_running_job_outlives_a_step_back(lab: Lab) -> None:
    job = lab.submit(job_named("a", total_deadline_s=600.0), exits(0, after_s=60.0))
    lab.pass_s(5)
    lab.clock.time -= HOUR
    lab.restart_controller()
    lab.pass_s(30)
    assert lab.job(job).state is JobState.RUNNING
    lab.clock.time += HOUR
    lab.pass_s(60)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert len(lab.orders) == 1


def test_a_total_deadline_is_kept_by_the_clock_that_people_read(lab: Lab) -> None:
    job = lab.submit(job_named("a", retrying(), total_deadline_s=2 * HOUR), exits(0, after_s=9 * HOUR))
    lab.pass_s(5)
    lab.clock.time += HOUR
    lab.step(3)
    assert lab.job(job).state is JobState.RUNNING
    lab.clock.time += 2 * HOUR
    lab.pass_s(60)
    assert lab.job(job).state is JobState.FAILED
    assert len(lab.orders) == 1


def test_a_servers_clock_follows_steps_forward_and_never_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = [1_000_000.0]
    steady = [50.0]
    monkeypatch.setattr(time, "time", lambda: wall[0])
    monkeypatch.setattr(time, "monotonic", lambda: steady[0])
    clock = SystemClock()
    seen = [clock.now()]
    for wall_step, steady_step in ((1.0, 1.0), (HOUR, 1.0), (-2 * HOUR, 1.0), (1.0, 1.0)):
        wall[0] += wall_step
        steady[0] += steady_step
        seen.append(clock.now())
    assert [later - earlier for earlier, later in itertools.pairwise(seen)] == [1.0, HOUR, 1.0, 1.0]
