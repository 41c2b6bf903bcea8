"""Programs that start again in their pod: as often as the kubelet starts them, and once each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.job import JobState, Resources
from holdfast.domain.lifecycle import Ending
from holdfast.domain.record import evolve
from holdfast.domain.workloads.jobset.state import JobSet, Terminal
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.wire.render_jobsets import set_summary
from tests.unit.conftest import exits
from tests.unit.jobset_lab import FOREVER, SetLab, fails_first, group, manifest

if TYPE_CHECKING:
    from typing import Any


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def test_a_program_that_fails_on_failure_starts_again_in_its_pod(lab: SetLab) -> None:
    job = group("w", 1, restartPolicy="OnFailure", backoffLimit=5)
    set_id = lab.submit_set(manifest(replicatedJobs=[job]), fails_first("train-w-0", times=2))
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    record = lab.store.workloads_by_id(KubeJobRecord, ["id-train-w-0"])["id-train-w-0"]
    assert record.state.failed == 0
    assert len(lab.orders) == 3


@pytest.mark.parametrize(("limit", "programs"), [(0, 2), (1, 2), (3, 4)])
def test_programs_start_again_in_their_pod_as_often_as_the_kubelet_starts_them(
    lab: SetLab, limit: int, programs: int
) -> None:
    document = manifest(replicatedJobs=[group("w", 1, restartPolicy="OnFailure", backoffLimit=limit)])
    set_id = lab.submit_set(document, lambda _: exits(3, after_s=5.0))
    lab.pass_s(200)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.FAILED
    assert lab.store.job("train-w-0").reason.startswith("BackoffLimitExceeded")
    runs = lab.store.runs("id-train-w-0")
    assert [run.outcome.ended_by.value for run in runs if run.outcome] == ["itself"] * (programs - 1) + ["cascade"]
    assert round(runs[-1].started_at or 0.0) - round(runs[-2].ended_at or 0.0) == 10 * 2 ** (programs - 2)
    failure = lab.store.attempts("id-train-w-0")[0].failure
    assert failure is not None
    assert [one.exit_code for one in failure.containers] == [3]


@pytest.mark.parametrize(
    ("job", "programs", "restarts"),
    [({"restartPolicy": "OnFailure", "backoffLimit": 5}, 3, 2), ({"backoffLimit": 5}, 3, 0)],
    ids=["in its pod", "in new pods"],
)
def test_a_controller_that_dies_all_the_time_counts_each_failed_program_once(
    lab: SetLab, job: dict[str, Any], programs: int, restarts: int
) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 1, **job)]), fails_first("train-w-0", times=2))
    most = 0
    for _ in range(200):
        lab.pass_s(0.5)
        lab.restart_controller()
        pods = lab.store.workloads_by_id(KubeJobRecord, ["id-train-w-0"])["id-train-w-0"].pods
        most = max([most, *(pod.restarts for pod in pods)])
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert (len(lab.orders), most) == (programs, restarts)
    names = {order.containers[0].env["POD_NAME"] for order in lab.orders}
    assert len(names) == programs - restarts, "a pod keeps its name, and every program is told it"
    assert all(names)


def test_a_set_that_restarted_in_place_too_often_names_the_job_that_failed(lab: SetLab) -> None:
    policy = {"maxRestarts": 2, "restartStrategy": "InPlaceRestart"}
    forever = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "parallelism": 1, "completions": 1}
    document = manifest(replicatedJobs=[group("w", 2, **forever)], failurePolicy=policy)
    set_id = lab.submit_set(document, lambda order: exits(7 if order.job_name == "train-w-1" else 0, after_s=5.0))
    lab.pass_s(60)
    row = lab.store.workload(JobSet, set_id)
    assert [order.job_name for order in lab.orders].count("train-w-1") == 3
    told = [(one.what.reason, one.what.message) for one in lab.store.set_log(set_id)]
    again = ("RestartInPlace", "pod train-w-1-0-1: exit code 7; the set restarts in place")
    refused = "pod train-w-1-0-1: exit code 7; all 2 restarts in place of its job set are used (maxRestarts)"
    assert told[:3] == [again, again, ("RestartInPlaceRefused", refused)]
    assert told[3][0] == "ReachedMaxRestarts"
    failed, other = lab.store.job("train-w-1"), lab.store.job("train-w-0")
    assert (failed.state, failed.reason) == (
        JobState.FAILED,
        "exit code 7; all 2 restarts in place of its job set are used (maxRestarts)",
    )
    assert other.state is not JobState.FAILED
    (attempt,) = lab.store.attempts(failed.id)
    assert attempt.ending is Ending.FAILED
    assert attempt.failure is not None
    assert [one.exit_code for one in attempt.failure.containers] == [7]
    summary = set_summary(row, set_spec_of(row), queue="default")
    assert (summary.restarts_counted, summary.max_restarts) == (2, 2)


def test_a_job_that_failed_for_good_in_place_is_failed_although_the_controller_dies_while_its_pods_stop(
    lab: SetLab,
) -> None:
    policy = {"maxRestarts": 0, "restartStrategy": "InPlaceRestart"}
    two = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "parallelism": 2, "completions": 2}
    document = manifest(replicatedJobs=[group("w", 1, **two, completionMode="Indexed")], failurePolicy=policy)
    slow = evolve(exits(0, after_s=FOREVER), term_delay_s=5.0)
    lab.submit_set(document, lambda order: slow if order.rank else exits(7, after_s=5.0))
    for _ in range(60):
        lab.clock.time += 0.5
        lab.step()
        lab.restart_controller()
    job = lab.store.job("train-w-0")
    reason = "exit code 7; all 0 restarts in place of its job set are used (maxRestarts)"
    assert (job.state, job.reason) == (JobState.FAILED, reason)
    (attempt,) = lab.store.attempts(job.id)
    assert (attempt.ending, attempt.message) == (Ending.FAILED, reason)
    assert attempt.failure is not None
    assert [one.exit_code for one in attempt.failure.containers] == [7]


def test_a_failure_in_the_moment_its_set_is_suspended_does_not_count_once_it_is_resumed(lab: SetLab) -> None:
    policy = {"maxRestarts": 0, "restartStrategy": "InPlaceRestart"}
    one = {"backoffLimit": 2**31 - 1, "podReplacementPolicy": "Failed", "parallelism": 1, "completions": 1}
    document = manifest(replicatedJobs=[group("w", 1, **one), group("v", 1, **one)], failurePolicy=policy)
    set_id = lab.submit_set(document, fails_first("train-w-0"))
    lab.step(2)
    assert len(lab.orders) == 2
    lab.clock.time += 2.0
    lab.ask_set(RequestKind.HOLD, set_id)
    lab.pass_s(10)
    assert not lab.engine_runs()
    lab.ask_set(RequestKind.RELEASE, set_id)
    lab.pass_s(60)
    assert lab.store.workload(JobSet, set_id).state.terminal is Terminal.COMPLETED
    assert lab.store.job("train-w-0").state is JobState.SUCCEEDED
