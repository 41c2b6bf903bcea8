"""A node that is short of something gets no new work, and nobody pays for what it could not start."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import ContainerResult, FailureCondition, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, AntiAffinity, RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.shortage import AGAIN_AT_ONCE, OF_REASON, OVER_AFTER_S, PATIENCE, Shortage, shortage_of
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from holdfast.wire.render_events import event_view
from tests.unit.conftest import Lab, exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.engine import RunOrder

NEVER = RetryPolicy("inline", retry_limit=0, default_action=Action.FAIL)


def refusal(reason: str = "DiskFull") -> RunOutcome:
    message = "cannot start 'true': No space left on device"
    container = ContainerResult(None, reason=reason, message=message)
    conditions = frozenset({FailureCondition.LAUNCH_FAILED})
    return RunOutcome(containers=(container,), conditions=conditions, started=False, message=message)


class Disk:
    """What the programs of a lab need, which may be gone."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.full = False
        self.reason = "DiskFull"
        self.refused: list[tuple[float, str]] = []

    def run(self, order: RunOrder, then: SimulatedRun) -> SimulatedRun:
        if not self.full:
            return then
        self.refused.append((self.lab.clock.time, order.job_name))
        return SimulatedRun(outcome=refusal(self.reason))

    def plan(self, then: SimulatedRun) -> Callable[[RunOrder], SimulatedRun]:
        return lambda order: self.run(order, then)


@pytest.fixture
def disk(lab: Lab) -> Disk:
    return Disk(lab)


@pytest.mark.parametrize(("reason", "of"), OF_REASON.items())
def test_each_of_the_words_of_launching_names_what_is_short(reason: str, of: Shortage) -> None:
    assert shortage_of(refusal(reason)) is of
    assert shortage_of(evolve(refusal(reason), started=True)) is None
    assert shortage_of(evolve(refusal(reason), conditions=frozenset())) is None
    assert shortage_of(refusal("CommandNotFound")) is None


def test_whatever_waits_while_a_node_is_short_runs_once_that_is_over_and_nobody_pays(lab: Lab, disk: Disk) -> None:
    disk.full = True
    jobs = [lab.submit(job_named(f"n{number}", NEVER), disk.plan(exits(0))) for number in range(40)]
    lab.pass_s(600)
    assert {lab.job(job).state for job in jobs} <= {JobState.QUEUED, JobState.BACKOFF}
    assert len(disk.refused) < 4 + 600 / 10  # four at once at the beginning, then one at a time and ever later
    disk.full = False
    lab.pass_s(OVER_AFTER_S + 60, every_s=0.25)
    assert {lab.job(job).state for job in jobs} == {JobState.SUCCEEDED}
    assert all(not lab.job(job).retries and not lab.job(job).counters for job in jobs)


def test_the_kill_switch_of_retries_stops_no_job_that_was_never_started(lab: Lab, disk: Disk) -> None:
    lab.store.put_settings(RetrySettings(global_max_retries=0), None)
    disk.full = True
    job = lab.submit(job_named("train"), disk.plan(exits(0)))
    lab.pass_s(10)
    disk.full = False
    lab.pass_s(20)
    assert lab.job(job).state is JobState.SUCCEEDED
    first = lab.attempts(job)[0]
    assert first.decision is not None
    assert (first.decision.action, first.decision.code) == (Action.IGNORE, DecisionCode.SHORTAGE)


def test_a_job_that_waits_says_what_is_short_and_since_when(lab: Lab, disk: Disk) -> None:
    disk.full = True
    first = lab.submit(job_named("first"), disk.plan(exits(0)))
    lab.pass_s(2)
    second = lab.submit(job_named("second", resources=Resources(2000)), disk.plan(exits(0)))
    lab.pass_s(3)
    told = "node n0 has been short of disk space since 1970-01-12T13:46:40Z"
    assert told in lab.job(first).reason
    assert lab.job(second).reason == told


def test_jobs_go_to_other_nodes_meanwhile(lab: Lab, disk: Disk) -> None:
    lab.use(*(NodeInfo(f"n{number}", Resources(4000, 8 << 30, 0)) for number in range(2)))
    disk.full = True

    def plan(order: RunOrder) -> SimulatedRun:
        return disk.run(order, exits(0)) if order.node == "n0" else exits(0)

    jobs = [lab.submit(job_named(f"n{number}", NEVER), plan) for number in range(20)]
    lab.pass_s(30)
    assert {lab.job(job).state for job in jobs} == {JobState.SUCCEEDED}
    assert 4 <= len(disk.refused) <= 10


