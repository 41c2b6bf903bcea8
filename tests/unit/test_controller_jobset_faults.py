"""What the simulated world found in job sets and jobs made of pods, each in its smallest form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.event_mapping import event_of
from holdfast.domain.events.jobs import JobQueued
from holdfast.domain.job import Job, JobState, Queue, Resources
from holdfast.domain.placement.fit import Place, Shape, Usage
from holdfast.domain.placement.scheduling import GroupKey, PendingQueue, Round, Waiting
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab, attempts_started, fails_first, group, manifest, rule

if TYPE_CHECKING:
    from typing import Any

    from holdfast.ports.engine import RunOrder
    from holdfast.ports.store import Changes

IN_PLACE = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
TOPOLOGY = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}


def in_place_group(name: str, replicas: int) -> dict[str, Any]:
    rules = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    return group(name, replicas, parallelism=1, completions=1, **rules)


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0), {"rack": "r0"}))
    return lab


def test_a_pod_that_is_due_and_waits_for_a_place_does_not_keep_the_controller_busy(lab: SetLab) -> None:
    job = group("w", 1, restartPolicy="OnFailure", backoffLimit=5)
    lab.submit_set(manifest(replicatedJobs=[job]), lambda _: exits(3))
    lab.pass_s(3)
    lab.store.put_entry(Queue("default", paused=True))
    lab.pass_s(30)
    ticked = lab.tick()
    assert not ticked.more
    assert ticked.next_due is None or ticked.next_due > lab.clock.now()


def test_a_deleted_job_is_let_go_of_although_the_controller_forgot_that_its_pods_had_ended(lab: SetLab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        quick = order.rank == 0
        return SimulatedRun(duration_s=None, term_delay_s=0.0 if quick else 20.0)

    job = group("w", 1, parallelism=2, completions=2, completionMode="Indexed")
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), plan)
    lab.pass_s(3)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(5)
    lab.restart_controller()
    lab.pass_s(60)
    assert not lab.store.workloads(JobSet)


def test_a_pod_that_has_ended_well_does_not_hold_the_others_up_at_the_barrier(lab: SetLab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        if order.job_name == "train-w-0":
            return exits(0, after_s=1.0)
        if order.job_name == "train-w-2":
            return exits(0, after_s=15.0)
        first = [each.job_name for each in lab.orders].count(order.job_name) == 1
        return exits(3 if first else 0, after_s=5.0)

    set_id = lab.submit_set(manifest(replicatedJobs=[in_place_group("w", 3)], failurePolicy=IN_PLACE), plan)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert attempts_started(lab) == {"train-w-0": [1], "train-w-1": [1, 1], "train-w-2": [1, 1]}


def test_pods_that_come_after_a_restart_in_place_begin_where_the_others_are(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[in_place_group("w", 2)], failurePolicy=IN_PLACE)
    set_id = lab.submit_set(document, fails_first("train-w-1"))
    lab.pass_s(4)
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(5)
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_pods_without_a_place_of_their_own_do_not_hold_those_at_the_barrier_up(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[in_place_group("w", 2)], failurePolicy=IN_PLACE)
    document["metadata"]["annotations"] = TOPOLOGY
    set_id = lab.submit_set(document, fails_first("train-w-0"))
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_what_is_asked_of_a_set_that_ended_while_nothing_could_be_stored_finds_it_over(
    lab: SetLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=5.0))
    lab.pass_s(3)
    commit = lab.store.commit

    def full(_: Changes) -> None:
        raise Unavailable

    monkeypatch.setattr(lab.store, "commit", full)
    lab.pass_s(10)
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(1)
    monkeypatch.setattr(lab.store, "commit", commit)
    lab.pass_s(10)
    assert lab.states() == {"train-w-0": "Succeeded", "train-w-1": "Succeeded"}
    ends = [each.event for each in lab.store.events(limit=1000) if type(each.event).__name__ == "JobSucceeded"]
    assert len(ends) == 2


def test_a_set_ends_whose_suspended_jobs_wait_for_one_that_was_left_failed(lab: SetLab) -> None:
    second = {**group("b"), "dependsOn": [{"name": "a", "status": "Complete"}]}
    policy = {"maxRestarts": 1, "rules": [rule("FailJob")]}
    document = manifest(replicatedJobs=[group("a"), second], failurePolicy=policy)

    def plan(order: RunOrder) -> SimulatedRun:
        if order.job_name == "train-b-0":
            return exits(0, after_s=30.0)
        return exits(0 if order.attempt == 1 else 3)

    set_id = lab.submit_set(document, plan)
    lab.pass_s(5)
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(5)
    lab.ask_set(RequestKind.RESTART, set_id, group="a", index=0)
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is not Terminal.NONE


def test_a_suspended_job_gives_its_topology_domain_back(lab: SetLab) -> None:
    def alone(name: str) -> dict[str, Any]:
        document = manifest(name, replicatedJobs=[group("w")])
        document["metadata"]["annotations"] = TOPOLOGY
        return document

    first = lab.submit_set(alone("one"), lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    lab.ask_set(RequestKind.HOLD, first)
    lab.pass_s(5)
    second = lab.submit_set(alone("two"), lambda _: exits(0))
    lab.pass_s(10)
    assert lab.store.workload(JobSet, second).state.terminal is Terminal.COMPLETED


def test_a_pod_of_an_index_waits_until_the_last_one_has_gone(lab: SetLab) -> None:
    stubborn = SimulatedRun(duration_s=FOREVER, term_delay_s=20.0)
    job = group("w", 1, parallelism=1, completions=1, podReplacementPolicy="TerminatingOrFailed")
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), lambda _: stubborn)
    lab.pass_s(3)
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(2)
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(5)
    assert len(lab.engine_runs()) == 1
    lab.pass_s(25)
    assert len(lab.orders) == 2


def test_an_attempt_whose_programs_ended_before_anybody_saw_them_run_has_started(lab: SetLab) -> None:
    lab.submit_set(manifest(replicatedJobs=[group("w")]), lambda _: exits(0, after_s=0.0))
    lab.pass_s(5)
    (attempt,) = lab.store.attempts("id-train-w-0")
    assert attempt.started_at is not None


def test_a_place_kept_for_a_pod_of_a_job_that_goes_is_given_back_after_a_restart_of_ours(lab: SetLab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        stubborn = SimulatedRun(duration_s=FOREVER, term_delay_s=20.0)
        return exits(3) if order.rank == 0 else stubborn

    rules = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "restartPolicy": "OnFailure"}
    job = group("w", 1, parallelism=2, completions=2, **rules)
    set_id = lab.submit_set(manifest(replicatedJobs=[job], failurePolicy=IN_PLACE), plan)
    lab.pass_s(4)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(2)
    lab.restart_controller()
    lab.pass_s(60)
    assert not lab.store.workloads(JobSet)
    assert not lab.controller.state.capacity.charges


def test_a_queued_job_whose_set_restarts_is_told_of_as_queued_anew() -> None:
    queued = Job("j", "w", "default", 0, 0.0, "", attempt=1, queued_at=1.0, updated_at=1.0)
    assert event_of(queued, evolve(queued, attempt=2, queued_at=5.0, updated_at=5.0)) == JobQueued(2)
    assert queued.state is JobState.QUEUED


def test_pods_of_one_job_with_different_shapes_can_wait_at_once() -> None:
    pending = PendingQueue()
    for number, avoid in enumerate(("n1", "n2")):
        pending.add(GroupKey("default", Shape(Resources(500), avoid=avoid), True), Waiting(0, 7, f"j-{number}", 0.0))  # noqa: FBT003
    place = Place(("e0", "n0"), Resources(4000, 0, 0))
    plan = Round(
        pending=pending,
        places=[place],
        free={place.key: place.capacity},
        queues={},
        usage={"default": Usage()},
        balances={},
        now=0.0,
        total=place.capacity,
        retry_share=0.5,
    ).plan()
    assert [placed.job_id for placed in plan.placements] == ["j-0", "j-1"]


def test_a_restart_a_person_asked_for_is_made_once_however_often_its_commit_is_refused(
    lab: SetLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w")]), lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    commit, refusals = lab.store.commit, iter(range(3))

    def moody(changes: Changes) -> None:
        if next(refusals, None) is not None:
            raise Unavailable
        commit(changes)

    monkeypatch.setattr(lab.store, "commit", moody)
    lab.ask_set(RequestKind.RESTART, set_id)
    lab.pass_s(40)
    assert lab.store.workload(JobSet, "train").state.restarts == 1


def test_jobs_that_failed_together_keep_their_outcomes_although_a_tick_looks_only_at_some(lab: SetLab) -> None:
    lab.settings = evolve(lab.settings, kube_jobs_per_tick=1)
    lab.restart_controller()
    document = manifest(replicatedJobs=[group("w", 3)], failurePolicy={"maxRestarts": 1})
    set_id = lab.submit_set(document, lambda order: exits(3 if order.attempt == 1 else 0, after_s=5.0))
    lab.pass_s(15)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    runs = [run for job in lab.store.children_of(set_id) for run in lab.store.runs(job.id)]
    codes = [run.outcome.containers[0].exit_code for run in runs if run.outcome is not None]
    assert codes == [3, 0] * 3
