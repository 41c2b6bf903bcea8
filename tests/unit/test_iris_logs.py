"""Lines by Iris' door: whose are meant, in which order, and where a reader goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.iris._generated import logging as finelog
from holdfast.api.iris.calls import LOGS
from tests.unit.conftest import NOW, exits
from tests.unit.iris_lab import FOREVER, IrisLab

if TYPE_CHECKING:
    from collections.abc import Iterator

TWO, AGAIN = "/ann/two", "/ann/again"
EXACT, PREFIX = finelog.MATCH_SCOPE_EXACT, finelog.MATCH_SCOPE_PREFIX
FIRST, SECOND = f"{TWO}/0:0", f"{TWO}/1:0"
LINES = [
    (FIRST, "one"),
    (SECOND, "WARNING: two"),
    (FIRST, "three"),
    (SECOND, "I20260101 four"),
    (FIRST, "[DEBUG] five"),
    (SECOND, "six"),
]
"""One each second."""


@pytest.fixture(scope="module")
def iris() -> Iterator[IrisLab]:
    """Two tasks that have ended and printed by turns, and one that failed and is tried again."""
    iris = IrisLab()
    iris.launch(TWO, exits(0), replicas=2)
    once = {"max_task_failures": 1, "max_retries_failure": 1}
    iris.launch(AGAIN, lambda order: exits(1) if order.attempt == 1 else FOREVER, **once)
    iris.pass_s(10.0)
    for second, (key, text) in enumerate(LINES):
        rank = int(key.removeprefix(f"{TWO}/")[0])
        iris.printed.lines.setdefault((iris.id_of(TWO), 1, rank), []).append((NOW + second, text))
    again = iris.id_of(AGAIN)
    iris.printed.lines[again, 1, 0] = [(NOW + 1, "first")]
    iris.printed.lines[again, 2, 0] = [(NOW + 3, "settled"), (NOW + 9.9, "just now")]
    yield iris
    iris.close()


def read(
    iris: IrisLab,
    source: str = f"{TWO}/",
    scope: finelog.MatchScope = PREFIX,
    **more: Any,  # noqa: ANN401 - fields by name
) -> list[tuple[str, str]]:
    found = iris.logs(finelog.FetchLogsRequest(source=source, match_scope=scope, **more)).entries
    return [(one.key, one.data) for one in found]


def test_lines_of_all_tasks_are_told_in_order_of_time_with_their_keys_levels_and_moments(iris: IrisLab) -> None:
    answer = iris.logs(finelog.FetchLogsRequest(source=f"{TWO}/", match_scope=PREFIX))
    assert [(one.key, one.data) for one in answer.entries] == LINES
    assert [one.level for one in answer.entries] == [0, 3, 0, 2, 1, 0]
    assert [one.timestamp.epoch_ms for one in answer.entries] == [round((NOW + n) * 1000) for n in range(6)]
    assert {(one.source, one.attempt_id) for one in answer.entries} == {("stdout", 0)}
    assert answer.cursor == answer.entries[-1].seq


@pytest.mark.parametrize(
    ("source", "scope", "found"),
    [
        (SECOND, EXACT, [("", text) for key, text in LINES if key == SECOND]),
        (f"{TWO}/1", PREFIX, [(key, text) for key, text in LINES if key == SECOND]),
        (f"{TWO}/1", EXACT, []),
        (f"{AGAIN}/0:0", EXACT, [("", "first")]),
        (f"{AGAIN}/", PREFIX, [(f"{AGAIN}/0:0", "first"), (f"{AGAIN}/0:1", "settled")]),
        ("/ann/t", PREFIX, LINES),
        ("ann/", PREFIX, []),
        ("/system/controller", PREFIX, []),
        ("/ann/nobody/", PREFIX, []),
    ],
)
def test_a_source_is_an_attempt_of_a_task_or_how_their_keys_begin(
    iris: IrisLab, source: str, scope: finelog.MatchScope, found: list[tuple[str, str]]
) -> None:
    assert read(iris, source, scope) == found


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({"max_lines": 2}, LINES[:2]),
        ({"max_lines": 2, "tail": True}, LINES[-2:]),
        ({"max_lines": -1}, LINES),
        ({"tail": True}, LINES),
        ({"substring": "o"}, [LINES[0], LINES[1], LINES[3]]),
        ({"since_ms": round((NOW + 3) * 1000)}, LINES[4:]),
        ({"since_ms": round((NOW + 3) * 1000) - 1}, LINES[3:]),
        ({"min_level": "info"}, [one for one in LINES if "DEBUG" not in one[1]]),
        ({"min_level": "WARNING"}, [one for one in LINES if "DEBUG" not in one[1] and "I2026" not in one[1]]),
        ({"min_level": "loud"}, LINES),
        ({"cluster": "local"}, LINES),
        ({"cluster": "another"}, []),
    ],
)
def test_lines_are_narrowed_by_all_that_can_be_asked(
    iris: IrisLab, more: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    assert read(iris, **more) == found


def test_a_reader_goes_on_after_the_last_number_that_it_saw_and_stops_before_another(iris: IrisLab) -> None:
    seen, cursor, parts = list[tuple[str, str]](), 0, 0
    numbers = list[int]()
    while True:
        asked = finelog.FetchLogsRequest(source=f"{TWO}/", match_scope=PREFIX, max_lines=2, cursor=cursor)
        answer = iris.logs(asked)
        if not answer.entries:
            break
        seen += [(one.key, one.data) for one in answer.entries]
        numbers += [one.seq for one in answer.entries]
        cursor, parts = answer.cursor, parts + 1
    assert (seen, parts, answer.cursor) == (LINES, 3, numbers[-1])
    assert read(iris, until_cursor=numbers[2]) == LINES[:2]
    assert read(iris, cursor=numbers[0], until_cursor=numbers[3]) == LINES[1:3]


def test_lines_of_one_moment_have_numbers_of_their_own_in_the_order_of_their_keys() -> None:
    iris = IrisLab()
    iris.launch(TWO, exits(0), replicas=2)
    iris.pass_s(5.0)
    for rank in (0, 1):
        iris.printed.lines[iris.id_of(TWO), 1, rank] = [(NOW + 1, f"{rank} a"), (NOW + 1, f"{rank} b")]
    cursor, seen = 0, list[str]()
    for _ in range(4):
        answer = iris.logs(finelog.FetchLogsRequest(source=f"{TWO}/", match_scope=PREFIX, max_lines=1, cursor=cursor))
        seen += [one.data for one in answer.entries]
        cursor = answer.cursor
    assert seen == ["0 a", "0 b", "1 a", "1 b"]
    iris.close()


def test_what_a_task_printed_a_moment_ago_waits_until_nothing_can_come_before_it(iris: IrisLab) -> None:
    before = iris.clock.time
    assert read(iris, f"{AGAIN}/0:1", EXACT) == [("", "settled")]
    iris.clock.time = before + 0.25
    assert read(iris, f"{AGAIN}/0:1", EXACT) == [("", "settled"), ("", "just now")]
    iris.clock.time = before


def test_patterns_and_very_many_attempts_are_refused(iris: IrisLab) -> None:
    asked = finelog.FetchLogsRequest(source="/ann/.*", match_scope=finelog.MATCH_SCOPE_REGEX)
    assert iris.refused("FetchLogs", asked, LOGS) == "INVALID_ARGUMENT"
    iris.launch("/bob/many", replicas=2_001, resources={})
    iris.pass_s(5.0)
    for source, code in (("/bob/many/", "INVALID_ARGUMENT"), ("/bob/many/1", "OK")):
        asked = finelog.FetchLogsRequest(source=source, match_scope=PREFIX)
        assert iris.refused("FetchLogs", asked, LOGS) == code