def test_a_job_that_is_refused_goes_on_avoiding_what_it_avoided(lab: Lab, disk: Disk) -> None:
    lab.use(*(NodeInfo(f"n{number}", Resources(4000, 8 << 30, 0)) for number in range(3)))
    elsewhere = RetryPolicy("mine", default_action=Action.RETRY, anti_affinity=AntiAffinity.NODE)

    def plan(order: RunOrder) -> SimulatedRun:
        disk.full = order.attempt == 2
        return disk.run(order, exits(1 if order.attempt == 1 else 0))

    job = lab.submit(job_named("train", elsewhere), plan)
    lab.pass_s(60)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert [run.node for run in lab.runs(job)] == ["n0", "n1", "n2"]


def test_a_gang_whose_other_ranks_had_started_waits_for_its_node_as_a_whole(lab: Lab, disk: Disk) -> None:
    disk.full = True

    def plan(order: RunOrder) -> SimulatedRun:
        return disk.run(order, exits(0)) if order.rank == 2 else exits(3, after_s=0.0) if disk.full else exits(0)

    job = lab.submit(job_named("gang", NEVER, gang=3), plan)
    lab.pass_s(5)
    assert lab.job(job).state in {JobState.QUEUED, JobState.BACKOFF}
    disk.full = False
    lab.pass_s(30)
    assert (lab.job(job).state, lab.job(job).retries) == (JobState.SUCCEEDED, 0)


def test_what_cannot_be_started_for_a_reason_of_its_own_is_judged_as_ever(lab: Lab, disk: Disk) -> None:
    disk.reason, disk.full = "PermissionDenied", True
    job = lab.submit(job_named("train", NEVER), disk.plan(exits(0)))
    lab.pass_s(5)
    assert lab.job(job).state is JobState.FAILED


