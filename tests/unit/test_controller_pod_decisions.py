"""Decisions about failed pods: each is kept with its run, told by ``why``, and bounded by the operator's settings."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.domain.containers import Capability
from holdfast.domain.events.workloads import JobSetEnded
from holdfast.domain.failure import Cause, ContainerResult, FailureCondition, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, AntiAffinity, Considered, RetryPolicy, RetrySettings, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.service.explain import Explainer
from tests.unit.conftest import exits, retrying
from tests.unit.jobset_lab import SetLab, fails_first


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def native(*jobs: dict[str, Any], **spec: object) -> dict[str, Any]:
    return {
        "apiVersion": "holdfast.dev/v1",
        "kind": "JobSet",
        "metadata": {"name": "train"},
        "spec": {"jobs": list(jobs), **spec},
    }


def test_each_failed_pod_keeps_its_failure_and_what_was_decided_and_why_tells_it(lab: SetLab) -> None:
    lab.store.put_entry(evolve(retrying(1), name="flaky"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["flaky"], "backoffLimit": 1})
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(60)
    (job,) = lab.store.children_of(set_id)
    runs = lab.store.runs(job.id)
    decided = [run.decision.action for run in runs if run.decision is not None]
    assert decided == [Action.RETRY, Action.RETRY, Action.RETRY, Action.FAIL]
    assert all(run.failure is not None and run.failure.cause is Cause.KERNEL_NONZERO_EXIT for run in runs)
    found = Explainer(lab.store).why(job.id)
    assert [run.uid for run in found.failed_pods] == [run.uid for run in runs]
    assert found.summary[2] == "1 earlier pod failed; --all shows more."
    declined = "It does not start again in its pod: 1 of 1 retries are used (flaky/default). "
    assert found.summary[3].endswith(f"{declined}It is retried after 10s: retry 1 of 1 (backoffLimit).")
    assert found.summary[4].endswith(". It is retried: retry 1 of 1 (flaky/default).")
    assert found.summary[5].endswith(f"{declined}It is not retried: 1 of 1 retries are used (backoffLimit).")


def test_a_pod_has_one_decision_and_names_each_limit_once(lab: SetLab) -> None:
    lab.store.put_settings(RetrySettings(global_max_retries=5), None)
    lab.store.put_entry(evolve(retrying(0), name="strict"))
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["strict"], "backoffLimit": 1})
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(60)
    (job,) = lab.store.children_of(set_id)
    first, last = (run.decision for run in lab.store.runs(job.id))
    assert first is not None
    assert last is not None
    assert (first.reason, first.policy, first.delay_s) == ("replaced", None, 10.0)
    names = ["globalMaxRetries", "backoffLimit"]
    assert [(use.name, use.used) for use in first.limits] == [(name, 0) for name in names]
    assert [(use.name, use.used) for use in last.limits] == [(name, 1) for name in names]
    assert (last.action, last.code) == (Action.FAIL, DecisionCode.POLICY_LIMIT)
    assert first.considered == (
        Considered("strict", "default", matched=True, because="the retry limit is 0 (strict/default)"),
    )


def test_a_program_that_starts_again_in_its_pod_names_the_rule_and_how_long_it_waits(lab: SetLab) -> None:
    document = native({"name": "w", "command": ["true"], "restartPolicy": "OnFailure", "backoffLimit": 3})
    set_id = lab.submit_set(document, lambda _: exits(3))
    lab.pass_s(60)
    (job,) = lab.store.children_of(set_id)
    told = Explainer(lab.store).why(job.id).summary
    assert any(line.endswith("It is retried by rule OnFailure of restartPolicy after 10s: uncounted.") for line in told)


@pytest.mark.parametrize("cap", [0, 2])
def test_the_operators_cap_bounds_how_many_failed_pods_a_job_replaces(lab: SetLab, cap: int) -> None:
    lab.store.put_settings(RetrySettings(global_max_retries=cap), None)
    set_id = lab.submit_set(native({"name": "w", "command": ["true"], "backoffLimit": 6}), lambda _: exits(3))
    lab.pass_s(600)
    (job,) = lab.store.children_of(set_id)
    assert len(lab.orders) == 1 + cap
    last = lab.store.runs(job.id)[-1].decision
    assert last is not None
    assert last.code is DecisionCode.GLOBAL_LIMIT


def test_handler_limits_hold_for_a_pod_that_does_not_start(lab: SetLab) -> None:
    limits = {"PromoteToRunning": {"timeout_s": 5.0}}
    lab.store.put_settings(RetrySettings(handler_limits=limits), None)
    set_id = lab.submit_set(native({"name": "w", "command": ["true"]}), lambda _: SimulatedRun(start_delay_s=900.0))
    lab.pass_s(8)
    (job,) = lab.store.children_of(set_id)
    assert [run.status for run in lab.store.runs(job.id)][:1] == [RunStatus.ERROR]


def test_a_pod_may_take_any_time_to_start_where_there_is_no_limit(lab: SetLab) -> None:
    lab.store.put_settings(RetrySettings(handler_limits={"PromoteToRunning": {"timeout_s": None}}), None)
    document = native({"name": "w", "command": ["true"]})
    set_id = lab.submit_set(document, lambda _: evolve(exits(0), start_delay_s=2000.0))
    lab.pass_s(1900, every_s=60.0)
    (job,) = lab.store.children_of(set_id)
    assert [run.status for run in lab.store.runs(job.id)] == [RunStatus.CREATING]
    lab.pass_s(300, every_s=10.0)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED


def test_a_job_has_started_once_however_often_its_pods_are_replaced(lab: SetLab) -> None:
    document = native({"name": "w", "command": ["true"], "backoffLimit": 1})
    set_id = lab.submit_set(document, fails_first("train-w-0"))
    lab.pass_s(3)
    (first,) = lab.store.children_of(set_id)
    lab.pass_s(60)
    (last,) = lab.store.children_of(set_id)
    assert (len(lab.orders), first.started_at is None) == (2, False)
    assert last.started_at == first.started_at


def test_the_event_of_a_sets_end_says_why(lab: SetLab) -> None:
    set_id = lab.submit_set(native({"name": "w", "command": ["true"]}), lambda _: exits(3))
    lab.pass_s(10)
    told = [one.event for one in lab.store.events(limit=1000) if isinstance(one.event, JobSetEnded)]
    message = "jobset failed due to one or more job failures (first failed job: train-w-0)"
    assert told == [JobSetEnded(set_id, "train", "Failed", "FailedJobs", message)]


def test_an_engine_that_places_pods_itself_is_told_the_node_a_restarted_one_avoids(lab: SetLab) -> None:
    lab.use(NodeInfo("all", Resources(16_000, 64 << 30, 0)), also=[Capability.PLACEMENT])
    lab.store.put_entry(evolve(retrying(1), name="elsewhere", anti_affinity=AntiAffinity.NODE))
    pod = {"name": "w", "command": ["true"], "retryPolicies": ["elsewhere"]}
    set_id = lab.submit_set(
        native(pod), lambda order: evolve(exits(3 if order.avoid_node is None else 0), nodes=("n7", "n8"))
    )
    lab.pass_s(60)
    assert [order.avoid_node for order in lab.orders] == [None, "n7"]
    (job,) = lab.store.children_of(set_id)
    assert [run.outcome.node for run in lab.store.runs(job.id) if run.outcome is not None] == ["n7", "n8"]


def test_a_rule_about_the_output_decides_about_a_pod(lab: SetLab) -> None:
    rule = Rule(Action.RETRY, "fabric", log="NCCL", retry_limit=1)
    lab.store.put_entry(RetryPolicy("fabric", (rule,)))
    crash = RunOutcome((ContainerResult(1, reason="Error"),), log="NCCL timeout\n" + "closing\n" * 1000)
    document = native({"name": "w", "command": ["true"], "retryPolicies": ["fabric"], "backoffLimit": 0})
    set_id = lab.submit_set(document, lambda _: SimulatedRun(1.0, 1.0, crash))
    lab.pass_s(60)
    (job,) = lab.store.children_of(set_id)
    runs = lab.store.runs(job.id)
    assert next((run.decision.rule, run.decision.action) for run in runs if run.decision is not None) == (
        "fabric",
        Action.RETRY,
    )
    assert next(run.failure.error_line for run in runs if run.failure is not None) == "closing"


def test_a_program_that_can_never_start_is_started_again_in_its_pod_as_upstream_does(lab: SetLab) -> None:
    missing = RunOutcome(
        (ContainerResult(127, reason="CommandNotFound"),), frozenset({FailureCondition.LAUNCH_FAILED}), started=False
    )
    document = native({"name": "w", "command": ["true"], "restartPolicy": "OnFailure", "backoffLimit": 2})
    lab.submit_set(document, lambda _: SimulatedRun(0.0, 1.0, missing))
    lab.pass_s(45)
    assert len(lab.orders) == 3
    assert len({order.containers[0].env["POD_NAME"] for order in lab.orders}) == 1
