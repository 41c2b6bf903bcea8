"""The world is worth something for arrays, too: the code, broken in named ways, is caught within a few seeds each."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.controller.workloads.arrays import Arrays
from holdfast.controller.workloads.owners import Owners
from holdfast.controller.workloads.submissions import ChildSubmitter
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array import reconcile
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.service import reruns, submit
from tests.property.breaks import Break, assert_noticed
from tools.simulate.world import ARRAYS_EVERY

if TYPE_CHECKING:
    from holdfast.domain.workloads.array.model import ArrayState


def more_are_made_than_may_run(patch: pytest.MonkeyPatch) -> None:
    room = reconcile._room
    patch.setattr(reconcile, "_room", lambda *known: room(*known) and room(*known) + 1)


def a_task_that_is_over_is_counted_at_every_look(patch: pytest.MonkeyPatch) -> None:
    look = Owners._look

    def forgetful(self: Owners[Any, Any], work: Any, now: float) -> None:
        over = {name: work.children[name] for name in work.over if name in work.children}
        look(self, work, now)
        work.children |= over

    patch.setattr(Owners, "_look", forgetful)


def counts_are_not_read_again_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arrays, "take_in", Owners.take_in)


def what_was_made_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    put = Arrays.put

    def late(self: Arrays, work: Any, row: Any) -> None:
        before = work.row
        put(self, work, row)
        if row.state.made > before.state.made:
            self._state.changes.workloads[row.id] = evolve(row, state=evolve(row.state, made=before.state.made))

    patch.setattr(Arrays, "put", late)


def submitted_tasks_are_not_taken_in(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ChildSubmitter, "take_in", lambda _self, work: work.submitted.clear())


def it_ends_before_its_tasks_have(patch: pytest.MonkeyPatch) -> None:
    ended = reconcile._ended
    patch.setattr(reconcile, "_ended", lambda spec, state, _alive, lost, now: ended(spec, state, 0, lost, now))


def a_cancelled_task_counts_as_failed(patch: pytest.MonkeyPatch) -> None:
    counted = reconcile._counted

    def harsh(state: ArrayState, children: Any) -> ArrayState:
        after = counted(state, children)
        lost = after.cancelled - state.cancelled
        return evolve(after, failed=after.failed + lost, cancelled=state.cancelled)

    patch.setattr(reconcile, "_counted", harsh)


def tasks_that_go_on_are_run_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(reruns, "is_selected", lambda *_: True)
    patch.setattr(reruns, "JOB_TERMINAL", frozenset(JobState))


def what_was_rerun_is_run_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(submit, "rerun_of", lambda _array, _there: None)


def a_held_array_goes_on_after_a_restart(patch: pytest.MonkeyPatch) -> None:
    take_in = Arrays.take_in
    patch.setattr(Arrays, "take_in", lambda self, row, jobs: take_in(self, released(row), jobs))


def released(row: Any) -> Any:
    return row if row.ended else evolve(row, state=evolve(row.state, held=""))


def those_that_wait_for_a_place_are_not_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Owners, "_suspend", lambda *_, **__: None)


def a_rerun_takes_other_checkpoints(patch: pytest.MonkeyPatch) -> None:
    task = ArraySpec.task
    patch.setattr(ArraySpec, "task", lambda spec, index, origins=(): task(spec, index, origins[:-1]))


BREAKS: dict[str, Break] = {
    "more are made than may run": (more_are_made_than_may_run, {"tasks-once", "never-raises"}, 5),
    "a task that is over is counted at every look": (
        a_task_that_is_over_is_counted_at_every_look,
        {"arrays-add-up", "nobody-quarantined"},
        19,
    ),
    "counts are not read again after a restart": (
        counts_are_not_read_again_after_a_restart,
        {"arrays-add-up", "all-ends", "nobody-quarantined"},
        12,
    ),
    "what was made is forgotten": (
        what_was_made_is_forgotten,
        {"tasks-once", "nobody-quarantined", "never-raises", "all-ends"},
        103,
    ),
    "submitted tasks are not taken in": (submitted_tasks_are_not_taken_in, {"no-job-lost"}, 5),
    "it ends before its tasks have": (it_ends_before_its_tasks_have, {"arrays-add-up"}, 5),
    "tasks that go on are run again": (tasks_that_go_on_are_run_again, {"reruns-follow"}, 19),
    "what was rerun is run again": (what_was_rerun_is_run_again, {"reruns-follow"}, 33),
    "a held array goes on after a restart": (a_held_array_goes_on_after_a_restart, {"held-stays"}, 82),
    "those that wait for a place are not held": (those_that_wait_for_a_place_are_not_held, {"held-stays"}, 5),
    "a rerun takes other checkpoints": (a_rerun_takes_other_checkpoints, {"reruns-follow"}, 5),
    "a cancelled task counts as failed": (a_cancelled_task_counts_as_failed, {"arrays-add-up"}, 5),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=ARRAYS_EVERY)
