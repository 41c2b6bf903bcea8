"""Job sets in the real controller, in virtual time: what is decided is what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.events.workloads import JobSetChanged
from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.jobset.state import JobSet, SetDecision, Terminal
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import Request, RequestKind
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab, attempts_started, change_to, fails_first, group, manifest, rule

if TYPE_CHECKING:
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def test_a_set_whose_jobs_all_succeed_is_complete(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 3)]), lambda _: exits(0))
    lab.pass_s(5)
    row = lab.store.workload(JobSet, set_id)
    assert row.state.terminal is Terminal.COMPLETED
    assert lab.states() == {f"train-w-{index}": "Succeeded" for index in range(3)}


def test_a_failed_job_fails_a_set_without_a_policy_and_the_others_are_stopped(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 3)]), fails_first("train-w-1"))
    lab.pass_s(5)
    row = lab.store.workload(JobSet, set_id)
    assert row.state.terminal is Terminal.FAILED
    assert lab.states() == {"train-w-0": "Cancelled", "train-w-1": "Failed", "train-w-2": "Cancelled"}


def test_a_counted_restart_runs_every_job_again_with_the_next_attempt_number(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy={"maxRestarts": 1})
    set_id = lab.submit_set(document, fails_first("train-w-1"))
    lab.pass_s(20)
    row = lab.store.workload(JobSet, set_id)
    assert row.state.terminal is Terminal.COMPLETED, row
    assert (row.state.restarts, row.state.restarts_counted) == (1, 1)
    assert sorted((order.job_name, order.attempt) for order in lab.orders) == [
        (f"train-w-{index}", attempt) for index in range(3) for attempt in (1, 2)
    ]
    assert lab.states() == {f"train-w-{index}": "Succeeded" for index in range(3)}


def test_restarting_one_job_leaves_the_others_alone(lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "rules": [rule("RestartJob")]}
    set_id = lab.submit_set(
        manifest(replicatedJobs=[group("w", 3)], failurePolicy=policy), fails_first("train-w-2", times=2)
    )
    lab.pass_s(30)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert attempts_started(lab) == {"train-w-0": [1], "train-w-1": [1], "train-w-2": [1, 2, 3]}


def test_a_spent_budget_fails_the_set(lab: SetLab) -> None:
    policy = {"maxRestarts": 1}
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy=policy)
    set_id = lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(30)
    state = lab.store.workload(JobSet, set_id).state
    failed = state.condition("Failed")
    assert state.terminal is Terminal.FAILED
    assert failed is not None
    assert failed.reason == "ReachedMaxRestarts"
    assert (state.restarts, state.counted) == (1, 1)


def test_every_decision_is_in_the_sets_log_once(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 3})
    set_id = lab.submit_set(document, fails_first("train-w-0", times=3))
    lab.pass_s(60)
    log = lab.store.set_log(set_id)
    decisions = [entry.what for entry in log if isinstance(entry.what, SetDecision)]
    assert [(one.job, one.attempt, one.granted) for one in decisions] == [
        ("train-w-0", (restart, 0), True) for restart in range(3)
    ]


def test_nothing_of_the_new_generation_starts_before_the_old_one_has_gone(lab: SetLab) -> None:
    policy = {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"}
    document = manifest(replicatedJobs=[group("w", 4)], failurePolicy=policy)
    set_id = lab.submit_set(document, fails_first("train-w-3"))
    lab.pass_s(40, every_s=0.5)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    runs = [run for job in lab.store.children_of(set_id) for run in lab.store.runs(job.id)]
    old = max(run.ended_at or 0.0 for run in runs if run.attempt == 1)
    new = min(run.started_at or 0.0 for run in runs if run.attempt == 2)
    assert old <= new


def test_a_suspended_set_runs_nothing_until_it_is_resumed(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], suspend=True)
    set_id = lab.submit_set(document, lambda _: exits(0))
    lab.pass_s(5)
    assert not lab.orders
    assert lab.store.job("train-w-0").state is JobState.WAITING
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(5)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_suspending_stops_what_runs_and_resuming_runs_it_again(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=10.0))
    lab.pass_s(3)
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(5)
    assert not lab.engine_runs()
    assert lab.store.workload(JobSet, set_id).state.holds("Suspended")
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(20)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert len(lab.orders) == 4
    told = [stored.event for stored in lab.store.events(limit=1000)]
    assert [each for each in told if isinstance(each, JobSetChanged)] == [
        JobSetChanged(set_id, "train", change) for change in ("suspended", "resumed")
    ]


def test_a_deleted_set_is_gone_once_its_programs_have_stopped(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(5)
    assert not lab.store.workloads(JobSet)
    assert not lab.engine_runs()
    assert lab.store.job("train-w-0").state is JobState.CANCELLED


def test_a_finished_set_is_deleted_when_its_time_to_live_is_over(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 1)], ttlSecondsAfterFinished=30)
    set_id = lab.submit_set(document, lambda _: exits(0))
    lab.pass_s(20)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    lab.pass_s(20)
    assert not lab.store.workloads(JobSet)
    assert lab.store.job("train-w-0").state is JobState.SUCCEEDED


def test_a_finished_set_can_be_deleted(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1)]), lambda _: exits(0))
    lab.pass_s(5)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(2)
    assert not lab.store.workloads(JobSet)


def test_what_depends_on_a_replicated_job_waits_for_it(lab: SetLab) -> None:
    second = {**group("b"), "dependsOn": [{"name": "a", "status": "Complete"}]}
    set_id = lab.submit_set(manifest(replicatedJobs=[group("a"), second]), lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    assert [order.job_name for order in lab.orders] == ["train-a-0"]
    lab.pass_s(20)
    assert [order.job_name for order in lab.orders] == ["train-a-0", "train-b-0"]
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_person_restarts_a_whole_set_uncounted(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 0})
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=10.0))
    lab.pass_s(3)
    lab.ask_set(RequestKind.RESTART, set_id)
    lab.pass_s(30)
    state = lab.store.workload(JobSet, set_id).state
    assert state.terminal is Terminal.COMPLETED
    assert (state.restarts, state.counted) == (1, 0)
    assert attempts_started(lab) == {"train-w-0": [1, 2], "train-w-1": [1, 2]}


def test_a_person_restarts_one_job_even_when_it_has_succeeded(lab: SetLab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        return exits(0, after_s=1.0 if order.job_name == "train-w-0" else 20.0)

    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), plan)
    lab.pass_s(5)
    assert lab.store.job("train-w-0").state is JobState.WAITING
    lab.ask_set(RequestKind.RESTART, set_id, group="w", index=0)
    lab.pass_s(40)
    assert attempts_started(lab) == {"train-w-0": [1, 2], "train-w-1": [1]}
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_controller_that_forgets_everything_goes_on_where_it_was(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy={"maxRestarts": 3})
    set_id = lab.submit_set(document, fails_first("train-w-1", times=3))
    for _ in range(120):
        lab.pass_s(0.5, every_s=0.5)
        lab.restart_controller()
    state = lab.store.workload(JobSet, set_id).state
    assert state.terminal is Terminal.COMPLETED
    assert (state.restarts, state.counted) == (3, 3)
    assert attempts_started(lab) == {f"train-w-{index}": [1, 2, 3, 4] for index in range(3)}


def test_more_parallelism_starts_more_pods_of_a_running_job(lab: SetLab) -> None:
    job = group("w", 1, parallelism=2, completions=2, completionMode="Indexed")
    document = manifest(replicatedJobs=[job])
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=20.0))
    lab.pass_s(3)
    document["spec"]["replicatedJobs"][0]["template"]["spec"].update(parallelism=3, completions=3)
    lab.store.append(Request(RequestKind.UPDATE, (set_id,), lab.clock.now(), payload=change_to(document)))
    lab.pass_s(5)
    assert sorted(order.rank for order in lab.orders) == [0, 1, 2]
    assert lab.store.workload(JobSet, set_id).generation == 2
