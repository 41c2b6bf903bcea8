"""How a client of Fluster's door reads a log on where it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fluster.logs import LogEntry, LogFilter, LogFollower, NoWorkerError

if TYPE_CHECKING:
    from collections.abc import Iterator


def entries(*lines: tuple[int, str]) -> list[LogEntry]:
    return [LogEntry(at, "stdout", text) for at, text in lines]


class Log:
    """What is there, answered as a worker does."""

    def __init__(self) -> None:
        self.there: list[LogEntry] = []
        self.asked: list[tuple[str, LogFilter]] = []

    def __call__(self, wanted: LogFilter, place: str) -> Iterator[LogEntry]:
        self.asked.append((place, wanted))
        if not place:
            raise NoWorkerError
        first = wanted.start_line + (len(self.there) if wanted.start_line < 0 else 0)
        return iter([line for line in self.there[max(first, 0) :] if line.timestamp_ms > wanted.start_ms])


def test_a_line_that_comes_in_the_same_moment_as_the_last_one_is_not_missed_and_none_comes_twice() -> None:
    log = Log()
    reader = LogFollower(LogFilter(), log)
    log.there = entries((1, "a"), (2, "b"), (2, "c"))
    assert [*reader.news("w")] == log.there
    log.there += entries((2, "d"))
    assert [line.data for line in reader.news("w")] == ["d"]
    log.there += entries((2, "e"), (3, "f"))
    assert [line.data for line in reader.news("w")] == ["e", "f"]
    assert [*reader.news("w")] == []


def test_the_next_attempt_is_read_from_its_beginning_and_the_last_one_while_none_is_there() -> None:
    log = Log()
    reader = LogFollower(LogFilter(), log)
    assert [*reader.news("")] == []
    log.there = entries((1, "first"))
    assert [line.data for line in reader.news("w")] == ["first"]
    log.there = entries((1, "first"), (2, "last words"))
    assert [line.data for line in reader.news("")] == ["last words"]
    log.there = entries((5, "again"))
    assert [line.data for line in reader.news("v")] == ["again"]
    assert [place for place, _ in log.asked] == ["", "w", "w", "v"]


def test_the_last_lines_are_those_when_it_begins_and_all_that_follow() -> None:
    log = Log()
    reader = LogFollower(LogFilter(start_line=-1), log)
    log.there = entries((1, "a"), (2, "b"))
    assert [line.data for line in reader.news("w")] == ["b"]
    log.there += entries((2, "c"), (3, "d"), (4, "e"))
    assert [line.data for line in reader.news("w")] == ["c", "d", "e"]
