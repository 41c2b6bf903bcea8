"""The loops' own metrics, fed by real ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.telemetry import STALLED_AFTER_S, Telemetry
from holdfast.errors import Unavailable
from tests.unit.conftest import Lab, exits, job_named, retrying
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest

if TYPE_CHECKING:
    import pytest


def _observe(lab: Lab, telemetry: Telemetry, seconds: int) -> None:
    tick = lab.controller.tick

    def told(*arguments: object, **options: object) -> object:
        ticked = tick(*arguments, **options)  # type: ignore[arg-type] # passed through as they came
        telemetry.ticked(ticked, began=lab.clock.now(), now=lab.clock.now())
        return ticked

    lab.controller.tick = told  # type: ignore[method-assign,assignment] # a listener, not a stand-in
    lab.pass_s(seconds)


def test_ticks_are_counted_by_what_they_committed(lab: Lab) -> None:
    telemetry = Telemetry(lab.clock.now)
    lab.submit(job_named("flaky", retrying(3)), lambda order: exits(0 if order.attempt == 3 else 9))
    _observe(lab, telemetry, 10)
    value = telemetry.registry.get_sample_value
    judged = {"action": "Retry", "code": "retry", "cause": "kernel_nonzero_exit"}
    assert value("holdfast_decisions_total", judged) == 2
    assert value("holdfast_attempts_ended_total", {"ending": "Succeeded"}) == 1
    assert value("holdfast_runs_ended_total", {"status": "ERROR"}) == 2
    assert value("holdfast_decision_seconds_count") == 2


def test_job_sets_are_counted_by_how_they_end_and_what_was_decided() -> None:
    lab = SetLab()
    telemetry = Telemetry(lab.clock.now)
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 1})
    lab.submit_set(document, fails_first("train-w-0", times=2))
    _observe(lab, telemetry, 20)
    value = telemetry.registry.get_sample_value
    assert value("holdfast_jobsets_ended_total", {"outcome": "Failed"}) == 1
    assert value("holdfast_jobset_decisions_total", {"action": "RestartJobSet", "granted": "true"}) == 1
    assert value("holdfast_jobset_decisions_total", {"action": "RestartJobSet", "granted": "false"}) == 1


def test_readiness_names_what_keeps_the_loops_from_working(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    telemetry = Telemetry(lab.clock.now)
    assert telemetry.ready() == "the controller has not started"
    _observe(lab, telemetry, 1)
    assert telemetry.ready() is None
    lab.clock.time += STALLED_AFTER_S + 1
    assert telemetry.ready() == "the controller loop has not run for 3 s"

    def refuse(_: object) -> None:
        raise Unavailable

    monkeypatch.setattr(lab.store, "commit", refuse)
    lab.submit(job_named("job"))
    lab.pass_s(1)
    assert telemetry.ready() == "the database refuses commits"
