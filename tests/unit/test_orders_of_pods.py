"""What the pods of a Job are told of themselves and of their Job, and what holds for it as a whole."""

from __future__ import annotations

import pytest

from holdfast.domain.containers import Capability, ContainerRole, EngineInfo, Volume
from holdfast.domain.job import JobState
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.workloads.array.model import ArraySpec, Indexes
from holdfast.domain.workloads.children import child_of
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind, kept_waiting
from holdfast.domain.workloads.jobset.model import ReplicatedJob
from holdfast.domain.workloads.kubejob.model import JobCondition, KubeJobSpec, KubeJobState
from holdfast.domain.workloads.kubejob.program import ContainerSpec, Program
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import exits, job_named
from tests.unit.jobset_lab import FOREVER, SetLab, attempts_started, group, manifest
from tests.unit.test_controller_pods import Batch, lab

__all__ = ["lab"]


def test_each_pod_of_an_indexed_job_is_told_its_index_and_how_many_there_are_whatever_runs_at_a_time(
    lab: SetLab,
) -> None:
    Batch(lab, lambda _: exits(0), completions=5, parallelism=2, completionMode="Indexed")
    lab.pass_s(20)
    told = {order.rank: order.containers[0].env["JOB_COMPLETION_INDEX"] for order in lab.orders}
    assert told == {rank: str(rank) for rank in range(5)}
    assert {order.size for order in lab.orders} == {5}


def test_a_job_that_was_suspended_when_its_deadline_passed_has_not_missed_it() -> None:
    spec = KubeJobSpec(parallelism=1, active_deadline_s=10.0, suspend=True)
    found = reconcile(spec, KubeJobState(started_at=0.0), (), 11.0)
    assert [(one.type, one.reason) for one in found.state.conditions] == [("Suspended", "JobSuspended")]


def test_a_running_job_that_is_to_end_says_since_when(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: SimulatedRun(0.0, None, term_delay_s=8.0))
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, batch.id)
    lab.pass_s(3)
    job = lab.store.job(batch.id)
    assert (job.state, job.cancel_requested, job.updated_at) == (JobState.RUNNING, True, lab.clock.now() - 3.0)


def test_an_index_that_a_rule_has_fail_is_decided_to_have_failed_by_that_rule(lab: SetLab) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [3]}}
    batch = Batch(
        lab,
        lambda _: exits(3),
        completions=1,
        completionMode="Indexed",
        backoffLimitPerIndex=5,
        podFailurePolicy={"rules": [rule]},
    )
    lab.pass_s(10)
    [run] = lab.store.runs(batch.id)
    assert run.decision is not None
    assert (run.decision.code, run.decision.reason[:18]) == (DecisionCode.FAIL_RULE, "index 0 has failed")


def test_what_the_pods_of_a_job_count_for_in_their_queue_is_given_back_once(lab: SetLab) -> None:
    batch = Batch(lab, lambda _: exits(0, after_s=2.0), completions=4, parallelism=2)
    lab.pass_s(1)
    assert lab.controller.state.capacity.usage["default"].jobs == 2
    lab.pass_s(20)
    assert (batch.state(), lab.controller.state.capacity.usage["default"].jobs) == (JobState.SUCCEEDED, 0)


def test_a_person_restarts_all_jobs_of_one_template_and_no_other(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("a"), group("b", 2)])
    set_id = lab.submit_set(document, lambda _: exits(0, after_s=FOREVER))
    lab.pass_s(3)
    lab.ask_set(RequestKind.RESTART, set_id, group="b")
    lab.pass_s(30)
    assert attempts_started(lab) == {"train-a-0": [1], "train-b-0": [1, 2], "train-b-1": [1, 2]}


@pytest.mark.parametrize(("completions", "ready"), [(None, 3), (2, 2), (5, 3)])
def test_a_job_is_ready_when_all_pods_are_that_run_at_a_time(completions: int | None, ready: int) -> None:
    assert ReplicatedJob(name="a", job=KubeJobSpec(parallelism=3, completions=completions)).ready_pods == ready


def test_the_engine_that_can_do_what_a_program_needs_goes_before_one_that_has_what_it_could_do_without() -> None:
    program = Program(image="busybox", volumes=(Volume("v"),), others=(ContainerSpec(role=ContainerRole.INIT),))
    able = EngineInfo("able", frozenset({Capability.INIT_CONTAINERS}))
    rich = EngineInfo("rich", frozenset({Capability.IMAGES, Capability.VOLUMES}))
    assert program.closest([rich, able]) == program.closest([able, rich]) == able


def test_a_task_waits_for_the_task_of_its_own_index_and_for_that_alone() -> None:
    first = Dependency("first", by_index=True, target=DependencyKind.ARRAY, id="a1")
    spec = ArraySpec(job_named("second", after=(Dependency("prep", id="p"), first)), (Indexes(0, 9),))
    assert spec.task_waits_for(3) == (Dependency("first-3", target=DependencyKind.JOB, id="a1-first-3", array="a1"),)


def test_a_job_that_is_kept_waiting_has_changed_then(lab: SetLab) -> None:
    key = lab.submit(job_named("a"))
    job = kept_waiting(lab.job(key), (Dependency("first", id="f"),), 77.0)
    assert (job.state, job.reason, job.updated_at) == (JobState.WAITING, "waits for job first to succeed", 77.0)


@pytest.mark.parametrize(("condition", "certain"), [("", False), ("FailureTarget", True), ("Failed", False)])
def test_a_jobs_owner_is_shown_that_it_is_certain_to_fail_until_it_has(
    lab: SetLab, condition: str, *, certain: bool
) -> None:
    job = lab.job(lab.submit(job_named("a")))
    met = JobCondition(condition, status=True, reason="BackoffLimitExceeded", message="", since=1.0)
    record = KubeJobRecord("a", state=KubeJobState(conditions=(met,) if condition else ()))
    assert child_of(job, record).certain is certain
