"""Warnings and silence of pods: read from annotations and the short form, heeded when a set is suspended or drained."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects.documents import read_documents
from holdfast.dialects.manifests import read_manifest
from holdfast.domain.failure import EndedBy
from holdfast.domain.job import Resources
from holdfast.domain.lifecycle import Interruption, RunStatus
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.watching import EarlyWarning, StallLimits
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import InvalidManifest
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.jobset_lab import SetLab, change_to, compiled, group, manifest

ENDLESS = SimulatedRun(0.0, None, term_delay_s=1.0)
NATIVE = """
apiVersion: holdfast.dev/v1
kind: JobSet
metadata: {name: train}
spec:
  jobs:
  - name: w
    command: [sleep, "9"]
    deadline: 1h
    signal: {name: USR2, before: 20s}
    stall: {noOutput: 10m}
"""


def watched(**annotations: str) -> dict[str, Any]:
    document = manifest(replicatedJobs=[group("w", 1)])
    template = document["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]
    template["metadata"] = {"annotations": {f"holdfast.dev/{name}": value for name, value in annotations.items()}}
    return document


def test_annotations_of_a_pod_template_ask_for_warnings_and_for_silence_to_be_ended() -> None:
    program = compiled(watched(signal="USR2@2m", stall="noOutput=10m,noProgress=30m")).replicated_jobs[0].program
    assert program.warning == EarlyWarning(120.0, "USR2")
    assert program.stall == StallLimits(no_output_s=600.0, no_progress_s=1800.0)
    assert compiled(watched(signal="30s")).replicated_jobs[0].program.warning == EarlyWarning(30.0, "TERM")


def test_the_short_form_has_the_same_fields_as_a_job() -> None:
    found = read_manifest(read_documents(NATIVE)[0])
    assert isinstance(found, JobSetSpec)
    program = found.replicated_jobs[0].program
    assert (program.warning, program.stall) == (EarlyWarning(20.0, "USR2"), StallLimits(no_output_s=600.0))


@pytest.mark.parametrize(
    ("annotations", "path"),
    [
        ({"signal": "KILL@2m"}, "signal.name"),
        ({"signal": "USR2"}, "signal.before"),
        ({"stall": "noSound=3m"}, "stall.noSound"),
    ],
)
def test_what_cannot_be_heeded_is_refused_with_where_it_is(annotations: dict[str, str], path: str) -> None:
    with pytest.raises(InvalidManifest) as caught:
        compiled(watched(**annotations))
    assert any(problem.path.endswith(f"metadata.annotations.holdfast.dev/{path}") for problem in caught.value.problems)


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def test_pods_of_a_suspended_set_are_warned_and_have_their_time_though_the_controller_dies(lab: SetLab) -> None:
    document = watched(signal="20s")
    set_id = lab.submit_set(document, lambda _: ENDLESS)
    lab.pass_s(10)
    document["spec"]["suspend"] = True
    lab.ask_set(RequestKind.HOLD, set_id, payload=change_to(document))
    lab.pass_s(10)
    lab.restart_controller()
    lab.restart_executor()
    lab.pass_s(9)
    assert lab.engine_runs() == ["id-train-w-0-1-0-1"]
    lab.pass_s(5)
    (run,) = lab.store.runs("id-train-w-0")
    assert run.outcome is not None
    assert (run.interrupted, run.outcome.ended_by) == (Interruption.HOLD, EndedBy.SUSPENSION)
    assert run.outcome.warned_at is not None
    assert 20.0 <= run.outcome.ended_at - run.outcome.warned_at <= 22.0
    assert lab.engine_runs() == []


def test_a_long_warning_is_waited_for_before_a_pod_is_given_up(lab: SetLab) -> None:
    set_id = lab.submit_set(watched(signal="300s"), lambda _: ENDLESS)
    lab.pass_s(10)
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(250, every_s=5.0)
    (run,) = lab.store.runs("id-train-w-0")
    assert run.status is RunStatus.TERMINATING


def test_deleting_the_set_waits_for_no_warning_that_a_suspension_has_begun(lab: SetLab) -> None:
    document = watched(signal="100s")
    set_id = lab.submit_set(document, lambda _: ENDLESS)
    lab.pass_s(10)
    document["spec"]["suspend"] = True
    lab.ask_set(RequestKind.HOLD, set_id, payload=change_to(document))
    lab.pass_s(5)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(5)
    assert lab.engine_runs() == []


def test_silent_pods_are_ended_as_stalled(lab: SetLab) -> None:
    lab.submit_set(watched(stall="noOutput=10s"), lambda _: SimulatedRun(0.0, None, silent_after_s=5.0))
    lab.pass_s(30)
    run = lab.store.runs("id-train-w-0")[0]
    assert run.outcome is not None
    assert run.outcome.ended_by is EndedBy.STALL
