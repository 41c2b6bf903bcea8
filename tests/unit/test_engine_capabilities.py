"""What the controller makes of an engine that prepares runs before it starts them, or places them itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.containers import Capability
from holdfast.domain.failure import Cause
from holdfast.domain.job import UNLIMITED, JobState, Resources
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.policy.model import AntiAffinity
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder

MACHINE = NodeInfo("n0", Resources(4000, 8 << 30))


@pytest.fixture
def preparing(lab: Lab) -> Lab:
    """A controller whose engine prepares runs before it starts them."""
    lab.use(MACHINE, also=[Capability.PREPARING])
    return lab


@pytest.fixture
def delegating(lab: Lab) -> Lab:
    """A controller whose engine places runs itself."""
    lab.use(NodeInfo("all", UNLIMITED), also=[Capability.PLACEMENT])
    return lab


def slow_to_pull(order: RunOrder) -> SimulatedRun:
    """Plan a gang whose second rank takes longer to prepare than its first."""
    return SimulatedRun(duration_s=60.0, prepare_s=2.0, pull_s=10.0 * order.rank)


def statuses(lab: Lab, job: str) -> list[RunStatus]:
    return [run.status for run in lab.runs(job)]


def test_no_rank_of_a_gang_starts_before_all_are_prepared(preparing: Lab) -> None:
    job = preparing.submit(job_named("gang", gang=2), slow_to_pull)
    preparing.pass_s(1)
    assert statuses(preparing, job) == [RunStatus.PREPARING] * 2
    preparing.pass_s(4)
    assert statuses(preparing, job) == [RunStatus.PREPARED, RunStatus.PULLING]
    assert [attempt.status for attempt in preparing.attempts(job)] == [AttemptStatus.PREPARING]
    assert ("PrepareAttempts", "SKIPPED", "PREPARING") in preparing.phases(job)
    preparing.pass_s(10)
    assert statuses(preparing, job) == [RunStatus.RUNNING] * 2
    started = [run.started_at for run in preparing.runs(job)]
    assert started[0] == started[1]
    preparing.pass_s(60)
    assert preparing.job(job).state is JobState.SUCCEEDED


def test_a_rank_that_cannot_be_prepared_fails_its_gang_before_it_starts(preparing: Lab) -> None:
    def pulled_by_the_second_attempt(order: RunOrder) -> SimulatedRun:
        return SimulatedRun(pull_s=1.0, pull_fails=order.rank == 1 and order.attempt == 1)

    job = preparing.submit(job_named("gang", retrying(3), gang=2), pulled_by_the_second_attempt)
    preparing.pass_s(20)
    first, second = preparing.attempts(job)
    assert first.failure is not None
    assert (first.failure.cause, first.failure.started) == (Cause.IMAGE_PULL_FAILURE, False)
    assert ("DetectFailure", "SUCCESS", "TERMINATING") in preparing.phases(job)
    assert second.status is AttemptStatus.TERMINATED
    assert preparing.job(job).state is JobState.SUCCEEDED
    assert [run.started_at is None for run in preparing.runs(job)] == [True, True, False, False]
    assert not preparing.engine.observe()


def test_what_is_cancelled_while_it_is_prepared_never_starts(preparing: Lab) -> None:
    job = preparing.submit(job_named("gang", gang=2), slow_to_pull)
    preparing.pass_s(5)
    preparing.ask(RequestKind.CANCEL, job)
    preparing.pass_s(2)
    assert preparing.job(job).state is JobState.CANCELLED
    assert all(run.started_at is None for run in preparing.runs(job))
    assert not preparing.engine.observe()


def test_what_prepares_forever_gets_other_places(preparing: Lab) -> None:
    def stuck_at_first(order: RunOrder) -> SimulatedRun:
        return SimulatedRun(pull_s=1e9 if order is preparing.orders[0] else 0.0)

    job = preparing.submit(job_named("stuck"), stuck_at_first)
    preparing.pass_s(950, every_s=10)
    assert ("PrepareAttempts", "EXPIRED", "PENDING") in preparing.phases(job)
    assert preparing.job(job).state is JobState.SUCCEEDED
    assert [attempt.number for attempt in preparing.attempts(job)] == [1]


def test_a_controller_goes_on_with_what_was_being_prepared(preparing: Lab) -> None:
    job = preparing.submit(job_named("gang", gang=2), slow_to_pull)
    preparing.pass_s(5)
    preparing.restart_controller()
    preparing.tick()
    assert statuses(preparing, job) == [RunStatus.PREPARED, RunStatus.PULLING]
    preparing.pass_s(20)
    assert statuses(preparing, job) == [RunStatus.RUNNING] * 2
    assert len(preparing.orders) == 2


def test_a_run_is_where_its_engine_placed_it(delegating: Lab) -> None:
    huge = Resources(10_000_000, 1 << 50)
    plan = partial(SimulatedRun, 0.0, None)
    big = job_named("big", resources=huge, gang=3)
    job = delegating.submit(big, lambda order: plan(nodes=(f"n{order.rank}",)))
    delegating.pass_s(2)
    assert [(run.executor, run.node) for run in delegating.runs(job)] == [("local", f"n{rank}") for rank in range(3)]
    delegating.restart_controller()
    delegating.pass_s(2)
    free = delegating.controller.state.capacity.free
    assert free == {("local", "all"): UNLIMITED - huge - huge - huge}
    delegating.ask(RequestKind.CANCEL, job)
    delegating.pass_s(2)
    assert delegating.controller.state.capacity.free == {("local", "all"): UNLIMITED}


def test_an_engine_that_places_runs_is_told_what_to_mind(delegating: Lab) -> None:
    policy = evolve(retrying(3), anti_affinity=AntiAffinity.NODE)

    def fails_on_the_first(order: RunOrder) -> SimulatedRun:
        return evolve(exits(0 if order.attempt == 2 else 9), nodes=("n7", "n8"))

    delegating.submit(job_named("job", policy, node_selector={"zone": "a"}), fails_on_the_first)
    delegating.pass_s(10)
    told = [(dict(order.node_selector), order.node, order.avoid_node) for order in delegating.orders]
    assert told == [({"zone": "a"}, "all", None), ({"zone": "a"}, "all", "n7")]
