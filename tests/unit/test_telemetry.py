"""The loops' own metrics, fed by real ticks."""

from __future__ import annotations

import pytest

from holdfast.app import armada_metrics
from holdfast.app.telemetry import STALLED_AFTER_S, Telemetry
from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import Queue, Resources
from holdfast.domain.policy.model import Action, Rule
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, ends_with, exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest


def observe(lab: Lab, telemetry: Telemetry, seconds: int) -> None:
    tick = lab.controller.tick

    def told(*arguments: object, **options: object) -> object:
        ticked = tick(*arguments, **options)  # type: ignore[arg-type] # passed through as they came
        short, alone, now = lab.controller.shortages.by_name(), len(lab.controller.quarantine), lab.clock.now()
        telemetry.ticked(ticked, short=short, quarantined=alone, took_s=0.0, now=now)
        return ticked

    lab.controller.tick = told  # type: ignore[method-assign,assignment] # a listener, not a stand-in
    lab.pass_s(seconds)


def test_ticks_are_counted_by_what_they_committed(lab: Lab) -> None:
    telemetry = Telemetry(lab.clock.now)
    lab.submit(job_named("flaky", retrying(3)), lambda order: exits(0 if order.attempt == 3 else 9))
    observe(lab, telemetry, 10)
    value = telemetry.registry.get_sample_value
    judged = {"action": "Retry", "code": "retry", "cause": "kernel_nonzero_exit"}
    assert value("holdfast_decisions_total", judged) == 2
    assert value("holdfast_attempts_ended_total", {"ending": "Succeeded"}) == 1
    assert value("holdfast_runs_ended_total", {"status": "ERROR"}) == 2
    assert value("holdfast_decision_seconds_count") == 2


def test_failures_are_counted_under_armadas_names_while_its_door_is_open(lab: Lab) -> None:
    telemetry = Telemetry(lab.clock.now, doors=("armada",))
    lab.store.put_entry(evolve(retrying(2), name="twice"))
    for name in ("ml", "other"):
        lab.store.put_entry(Queue(name))
    lab.submit(evolve(job_named("storm", queue="ml"), retry_policies=("twice",)), exits(9))
    lab.submit(job_named("plain", queue="other"), exits(0))
    observe(lab, telemetry, 20)
    value = telemetry.registry.get_sample_value
    decided = {"queue": "ml", "pool": "default", "policy": "twice"}
    name = "armada_scheduler_retry_policy_decisions_total"
    assert value(name, {**decided, "decision": "retry"}) == 2
    assert value(name, {**decided, "decision": "fail_policy_limit"}) == 1
    category = {"failure_category": "", "failure_subcategory": ""}
    assert value("armada_executor_job_failure_category_total", category) == 3
    of_queue = {"queue": "ml", "pool": "default", "category": "", "subcategory": ""}
    assert value("armada_scheduler_job_error_classification_by_queue", of_queue) == 1
    of_node = {"node": "n0", "pool": "default", "cluster": "local", "category": "", "subcategory": ""}
    assert value("armada_scheduler_job_error_classification_by_node", of_node) == 1
    closed = Telemetry(lab.clock.now)
    assert not [one.name for one in closed.registry.collect() if one.name.startswith("armada_")]


