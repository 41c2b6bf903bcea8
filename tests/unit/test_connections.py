"""How many connections there may be, and what is written of what goes wrong with them again and again."""

from __future__ import annotations

import logging
import resource

import pytest

from holdfast.app.connections import ConnectionLimits, bounds
from holdfast.app.log import OnceInAWhile


@pytest.mark.parametrize(
    ("files", "most", "at_once"),
    [(64, 4, 4), (256, 96, 16), (1024, 680, 62), (4096, 1000, 62), (resource.RLIM_INFINITY, 1000, 62)],
)
def test_connections_leave_files_for_others(files: int, most: int, at_once: int) -> None:
    assert bounds(1000, 30.0, files=files) == ConnectionLimits(most, at_once, 30.0)


def test_a_turn_takes_a_part_of_all_and_no_more_than_a_turn_may() -> None:
    turns = [bounds(most, 30.0, files=resource.RLIM_INFINITY).at_once for most in (4, 100, 1600, 100_000)]
    assert turns == [4, 6, 100, 128]


def test_a_process_takes_no_more_connections_than_it_was_told() -> None:
    assert bounds(7, 30.0).most == 7


def record(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("a", logging.WARNING, "p", 1, text, arguments, None)


def test_a_message_passes_once_in_a_while_and_then_says_how_often_it_came() -> None:
    now = [0.0]
    once = OnceInAWhile(60.0, now=lambda: now[0])
    assert once.filter(record("no files\nsocket %d", 1))
    assert once.filter(record("another"))
    for second in range(1, 60):
        now[0] = second
        assert not once.filter(record("no files\nsocket %d", second))
    now[0] = 60.0
    again = record("no files\nsocket %d", 60)
    assert once.filter(again)
    assert again.getMessage() == "no files\nsocket 60 (59 more times before)"
    now[0] = 120.0
    quiet = record("no files\nsocket %d", 61)
    assert once.filter(quiet)
    assert quiet.getMessage() == "no files\nsocket 61"


def test_messages_without_end_take_no_room_without_end() -> None:
    once = OnceInAWhile()
    assert all(once.filter(record(f"message {number}")) for number in range(5000))
