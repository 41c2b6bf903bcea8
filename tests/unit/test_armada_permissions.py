"""Reading who may do what in Armada's queues, and giving it back as upstream does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.armada.queues import read_queue, write_queue
from holdfast.domain.access.grants import Permission, Right
from holdfast.domain.job import Queue

if TYPE_CHECKING:
    from holdfast.errors import Problem

VERBS = ["submit", "cancel", "preempt", "reprioritize", "watch"]
"""All that upstream knows, in its order."""
OF_ANN = Permission(("user:ann",), (Right.WATCH,))


def read(before: Queue | None = None, **said: Any) -> tuple[Queue | None, list[Problem]]:  # noqa: ANN401 - JSON
    problems: list[Problem] = []
    return read_queue({"name": "ml", "priorityFactor": 2.0, **said}, before=before, problems=problems), problems


def subject(kind: str, name: str) -> dict[str, str]:
    return {"kind": kind, "name": name}


def test_owners_are_a_first_permission_with_every_verb_and_come_back_as_one() -> None:
    asked = {"subjects": [subject("Group", "guests")], "verbs": ["watch", "logs"]}
    queue, problems = read(userOwners=["ann", "ann", "door:x"], groupOwners=["ml"], permissions=[asked])
    assert queue is not None, problems
    assert queue.permissions == (
        Permission(("user:ann", "user:door:x", "group:ml"), tuple(map(Right, VERBS))),
        Permission(("group:guests",), (Right.WATCH, Right.LOGS)),
    )
    written = write_queue(queue)
    owners = [subject("User", "ann"), subject("User", "door:x"), subject("Group", "ml")]
    assert written["permissions"] == [{"subjects": owners, "verbs": VERBS}, asked]
    assert not {"userOwners", "groupOwners"} & written.keys(), "upstream answers with permissions alone"
    assert read(**written)[0] == queue


def test_a_queue_that_says_nothing_of_owners_keeps_those_it_has() -> None:
    before = Queue("ml", permissions=(OF_ANN,))
    kept, _ = read(before)
    changed, _ = read(before, groupOwners=["ml"])
    assert kept is not None
    assert changed is not None
    assert kept.permissions == (OF_ANN,)
    assert [one.subjects for one in changed.permissions] == [("group:ml",)]


@pytest.mark.parametrize(
    ("said", "path", "message"),
    [
        (
            {"permissions": [{}, {"subjects": [subject("User", "ann"), subject("Robot", "r")]}]},
            "permissions[1].subjects[1].kind",
            "failed to map permission with index: 1. failed to map subjects. failed to map kind with index: 1. invalid",
        ),
        ({"permissions": [{"verbs": ["watch", "delete"]}]}, "permissions[0].verbs[1]", "'delete' is not one of"),
        ({"permissions": [{"subjects": [subject("User", "")]}]}, "permissions[0].subjects[0].name", "is no name that"),
        ({"userOwners": ["ann", "a b"]}, "userOwners[1]", "'a b' is no name that somebody can have"),
        ({"groupOwners": ["g" * 300]}, "groupOwners[0]", "is no name that somebody can have"),
        ({"userOwners": ["u"] * 1001}, "userOwners", "has 1001 items; at most 1000 are allowed"),
        ({"permissions": [{}] * 101}, "permissions", "has 101 items; at most 100 are allowed"),
        ({"permissions": [{"subjects": [{}] * 1001}]}, "permissions[0].subjects", "has 1001 items"),
    ],
)
def test_what_is_wrong_with_owners_and_permissions_is_said_with_its_place(
    said: dict[str, Any], path: str, message: str
) -> None:
    queue, problems = read(**said)
    assert queue is None
    assert (problems[0].path, len(problems)) == (path, 1)
    assert message in problems[0].message
