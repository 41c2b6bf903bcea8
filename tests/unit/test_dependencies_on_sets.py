"""Jobs and arrays that wait for job sets, under the real controller in virtual time."""

from __future__ import annotations

from itertools import count

import pytest

from holdfast.domain.job import JobState, Resources
from holdfast.domain.workloads.array.model import Array, ArraySpec, Indexes
from holdfast.domain.workloads.dependencies import Condition, Dependency, DependencyKind
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.submit import Submitter, WrittenJob
from tests.unit.conftest import exits, job_named
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest

SUCCEEDED, CANCELLED, WAITING = JobState.SUCCEEDED, JobState.CANCELLED, JobState.WAITING


class Numbers:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self) -> str:
        return f"id{next(self._numbers):04}"


@pytest.fixture
def lab() -> SetLab:
    lab = SetLab()
    lab.use(NodeInfo("n0", Resources(16_000, 64 << 30, 0)))
    return lab


def after_set(lab: SetLab, *conditions: Condition) -> list[str]:
    """Submit a job for each condition of the job set train."""
    submitter = Submitter(lab.store, lab.clock, Numbers())
    specs = [job_named(one, after=(Dependency("train", one, target=DependencyKind.JOB_SET),)) for one in conditions]
    submitter.submit_many(specs)
    spec = job_named("sweep", after=(Dependency("train"),))
    submitter.submit_array(WrittenJob(spec, array=ArraySpec(spec, (Indexes(0, 2),)), manifest="{}"))
    return list(conditions)


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
@pytest.mark.parametrize(
    ("failing", "expected", "array"),
    [(0, [SUCCEEDED, CANCELLED, SUCCEEDED], "Succeeded"), (1, [CANCELLED, SUCCEEDED, SUCCEEDED], "Cancelled")],
)
def test_what_waits_for_a_set_goes_by_how_it_ends(
    lab: SetLab, failing: int, expected: list[JobState], array: str, *, restarts: bool
) -> None:
    lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), fails_first("train-w-0", times=failing))
    names = after_set(lab, Condition.OK, Condition.FAILED, Condition.ENDED)
    for _ in range(20):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert [lab.job(name).state for name in names] == expected
    assert lab.store.workload(Array, "sweep").ended == array
    assert lab.controller.state.waits.awaited == {}


def test_a_restart_of_the_set_is_no_failure(lab: SetLab) -> None:
    document = manifest(replicatedJobs=[group("w", 2)], failurePolicy={"maxRestarts": 1})
    lab.submit_set(document, fails_first("train-w-0"))
    [name] = after_set(lab, Condition.OK)
    lab.pass_s(3)
    assert (lab.job(name).state, lab.job(name).reason) == (WAITING, "waits for job set train to succeed")
    lab.pass_s(20)
    assert lab.job(name).state is SUCCEEDED


def test_a_set_that_is_deleted_before_it_ends_can_never_be_waited_for_any_more(lab: SetLab) -> None:
    set_id = lab.submit_set(manifest(replicatedJobs=[group("w", 2)]), lambda _: exits(0, after_s=50.0))
    names = after_set(lab, Condition.OK, Condition.ENDED)
    lab.pass_s(3)
    lab.ask_set(RequestKind.DELETE, set_id)
    lab.pass_s(60)
    assert [lab.job(name).reason for name in names] == [
        "job set train did not succeed: it was deleted",
        "job set train did not end: it was deleted",
    ]


@pytest.mark.parametrize("restarts", [False, True], ids=["one controller", "restarted all the time"])
def test_a_set_that_is_forgotten_as_soon_as_it_has_ended_has_ended_as_it_did(lab: SetLab, *, restarts: bool) -> None:
    lab.submit_set(manifest(replicatedJobs=[group("w", 2)], ttlSecondsAfterFinished=0), lambda _: exits(0, after_s=5.0))
    names = after_set(lab, Condition.OK, Condition.FAILED, Condition.ENDED)
    for _ in range(20):
        lab.pass_s(1)
        if restarts:
            lab.restart_controller()
    assert lab.store.workloads(JobSet) == []
    assert [lab.job(name).state for name in names] == [SUCCEEDED, CANCELLED, SUCCEEDED]
    assert lab.job("failed").reason.startswith("job set train did not fail: it succeeded")
    assert lab.store.workload(Array, "sweep").ended == "Succeeded"