def test_a_node_with_room_for_one_more_now_and_then_is_short_all_the_time(
    lab: Lab, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    running: set[str] = set()

    def plan(order: RunOrder) -> SimulatedRun:
        running.intersection_update(uid for uid, life in lab.engine._lives.items() if life.seen.outcome is None)  # noqa: SLF001 - it is being asked itself
        disk.full = len(running) >= 2
        running.update(() if disk.full else (order.uid,))
        return disk.run(order, exits(0, after_s=20.0))

    jobs = [lab.submit(job_named(f"n{number}", NEVER), plan) for number in range(8)]
    lab.pass_s(200, every_s=0.5)
    assert {lab.job(job).state for job in jobs} == {JobState.SUCCEEDED}
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2, told
    assert told[0].startswith("node n0 is short of disk space: cannot start 'true': No space left on device; ")
    assert told[1].startswith("node n0 is no longer short of disk space; that lasted ")
    begun, over = [each for each in map(event_view, lab.store.events(limit=1000)) if each.subject == "nodes/n0"]
    message = "cannot start 'true': No space left on device"
    assert begun.data == {"executor": "local", "node": "n0", "of": "disk", "message": message}
    assert (begun.type, over.type) == ("dev.holdfast.node.short.v1", "dev.holdfast.node.recovered.v1")
    assert over.data["lasted_s"] > OVER_AFTER_S


def test_a_shortage_outlives_its_controller_even_if_the_clock_is_set_back(
    lab: Lab, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.full = True
    job = lab.submit(job_named("train"), disk.plan(exits(0)))
    lab.pass_s(5)
    lab.clock.set_by = -3600.0
    caplog.clear()
    lab.restart_controller()
    lab.restart_executor()
    lab.pass_s(5)
    assert not caplog.records
    (node,) = lab.store.nodes()
    assert node.short is not None
    assert node.short.of is Shortage.DISK
    disk.full = False
    lab.pass_s(OVER_AFTER_S + 15)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert ["no longer" in record.getMessage() for record in caplog.records] == [True]
    assert lab.store.nodes()[0].short is None


def test_a_job_that_is_always_refused_waits_ever_longer_and_lets_others_run(lab: Lab, disk: Disk) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        disk.full = order.job_name == "odd"
        return disk.run(order, exits(0, after_s=2.0))

    odd = lab.submit(job_named("odd", NEVER), plan)
    lab.pass_s(3)
    others = [lab.submit(job_named(f"n{number}", NEVER), plan) for number in range(20)]
    lab.pass_s(60)
    assert {lab.job(job).state for job in others} == {JobState.SUCCEEDED}
    lab.pass_s(600)
    times = [at for at, _ in disk.refused]
    assert times[-1] - times[-2] >= PATIENCE.initial_s * PATIENCE.multiplier**3
    assert len(times) < 25
    waiting = lab.job(odd)
    assert (waiting.state, waiting.retries, dict(waiting.counters)) == (JobState.BACKOFF, 0, {})
    assert f"could not be started {len(times)} times in a row" in waiting.reason
    assert waiting.retry_at is not None
    assert waiting.retry_at > lab.clock.time
    told = " ".join(Explainer(lab.store).why(odd, len(times)).summary)
    assert f"Attempt {len(times) + 1} starts 1m later" in told


def test_refusals_before_and_after_a_start_are_not_in_a_row(lab: Lab, disk: Disk) -> None:
    disk.full = True
    fails = disk.plan(exits(1))
    job = lab.submit(job_named("train", retrying(9)), fails)
    lab.pass_s(4)
    assert len(disk.refused) == AGAIN_AT_ONCE
    disk.full = False
    lab.pass_s(6)
    disk.full = True
    disk.refused.clear()
    lab.pass_s(4)
    assert disk.refused
    assert "in a row" not in lab.job(job).reason


def test_a_pod_that_is_always_refused_waits_ever_longer() -> None:
    lab = SetLab()
    disk = Disk(lab)
    disk.full = True
    lab.submit_set(manifest(replicatedJobs=[group("w", 1)]), disk.plan(exits(0)))
    lab.pass_s(600)
    times = [at for at, _ in disk.refused]
    assert times[-1] - times[-2] >= PATIENCE.initial_s * PATIENCE.multiplier**3
    disk.full = False
    lab.pass_s(70)
    assert len(lab.orders) == len(times) + 1


def test_a_shortage_that_nobody_tries_is_over_after_a_while(lab: Lab, disk: Disk) -> None:
    disk.full = True
    job = lab.submit(job_named("train"), disk.plan(exits(0)))
    lab.pass_s(2)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(OVER_AFTER_S - 2)
    assert lab.store.nodes()[0].short is not None
    lab.pass_s(4)
    assert lab.store.nodes()[0].short is None


@pytest.mark.parametrize(
    "job", [{}, {"restartPolicy": "OnFailure"}, {"backoffLimitPerIndex": 0, "completionMode": "Indexed"}]
)
def test_pods_wait_for_their_node_and_no_limit_of_their_job_or_set_counts_it(job: dict[str, object]) -> None:
    lab = SetLab()
    disk = Disk(lab)
    disk.full = True
    document = manifest(replicatedJobs=[group("w", 2, parallelism=2, completions=2, **job)])
    set_id = lab.submit_set(document, disk.plan(exits(0)))
    lab.pass_s(20)
    disk.full = False
    lab.pass_s(60)
    row = lab.store.workloads_by_id(JobSet, [set_id])[set_id]
    assert row.state.terminal == "Completed"
    assert row.state.restarts == 0


def test_a_pod_that_was_refused_restarts_no_other_in_place() -> None:
    lab = SetLab()
    disk = Disk(lab)
    disk.full = True
    document = manifest(
        failurePolicy={"maxRestarts": 0, "restartStrategy": "InPlaceRestart"},
        replicatedJobs=[
            group("w", 1, parallelism=2, completions=2, backoffLimit=2**31 - 1, podReplacementPolicy="Failed")
        ],
    )
    set_id = lab.submit_set(document, lambda order: disk.run(order, exits(0)) if order.rank else exits(0, after_s=40.0))
    lab.pass_s(20)
    disk.full = False
    lab.pass_s(60)
    row = lab.store.workloads_by_id(JobSet, [set_id])[set_id]
    assert (row.state.terminal, row.state.restarts) == ("Completed", 0)
    assert len([order for order in lab.orders if order.rank == 0]) == 1


def test_a_job_set_that_is_suspended_while_its_node_is_short_goes_on_afterwards() -> None:
    lab = SetLab()
    disk = Disk(lab)
    disk.full = True
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1)]), disk.plan(exits(0)))
    lab.step()
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(20)
    disk.full = False
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(60)
    assert lab.store.workloads_by_id(JobSet, [set_id])[set_id].state.terminal == "Completed"
