"""What is said of a text of which a part cannot be read."""

from __future__ import annotations

import pytest

from holdfast.dialects.diagnostics import MOST_PROBLEMS, all_problems
from holdfast.dialects.documents import read_documents
from holdfast.errors import InvalidManifest

GOOD = '{"command": ["true"]}\n'


def found(text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(InvalidManifest) as caught:
        read_documents(text)
    return [(problem.path, problem.line) for problem in all_problems(text, caught.value)]


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        ("command: [x]\na: 1\n---\ncommand: [x]\nname: n\nname: n\n---\ngang: 0\n", [("a", 2), ("name", 6)]),
        ("a: 1\na: 2\n", [("a", 2), ("apiVersion", 1)]),
        ("command: [x]\nname: a\nname: b\ngangs: 1\n", [("name", 3), ("gangs", 4)]),
        ("command: [x]\n---\ncommand: [1, 2\n---\ncommand: [x]\nb: 1\n", [("", 4), ("b", 6)]),
        ("command: !t [x]\n---\n- 1\n---\ncommand: [x]\nb: 1\n", [("", 1), ("", 3), ("b", 6)]),
        (GOOD + '{"command": ["x"], "oops": 1}\nnot json\n{"command": ["x"], "name": "_"}\n' + GOOD * 3, 3),
        (GOOD + '{"command": ["x"], "command": ["y"], "oops": 1}\n' + '{"a": [}\n' + GOOD, 3),
        ('{"items": [\n{"command": ["x"]},\n{"command": ["x"]}\n', [("", 4)]),
        ('{"items": [], "items": []}', [("items", 1)]),
    ],
)
def test_each_document_is_judged_when_one_cannot_be_read(
    text: str, problems: list[tuple[str, int | None]] | int
) -> None:
    told = found(text)
    if isinstance(problems, int):
        assert len(told) == problems, told
    else:
        assert told[: len(problems)] == problems


def test_lines_are_those_of_the_whole_text() -> None:
    text = GOOD * 3 + "nonsense\n" + GOOD + '{"command": ["x"], "oops": 1}\n' + GOOD
    assert found(text) == [("", 4), ("oops", 6)]


def test_a_flood_of_problems_is_cut() -> None:
    assert len(found((GOOD + '{"command": ["x"], "oops": 1}\n') * 500 + "nonsense\n")) == MOST_PROBLEMS
