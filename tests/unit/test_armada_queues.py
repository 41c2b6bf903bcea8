"""Reading Armada's queues: what cannot be one is refused with its place, in upstream's words where it has any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.armada.queues import read_queue, write_queue
from holdfast.domain.access.grants import Permission
from holdfast.domain.job import Queue
from holdfast.service.manifests.armada import updated_queue

if TYPE_CHECKING:
    from holdfast.errors import Problem


def read(**said: Any) -> tuple[Queue | None, list[Problem]]:  # noqa: ANN401 - any JSON
    problems: list[Problem] = []
    return read_queue({"name": "ml", "priorityFactor": 2.0, **said}, before=None, problems=problems), problems


@pytest.mark.parametrize("name", ["ml", "ML-prod", "team_a", "a.b", "0", "x" * 63])
def test_a_name_may_be_any_that_a_label_may_have(name: str) -> None:
    queue, problems = read(name=name, labels={"armadaproject.io/submitter": "Airflow_2.x"})
    assert queue is not None, problems
    assert (queue.name, read(**write_queue(queue))[0]) == (name, queue)


@pytest.mark.parametrize(
    ("said", "path", "message"),
    [
        ({"name": ""}, "name", "is no name of a queue"),
        ({"name": "a b"}, "name", "'a b' a valid label must"),
        ({"name": "a/../b"}, "name", "a valid label must"),
        ({"name": "q\n"}, "name", "a valid label must"),
        ({"name": "\u00e4"}, "name", "a valid label must"),
        ({"name": "x" * 64}, "name", "must be no more than 63 characters"),
        ({"priorityFactor": float("nan")}, "priorityFactor", "failed to map priority factor."),
        ({"labels": {"a": ""}}, "labels", "queue labels must not have an empty key or value, key: a, value: "),
        ({"labels": {"x y": "z"}}, "labels", "'x y' name part must consist of"),
        ({"labels": {"a": "b" * 64}}, "labels", "must be no more than 63 characters"),
        ({"labels": {str(number): "b" for number in range(65)}}, "labels", "has 65 labels; at most 64 are allowed"),
        ({"retryPolicies": [str(number) for number in range(33)]}, "retryPolicies", "has 33 policies; at most 32"),
        (
            {"resourceLimitsByPriorityClassName": {"p" * 70_000: {}}},
            "resourceLimitsByPriorityClassName",
            "takes 70008 characters as JSON; at most 65536 are allowed",
        ),
    ],
)
def test_what_cannot_be_a_queue_is_refused_with_its_place(said: dict[str, Any], path: str, message: str) -> None:
    queue, problems = read(**said)
    assert queue is None
    assert [problem.path for problem in problems] == [path]
    assert message in problems[0].message


def test_all_that_is_wrong_is_said_at_once() -> None:
    _, problems = read(name="a b", priorityFactor=0.5, labels={"": "x"}, userOwners=["a b"])
    assert [problem.path for problem in problems] == ["priorityFactor", "name", "labels", "userOwners[0]"]


def test_an_update_without_owners_closes_a_queue_that_is_new_or_had_some_and_leaves_an_open_one_open() -> None:
    new = updated_queue({"name": "ml", "priorityFactor": 2.0}, None)
    owned = updated_queue({"name": "ml", "priorityFactor": 2.0, "userOwners": ["ann"]}, new)
    assert [one.subjects for one in owned.permissions] == [("user:ann",)]
    assert new.permissions == updated_queue(write_queue(new), owned).permissions == (Permission((), ()),)
    assert updated_queue(write_queue(new), Queue("ml")).permissions == ()
