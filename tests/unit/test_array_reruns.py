"""Tasks of arrays are run again in an array of their own, under the real controller and a real database."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import JobState, Resources
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.domain.workloads.array.rerun import TaskChoice
from holdfast.domain.workloads.dependencies import Dependency, DependencyKind
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import AlreadyExists, Conflict, InvalidRequest, NotFound
from holdfast.ports.requests import RequestKind
from holdfast.service.arrays import array_named, explained, progress_of
from holdfast.service.reruns import Reran, rerun, reruns_of
from holdfast.service.submit import Submitter
from tests.unit.conftest import exits
from tests.unit.test_arrays import ArrayLab, sweep

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.domain.workloads.array.progress import Progress
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

FAILED = TaskChoice(failed=True)
BROKEN = ("sweep-2", "sweep-5", "sweep-6")


class Ids:
    """Ids in order."""

    def __init__(self) -> None:
        self.numbers = count(1)

    def new(self) -> str:
        return f"id{next(self.numbers)}"


@pytest.fixture
def lab(tmp_path: Path) -> ArrayLab:
    return ArrayLab(tmp_path / "holdfast.db")


@pytest.fixture
def desk(lab: ArrayLab) -> Submitter:
    return Submitter(lab.store, lab.clock, Ids())


def progress(lab: ArrayLab, name: str) -> Progress:
    return progress_of(array_named(lab.store, name), lab.store, lab.clock.now())


def named(spec: ArraySpec, name: str) -> ArraySpec:
    """Give an array its name, and its tasks more memory."""
    return evolve(spec, job=evolve(spec.job, name=name, resources=Resources(1000, 2 << 30)))


def again(desk: Submitter, wanted: TaskChoice = FAILED, of: str = "sweep", *, dry_run: bool = False) -> Reran:
    return rerun(desk, of, wanted, named, dry_run=dry_run)


def broken(order: RunOrder) -> SimulatedRun:
    return exits(7 if order.job_name == "sweep-6" else 1 if order.job_name in BROKEN else 0)


def ended(lab: ArrayLab, total: int = 9) -> None:
    """Have an array end with three failures."""
    lab.plan = broken
    lab.submit_array(sweep(total))
    lab.pass_s(20)
    assert progress(lab, "sweep").array.state.failed == len(BROKEN)


def test_those_that_failed_run_again_by_their_indexes_with_what_was_changed(lab: ArrayLab, desk: Submitter) -> None:
    ended(lab)
    lab.orders.clear()
    assert again(desk, dry_run=True).spec.total == len(BROKEN)
    made = again(desk).array
    assert (made.name, [one.name for one in made.origins]) == ("sweep-rerun-1", ["sweep"])
    for _ in range(20):
        lab.pass_s(0.5, every_s=0.5)
        lab.restart_controller()
    assert progress(lab, made.name).array.ended == "Succeeded"
    assert lab.started() == {f"sweep-rerun-1-{index}": 1 for index in (2, 5, 6)}
    for order in lab.orders:
        index = order.job_name.rpartition("-")[2]
        assert order.checkpoints_of == (f"sweep-sweep-{index}",)
        env = order.containers[0].env
        assert (env["HOLDFAST_ARRAY_INDEX"], env["HOLDFAST_ARRAY_NAME"], env["HOLDFAST_ARRAY_SIZE"]) == (
            index, "sweep", "9",
        )  # fmt: skip
        assert order.resources.memory == 2 << 30
    assert [one.name for one in reruns_of(lab.store, array_named(lab.store, "sweep"))] == ["sweep-rerun-1"]
    assert progress(lab, "sweep").array.state.failed == len(BROKEN)


def test_each_task_is_rerun_once_and_what_fails_there_is_rerun_there(lab: ArrayLab, desk: Submitter) -> None:
    ended(lab)
    again(desk, TaskChoice(failed=True, indexes=frozenset({0, 5})))
    rest = again(desk)
    assert (list(rest.spec.every_index()), rest.array.name) == ([2, 6], "sweep-rerun-2")
    assert "task 5 was left out: rerun already in sweep-rerun-1" in str(rest.warnings[0])
    with pytest.raises(Conflict, match=r"tasks 2,5,6 of array 'sweep' .* already: .*-1 \(id1\), .*-2 \(id2\)"):
        again(desk)
    lab.plan = lambda _: exits(1)
    lab.pass_s(20)
    third = again(desk, of="sweep-rerun-2")
    assert (third.array.name, [one.name for one in third.array.origins]) == (
        "sweep-rerun-3", ["sweep-rerun-2", "sweep"],
    )  # fmt: skip
    lab.ask(RequestKind.DELETE, "id2")
    lab.pass_s(3)
    with pytest.raises(Conflict, match=r"were rerun already: sweep-rerun-1 \(id1\), sweep-rerun-3 \(id3\)"):
        again(desk)
    lab.ask(RequestKind.DELETE, "id3")
    lab.pass_s(3)
    assert list(again(desk).spec.every_index()) == [2, 6]


def test_they_are_chosen_by_what_they_failed_with(lab: ArrayLab, desk: Submitter) -> None:
    ended(lab)
    by = TaskChoice(failed=True, causes=frozenset({"kernel_nonzero_exit"}))
    assert list(again(desk, by, dry_run=True).spec.every_index()) == [2, 5, 6]
    with pytest.raises(NotFound, match="no task of array 'sweep' failed with oom_killed") as refused:
        again(desk, evolve(by, causes=frozenset({"oom_killed"})))
    assert refused.value.hint == "tasks of it failed with: kernel_nonzero_exit"


def test_those_that_go_on_are_left_alone_and_those_never_made_are_cancelled_ones(
    lab: ArrayLab, desk: Submitter
) -> None:
    lab.plan = lambda order: exits(1) if order.job_name == "sweep-0" else exits(0, after_s=1000)
    lab.submit_array(sweep(8, max_running=3))
    lab.pass_s(10)
    assert list(again(desk, dry_run=True).spec.every_index()) == [0]
    with pytest.raises(NotFound, match="no task of array 'sweep' has been cancelled") as refused:
        again(desk, TaskChoice(cancelled=True))
    assert refused.value.hint == "tasks 1-7 have not ended yet"
    for index in (1, 7):
        with pytest.raises(Conflict, match=f"task {index} of array 'sweep' has not ended yet"):
            again(desk, TaskChoice(indexes=frozenset({0, index})))
    lab.ask(RequestKind.CANCEL, "sweep")
    lab.pass_s(20)
    assert list(again(desk, TaskChoice(cancelled=True), dry_run=True).spec.every_index()) == [1, 2, 3, 4, 5, 6, 7]
    assert list(again(desk, TaskChoice(indexes=frozenset({7, 0})), dry_run=True).spec.every_index()) == [0, 7]


def test_what_cannot_be_rerun_is_refused_with_what_could(lab: ArrayLab, desk: Submitter) -> None:
    lab.submit_array(sweep(3))
    lab.pass_s(10)
    with pytest.raises(NotFound, match="no task of array 'sweep' has failed"):
        again(desk)
    with pytest.raises(NotFound, match="array 'sweep' has no tasks 3,9") as unknown:
        again(desk, TaskChoice(indexes=frozenset({9, 1, 3})))
    assert unknown.value.hint == "it has 0-2"
    with pytest.raises(InvalidRequest) as empty:
        again(desk, TaskChoice())
    assert empty.value.problems[0].allowed == ("failed", "cancelled", "causes", "indices")
    with pytest.raises(NotFound, match="array 'none' does not exist"):
        again(desk, of="none")
    with pytest.raises(AlreadyExists):
        rerun(desk, "sweep", TaskChoice(indexes=frozenset({1})), lambda spec, _: named(spec, "sweep"))
    assert [one.name for one in lab.store.workloads(Array)] == ["sweep"]
    assert lab.stored() == {JobState.SUCCEEDED: 3}


def test_tasks_that_failed_or_were_cancelled_alike_are_told_of_together_and_looked_up_at_once(
    lab: ArrayLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.plan = broken
    lab.submit_array(sweep(9))
    job = JobSpec(
        "next", ("next",), after=(Dependency("sweep", by_index=True, target=DependencyKind.ARRAY, id="sweep"),)
    )
    lab.submit_array(evolve(sweep(9), job=job))
    lab.pass_s(30)
    monkeypatch.setattr(lab.store, "attempts", None)
    failed = explained(progress(lab, "sweep"), lab.store)
    assert [
        (group.why, group.exit_code, [one.name for one in group.jobs]) for group in failed.groups
    ] == [("kernel_nonzero_exit", 1, ["sweep-2", "sweep-5"]), ("kernel_nonzero_exit", 7, ["sweep-6"])]  # fmt: skip
    [group] = explained(progress(lab, "next"), lab.store).groups
    assert (group.state, group.why, [one.name for one in group.jobs]) == (
        JobState.CANCELLED, "job sweep-I did not succeed", ["next-2", "next-5", "next-6"],
    )  # fmt: skip
    assert "job sweep-6 did not succeed: it failed: exit code 7" in group.jobs[-1].reason
    assert {each.state for each in failed.groups} == {JobState.FAILED}
