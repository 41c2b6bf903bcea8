"""What an array decides from how its tasks stand, and what each task is made from."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import (
    MOST_WAITING,
    Array,
    ArraySpec,
    ArrayState,
    Axis,
    Indexes,
    Origin,
)
from holdfast.domain.workloads.array.reconcile import CANCELLED, FAILED, SUCCEEDED, reconcile, stop
from holdfast.domain.workloads.array.rerun import Task, TaskChoice, is_selected, origins_of, some_of, unused_name
from holdfast.domain.workloads.children import Child, ChildPhase, CreateChild, DeleteChild, ResumeChild, SuspendChild
from holdfast.domain.workloads.spec import JobSpec

NOW = 7.0
JOB = JobSpec("sweep", ("train", "--lr={lr}", "--seed", "{seed}", "{index}", "{other}"))


def array(total: int = 10, **limits: int) -> ArraySpec:
    return ArraySpec(JOB, (Indexes(0, total - 1),), **limits)  # type: ignore[arg-type] # limits are the rest


def task(index: int, phase: ChildPhase = ChildPhase.ACTIVE, *, runs: bool = False) -> Child:
    return Child(name=f"sweep-{index}", group="", index=index, phase=phase, active_pods=int(runs))


def look(spec: ArraySpec, state: ArrayState, *children: Child) -> tuple[ArrayState, list[int], list[str]]:
    """Return the state after one look, the indexes it makes, and the names it has cancelled."""
    found = reconcile(spec, state, children, NOW, str)
    made = [order.index for order in found.orders if isinstance(order, CreateChild)]
    return found.state, made, [order.name for order in found.orders if isinstance(order, DeleteChild)]


def test_tasks_are_made_as_far_as_there_is_room() -> None:
    spec = array(1000, max_running=3)
    state, made, _ = look(spec, ArrayState())
    assert (made, state.made) == ([0, 1, 2], 3)
    assert look(spec, state, task(0), task(1), task(2))[1] == []
    state, made, _ = look(spec, state, task(0, ChildPhase.SUCCEEDED), task(1), task(2))
    assert (made, state.succeeded, state.made) == ([3], 1, 4)


def test_without_a_limit_many_are_made_at_once_when_half_of_those_that_waited_run() -> None:
    spec = array(5000)
    state, made, _ = look(spec, ArrayState())
    assert len(made) == MOST_WAITING
    for running, more in ((0, 0), (MOST_WAITING // 2 - 1, 0), (MOST_WAITING // 2, MOST_WAITING // 2)):
        tasks = [task(index, runs=index < running) for index in made]
        assert len(look(spec, state, *tasks)[1]) == more


ENDS = [
    ({}, (10, 0, 0), SUCCEEDED, "10 of 10 tasks succeeded"),
    ({}, (9, 1, 0), FAILED, "1 of 10 tasks did not succeed"),
    ({}, (9, 0, 1), CANCELLED, "1 of 10 tasks did not succeed"),
    ({"at_least": 1}, (1, 2, 0), SUCCEEDED, "1 of 10 tasks succeeded"),
    ({"at_least": 9}, (0, 2, 0), FAILED, "2 of 10 tasks did not succeed, and 9 must"),
    ({"at_least": 9}, (9, 1, 0), SUCCEEDED, "9 of 10 tasks succeeded"),
    ({"max_failures": 1}, (1, 2, 0), FAILED, "2 of 10 tasks failed, more than maxFailures (1)"),
]


@pytest.mark.parametrize(("rules", "counts", "status", "reason"), ENDS)
def test_how_it_ends_follows_from_its_rules(
    rules: dict[str, int], counts: tuple[int, int, int], status: str, reason: str
) -> None:
    found, made, _ = look(array(10, **rules), ArrayState(sum(counts), *counts))
    assert (found.status, found.reason, found.ended_at, made) == (status, reason, NOW, [])


def test_what_is_left_is_cancelled_before_it_ends() -> None:
    spec = array(10, max_failures=0)
    state, made, gone = look(spec, ArrayState(3), task(0, ChildPhase.FAILED), task(1), task(2))
    assert (state.stopping, state.status, made, gone) == (FAILED, "", [], ["sweep-1", "sweep-2"])
    state, made, gone = look(spec, state, *(task(index, ChildPhase.CANCELLED) for index in (1, 2)))
    assert (state.status, state.cancelled, made, gone) == (FAILED, 2, [], [])


def test_enough_that_succeed_while_they_are_being_cancelled_come_too_late() -> None:
    spec = array(10, max_failures=0, at_least=1)
    state, _, gone = look(spec, ArrayState(2), task(0, ChildPhase.FAILED), task(1))
    assert (state.stopping, gone) == (FAILED, ["sweep-1"])
    state, *_ = look(spec, state, task(1, ChildPhase.SUCCEEDED))
    assert (state.status, state.succeeded) == (FAILED, 1)
    assert state.reason == "1 of 10 tasks failed, more than maxFailures (0)"


def test_while_it_is_held_what_waits_is_held_once_and_nothing_is_made_until_it_is_released() -> None:
    spec, held = array(9), ArrayState(5, held="by ann")
    tasks = [
        task(0, runs=True),
        task(1),
        evolve(task(2), suspended=True),
        evolve(task(3), held=True),
        task(4, ChildPhase.FAILED),
    ]
    found = reconcile(spec, held, tasks, NOW, str)
    assert (found.orders, found.state.failed, found.state.made) == ((SuspendChild("sweep-1"),), 1, 5)
    released = reconcile(spec, evolve(held, held=""), tasks, NOW, str)
    assert released.orders[0] == ResumeChild("sweep-2")
    assert [order.index for order in released.orders[1:] if isinstance(order, CreateChild)] == [5, 6, 7, 8]
    gone = reconcile(spec, stop(held, CANCELLED, "by ann"), tasks, NOW, str)
    assert gone.orders == tuple(DeleteChild(f"sweep-{index}") for index in range(4))


def test_the_first_way_of_ending_stays() -> None:
    state = stop(ArrayState(), CANCELLED, "by ann")
    assert stop(state, FAILED, "later").reason == "by ann"
    assert look(array(), state)[0].status == CANCELLED


def test_parameters_are_filled_in_and_told_in_variables_and_nothing_else_is_touched() -> None:
    axes = (Axis("lr", ("0.1", "0.01")), Axis("seed", ("1", "2", "3")))
    spec = ArraySpec(evolve(JOB, env={"RUN": "lr{lr}"}), axes=axes)
    assert spec.total == 6
    assert [tuple(spec.parameters(index).values()) for index in (0, 1, 3)] == [
        ("0.1", "1"),
        ("0.1", "2"),
        ("0.01", "1"),
    ]
    made = spec.task(4)
    assert (made.name, made.command) == ("sweep-4", ("train", "--lr=0.01", "--seed", "2", "4", "{other}"))
    assert made.env == {
        "RUN": "lr0.01",
        "HOLDFAST_ARRAY_INDEX": "4",
        "HOLDFAST_ARRAY_NAME": "sweep",
        "HOLDFAST_ARRAY_SIZE": "6",
        "HOLDFAST_PARAM_LR": "0.01",
        "HOLDFAST_PARAM_SEED": "2",
    }


def test_a_line_is_filled_in_for_empty_braces_and_is_not_filled_in_itself() -> None:
    spec = ArraySpec(JobSpec("files", ("cat", "{}", "{line}")), axes=(Axis("line", ("a {} {index}", "b")),))
    assert spec.task(0).command == ("cat", "a {} {index}", "a {} {index}")
    assert ArraySpec(JobSpec("plain", ("cat", "{}")), (Indexes(0, 1),)).task(0).command == ("cat", "{}")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 7)), min_size=1, max_size=4))
def test_every_place_has_the_index_that_its_ranges_say(parts: list[tuple[int, int, int]]) -> None:
    spec = ArraySpec(JOB, tuple(Indexes(first, first + more, step) for first, more, step in parts))
    expected = [index for first, more, step in parts for index in range(first, first + more + 1, step)]
    assert list(spec.every_index()) == expected
    assert [spec.indexes_at(place, place + 2) for place in range(len(expected) + 1)] == [
        expected[place : place + 2] for place in range(len(expected) + 1)
    ]


@given(st.sets(st.integers(0, 60)), st.integers(0, 60), st.integers(0, 60))
def test_some_of_an_arrays_tasks_keep_their_indexes_and_are_made_in_order(
    chosen: set[int], first: int, end: int
) -> None:
    spec = some_of(ArraySpec(JOB, axes=(Axis("lr", tuple(map(str, range(61)))),), at_least=3, max_running=2), chosen)
    expected = sorted(chosen)
    assert list(spec.every_index()) == expected
    assert spec.indexes_at(first, end) == expected[first:end]
    assert (spec.total, spec.size, spec.needed, spec.max_running) == (len(chosen), 61, len(chosen), 2)


def test_a_task_that_is_rerun_sees_what_it_saw_and_gets_the_checkpoints_of_the_latest_that_has_them() -> None:
    whole = ArraySpec(JOB, axes=(Axis("lr", ("0.1", "0.01")), Axis("seed", ("1", "2", "3"))))
    spec = some_of(evolve(whole, job=evolve(JOB, name="sweep-rerun-2")), {4})
    made, before = spec.task(4, (Origin("id2", "sweep-rerun-1"), Origin("id1", "sweep"))), whole.task(4)
    assert (made.env, made.command, made.name) == (before.env, before.command, "sweep-rerun-2-4")
    assert (made.checkpoints_of, before.checkpoints_of) == (("id2-sweep-rerun-1-4", "id1-sweep-4"), ())


FAILED_BY = frozenset({"oom_killed", "memory"})
MEANT = [
    (TaskChoice(failed=True), {JobState.FAILED}),
    (TaskChoice(cancelled=True), {JobState.CANCELLED, None}),
    (TaskChoice(failed=True, cancelled=True), {JobState.FAILED, JobState.CANCELLED, None}),
    (TaskChoice(causes=frozenset({"memory", "x"})), {JobState.FAILED}),
    (TaskChoice(failed=True, causes=frozenset({"x"})), set()),
    (TaskChoice(cancelled=True, causes=frozenset({"x"})), {JobState.CANCELLED, None}),
    (TaskChoice(indexes=frozenset({3})), {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, None}),
    (TaskChoice(failed=True, indexes=frozenset({3})), {JobState.FAILED}),
    (TaskChoice(failed=True, indexes=frozenset({4})), set()),
]


@pytest.mark.parametrize(("wanted", "meant"), MEANT)
def test_which_tasks_are_meant(wanted: TaskChoice, meant: set[JobState | None]) -> None:
    ends = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, None)
    tasks = [Task(3, state, FAILED_BY if state is JobState.FAILED else frozenset()) for state in ends]
    assert {task.state for task in tasks if is_selected(wanted, task)} == meant


def test_a_rerun_of_a_rerun_is_named_after_the_first_of_them() -> None:
    first = Array(id="1", name="sweep")
    second = Array(id="2", name="sweep-rerun-1", origins=origins_of(first))
    assert unused_name(first, {"sweep"}) == "sweep-rerun-1"
    assert unused_name(second, {"sweep", "sweep-rerun-1", "sweep-rerun-3"}) == "sweep-rerun-2"
    assert origins_of(second) == (Origin("2", "sweep-rerun-1"), Origin("1", "sweep"))