def test_states_of_jobs_are_counted_as_armadas_scheduler_does(lab: Lab) -> None:
    telemetry = Telemetry(lab.clock.now, doors=("armada",))
    lab.store.put_entry(Queue("ml"))
    asks = Resources(1500, 3 << 30)
    lab.submit(job_named("works", queue="ml", resources=asks, gang=2), exits(0, after_s=3))
    lab.submit(job_named("fails", retrying(1), queue="ml"), exits(9))
    rule = Rule(Action.FAIL, "taken", conditions=frozenset({FailureCondition.PREEMPTED}))
    taken = evolve(ends_with(FailureCondition.PREEMPTED, EndedBy.PREEMPTION), duration_s=1.0)
    lab.submit(job_named("taken", retrying(1, rules=(rule,)), queue="ml"), taken)
    gone = lab.submit(job_named("gone", queue="ml"), SimulatedRun(duration_s=None))
    waits = lab.submit(job_named("waits", queue="ml", resources=Resources(64_000)))
    observe(lab, telemetry, 10)
    lab.ask(RequestKind.CANCEL, gone)
    lab.ask(RequestKind.CANCEL, waits)
    lab.pass_s(10)
    value, name = telemetry.registry.get_sample_value, "armada_scheduler_job_state_{}_by_{}"
    of_queue, of_node = {"queue": "ml", "pool": "default"}, {"node": "n0", "pool": "default", "cluster": "local"}
    for state in ("succeeded", "failed", "preempted", "cancelled"):
        moved = {"state": state, "priorState": "running"}
        assert value(name.format("counter", "queue"), {**of_queue, **moved}) == 1, state
        assert value(name.format("counter", "node"), {**of_node, **moved}) == 1, state
    moved = {"state": "succeeded", "priorState": "running"}
    assert value(name.format("seconds", "queue"), {**of_queue, **moved}) == pytest.approx(3, abs=0.5)
    worked = value(name.format("seconds", "queue"), {**of_queue, **moved}) or 0
    for resource, each in (("cpu", 1.5), ("memory", 3 << 30), ("nvidia.com/gpu", None)):
        expected = None if each is None else pytest.approx(worked * 2 * each)
        asked_for = {**moved, "resource": resource}
        assert value(name.format("resource_seconds", "queue"), {**of_queue, **asked_for}) == expected
        assert value(name.format("resource_seconds", "node"), {**of_node, **asked_for}) == expected
    assert value("armada_scheduler_job_run_completed_duration_seconds_count", of_queue) == 4
    of_none = {**of_queue, "pool": "", "state": "cancelled", "priorState": "queued"}
    assert value(name.format("counter", "queue"), of_none) == 1, "a job without a place"


def test_names_that_people_choose_make_no_more_than_so_many_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(armada_metrics, "MOST_SERIES", 3)
    lab = Lab()
    telemetry = Telemetry(lab.clock.now, doors=("armada",))
    for n in range(9):
        lab.store.put_entry(Queue(f"queue-{n}"))
        lab.submit(job_named(f"job-{n}", queue=f"queue-{n}"), exits(9))
    observe(lab, telemetry, 20)
    [family] = [
        one for one in telemetry.registry.collect() if one.name == "armada_scheduler_job_error_classification_by_queue"
    ]
    assert [one.labels["queue"] for one in family.samples] == ["queue-0", "queue-1", "queue-2", "other"]
    assert family.samples[-1].value == 6


def test_job_sets_are_counted_by_how_they_end_and_what_was_decided() -> None:
    lab = SetLab()
    telemetry = Telemetry(lab.clock.now)
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 1})
    lab.submit_set(document, fails_first("train-w-0", times=2))
    observe(lab, telemetry, 20)
    value = telemetry.registry.get_sample_value
    assert value("holdfast_jobsets_ended_total", {"outcome": "Failed"}) == 1
    assert value("holdfast_jobset_decisions_total", {"action": "RestartJobSet", "granted": "true"}) == 1
    assert value("holdfast_jobset_decisions_total", {"action": "RestartJobSet", "granted": "false"}) == 1


def test_readiness_names_what_keeps_the_loops_from_working(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry(lab.clock.now)
    assert telemetry.ready() == "the controller has not started"
    observe(lab, telemetry, 1)
    assert telemetry.ready() is None
    lab.clock.time += STALLED_AFTER_S + 1
    assert telemetry.ready() == "the controller loop has not run for 3 s"

    def refuse(_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(lab.store, "commit", refuse)
    lab.submit(job_named("job"))
    lab.pass_s(1)
    assert telemetry.ready() == "the database refuses commits"
