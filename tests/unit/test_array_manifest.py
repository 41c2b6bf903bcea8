"""Reading arrays: every way to name tasks, bounds, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.compiled.codec import dump_spec, load_array
from holdfast.dialects.manifests import read_one
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.domain.workloads.array.model import ArraySpec, Axis, Indexes


def read(array: object, **metadata: object) -> ArraySpec | list[str]:
    """Return the array, or where its problems are and what they say."""
    manifest = {
        "apiVersion": "holdfast.dev/v1",
        "kind": "Job",
        "metadata": {"name": "sweep", **metadata},
        "spec": {"command": ["true"], "array": array},
    }
    reading = read_one(manifest)
    if reading.manifest is None:
        return [f"{problem.path}: {problem.message}" for problem in reading.problems]
    assert isinstance(reading.manifest, ArraySpec)
    return reading.manifest


TASKS: list[tuple[dict[str, Any], list[int], tuple[Axis, ...]]] = [
    ({"indices": "0-3"}, [0, 1, 2, 3], ()),
    ({"indices": "7, 0-10:5"}, [7, 0, 5, 10], ()),
    ({"indices": 4}, [4], ()),
    ({"lines": ["a", "b c"]}, [0, 1], (Axis("line", ("a", "b c")),)),
    ({"matrix": {"lr": [0.1, 1e-4], "on": True}}, [0, 1], (Axis("lr", ("0.1", "0.0001")), Axis("on", ("true",)))),
    ({"matrix": {"lr": [1e-5, -2.5e-7, 1e17, 1.5e16, 1e-300]}}, list(range(5)), (
        Axis("lr", ("0.00001", "-0.00000025", "100000000000000000.0", "15000000000000000.0", "1e-300")),)),
    ({"matrix": {"seed": "1..3", "n": ["-1..0", "x"]}}, list(range(9)), (
        Axis("seed", ("1", "2", "3")), Axis("n", ("-1", "0", "x")))),
    ({"matrix": {"n": "0..20:10"}}, [0, 1, 2], (Axis("n", ("0", "10", "20")),)),
]  # fmt: skip


@pytest.mark.parametrize(("array", "indexes", "axes"), TASKS)
def test_tasks_are_named_by_indexes_by_lines_or_by_a_matrix(
    array: dict[str, Any], indexes: list[int], axes: tuple[Axis, ...]
) -> None:
    found = read(array)
    assert isinstance(found, ArraySpec)
    assert (list(found.every_index()), found.axes) == (indexes, axes)
    assert load_array(dump_spec(found)) == found


LIMITS = [
    ({}, (None, None, None)),
    ({"maxRunning": 4, "maxFailures": 0, "success": "all"}, (4, 0, None)),
    ({"success": "any"}, (None, None, 1)),
    ({"success": 3}, (None, None, 3)),
]


@pytest.mark.parametrize(("limits", "expected"), LIMITS)
def test_limits_and_the_rule_of_success_are_read(
    limits: dict[str, Any], expected: tuple[int | None, int | None, int | None]
) -> None:
    found = read({"indices": "0-9", **limits})
    assert isinstance(found, ArraySpec)
    assert (found.max_running, found.max_failures, found.at_least) == expected
    assert (found.indexes, found.name) == ((Indexes(0, 9),), "sweep")


REFUSED = [
    ({}, ["spec.array: needs indices, matrix or lines"]),
    ({"indices": "0", "lines": ["a"]}, ["spec.array: indices and lines cannot be set together"]),
    ({"indices": "9-1"}, ["spec.array.indices: '9-1' is not a range of indexes"]),
    ({"indices": "0-9:0"}, ["spec.array.indices: '0-9:0' is not a range of indexes"]),
    ({"indices": "0-3,3"}, ["spec.array.indices: '3' holds an index that was named before"]),
    ({"indices": "-1"}, ["spec.array.indices: '-1' is not a range of indexes"]),
    ({"indices": "4294967296"}, ["spec.array.indices: '4294967296' is not a range of indexes"]),
    ({"indices": "0-1000000"}, ["spec.array.indices: '0-1000000' has 1000001 indexes; at most 1000000 are allowed"]),
    ({"lines": []}, ["spec.array.lines: is empty"]),
    ({"matrix": {}}, ["spec.array.matrix: has 0 parameters"]),
    ({"matrix": {"index": 1, "2x": 1}}, [
        "spec.array.matrix.index: 'index' is not a parameter's name",
        "spec.array.matrix.2x: '2x' is not a parameter's name"]),
    ({"matrix": {"a": []}}, ["spec.array.matrix.a: has no values"]),
    ({"matrix": {"a": "5..1"}}, ["spec.array.matrix.a: '5..1' has 0 values"]),
    ({"matrix": {"a": [{"b": 1}]}}, ["spec.array.matrix.a[0]: must be text, not a mapping {'b': 1}"]),
    ({"matrix": {"a": "1..2000", "b": "1..2000"}}, [
        "spec.array.matrix: makes 4000000 tasks; at most 1000000 are allowed"]),
    ({"indices": "0-3", "maxRunning": 0, "maxFailures": -1, "success": 5}, [
        "spec.array.maxRunning: 0 is out of range",
        "spec.array.maxFailures: -1 is out of range",
        "spec.array.success: 5 is not one of its values"]),
    ({"indices": "0", "most": 1}, ["spec.array.most: unknown field 'most'"]),
    ("0-9", ["spec.array: must be a mapping, not text '0-9'"]),
]  # fmt: skip


@pytest.mark.parametrize(("array", "problems"), REFUSED)
def test_what_makes_no_tasks_or_too_many_is_refused_with_its_place(array: object, problems: list[str]) -> None:
    found = read(array)
    assert isinstance(found, list)
    assert [problem for problem in found if problem in problems] == problems


def test_a_name_must_leave_room_for_the_index() -> None:
    [problem] = read({"indices": "0-1000"}, name="n" * 60)  # type: ignore[misc] # refused, as it should be
    assert problem.startswith("metadata.name: name 'nnn")
    assert isinstance(read({"indices": "0-99"}, name="n" * 60), ArraySpec)


def test_an_array_says_what_happens_after_an_unknown_end_and_its_job_may_say_otherwise() -> None:
    array = read({"indices": "0-3", "onUnknownEnd": "Hold"})
    assert isinstance(array, ArraySpec)
    assert (array.job.on_unknown_end, array.job.array_on_unknown_end) == (None, UnknownEnd.HOLD)
    assert load_array(dump_spec(array)) == array
    assert read({"indices": "0-3", "onUnknownEnd": "Wait"}) == [
        "spec.array.onUnknownEnd: 'Wait' is not one of its values"
    ]
