"""Reading logs: parts, tails, following, and characters cut by a part's end."""

from __future__ import annotations

import pytest

from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.record import evolve
from holdfast.errors import InvalidRequest, NotFound
from holdfast.ports.logs import LogPart, LogTimes
from holdfast.ports.store import Changes, Submission
from holdfast.service.logs import LogQuery, Logs, LogText, whole_characters
from tests.untimed import Untimed
from tools.memory_store import MemoryStore


class Shelf(Untimed):
    """Logs by attempt and rank; bytes before ``begins`` were given back."""

    def __init__(self) -> None:
        self.logs: dict[tuple[int, int], bytes] = {}
        self.begins = 0
        self.began: tuple[int, ...] = ()
        self.written = LogTimes()

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        assert not stderr
        assert job_id == "job000001"
        data = self.logs.get((attempt, rank), b"")
        start = max(offset, self.begins) if offset < len(data) else offset
        return LogPart(data[start : start + limit], len(data), start, self.began)

    def times(self, *_: object, **__: object) -> LogTimes:
        return self.written


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.submit(Submission([Job("job000001", "train", "default", 0, 1.0, "{}", gang=2)]))
    return store


@pytest.fixture
def logs(store: MemoryStore, shelf: Shelf) -> Logs:
    return Logs(store, shelf)


def _tried(store: MemoryStore, number: int, *, state: JobState, status: AttemptStatus) -> None:
    job = evolve(store.job("train"), attempt=number, state=state)
    attempts = {("job000001", number): Attempt("job000001", number, status)}
    store.commit(Changes(jobs={job.id: job}, attempts=attempts))


def test_the_log_of_a_job_that_waits_is_empty_and_more_may_follow(logs: Logs) -> None:
    part = logs.read("train", LogQuery())
    assert (part.attempt, part.rank, part.text, part.next_offset, part.finished) == (1, 0, "", 0, False)


def test_a_running_jobs_log_is_read_in_parts_that_join(store: MemoryStore, shelf: Shelf, logs: Logs) -> None:
    _tried(store, 1, state=JobState.RUNNING, status=AttemptStatus.RUNNING)
    shelf.logs[1, 0] = "grün, grüner".encode()
    text, offset, finished = "", 0, True
    for _ in range(10):
        part = logs.read("train", LogQuery(offset=offset, limit=3))
        text, offset, finished = text + part.text, part.next_offset, part.finished
    assert (text, finished) == ("grün, grüner", False)


def test_the_log_of_an_ended_attempt_is_finished_at_its_end(store: MemoryStore, shelf: Shelf, logs: Logs) -> None:
    _tried(store, 1, state=JobState.BACKOFF, status=AttemptStatus.ERROR)
    shelf.logs[1, 1] = b"one\ntwo\n"
    assert not logs.read("train", LogQuery(rank=1, limit=4)).finished
    assert logs.read("train", LogQuery(rank=1, offset=4)).finished


def test_bytes_that_are_no_text_end_a_finished_log_too(store: MemoryStore, shelf: Shelf, logs: Logs) -> None:
    _tried(store, 1, state=JobState.FAILED, status=AttemptStatus.ERROR)
    shelf.logs[1, 0] = b"ok \xe2\x82"
    part = logs.read("train", LogQuery())
    assert (part.text, part.next_offset, part.finished) == ("ok \ufffd", 5, True)


def test_the_last_attempt_is_read_unless_another_is_named(store: MemoryStore, shelf: Shelf, logs: Logs) -> None:
    _tried(store, 2, state=JobState.RUNNING, status=AttemptStatus.RUNNING)
    shelf.logs = {(1, 0): b"first", (2, 0): b"second"}
    assert logs.read("train", LogQuery()).text == "second"
    first = logs.read("train", LogQuery(attempt=1))
    assert (first.text, first.finished) == ("first", True)


@pytest.mark.parametrize(
    ("log", "lines", "text"),
    [
        (b"a\nb\nc\n", 2, "b\nc\n"),
        (b"a\nb\nc", 2, "b\nc"),
        (b"a\nb\n", 5, "a\nb\n"),
        (b"a\nb\n", 0, ""),
        (b"", 3, ""),
        (b"x" * 70_000 + b"\n" + b"y" * 70_000 + b"\n", 1, "y" * 70_000 + "\n"),
        (b"line\n" * 30_000, 20_000, "line\n" * 20_000),
    ],
)
def test_a_tail_is_the_last_lines(
    store: MemoryStore, shelf: Shelf, logs: Logs, *, log: bytes, lines: int, text: str
) -> None:
    _tried(store, 1, state=JobState.SUCCEEDED, status=AttemptStatus.TERMINATED)
    shelf.logs[1, 0] = log
    part = logs.read("train", LogQuery(tail=lines))
    assert (part.text, part.next_offset, part.finished) == (text, len(log), True)


def replaced(store: MemoryStore, shelf: Shelf, log: bytes, *began: int, state: JobState = JobState.SUCCEEDED) -> None:
    """One rank whose programs began there."""
    status = AttemptStatus.RUNNING if state is JobState.RUNNING else AttemptStatus.TERMINATED
    _tried(store, 1, state=state, status=status)
    shelf.logs[1, 0], shelf.began = log, began


def test_a_part_is_of_one_program_and_the_next_part_of_the_next(store: MemoryStore, shelf: Shelf, logs: Logs) -> None:
    replaced(store, shelf, "grün\nzwei".encode() + b"\xe2\x82" + b"last", 6, 12)
    parts: list[LogText] = []
    offset = 0
    while not parts or not parts[-1].finished:
        parts.append(logs.read("train", LogQuery(offset=offset, limit=5)))
        offset = parts[-1].next_offset
    assert [(part.run, part.text) for part in parts] == [
        (1, "grün"),
        (1, "\n"),
        (2, "zwei"),
        (2, "\ufffd"),
        (3, "last"),
    ]


@pytest.mark.parametrize(
    ("query", "run", "text"),
    [
        (LogQuery(), 1, "a\nb\n"),
        (LogQuery(newest=True), 2, "c\nd\n"),
        (LogQuery(newest=True, offset=6), 2, "d\n"),
        (LogQuery(tail=1), 2, "d\n"),
        (LogQuery(tail=9), 2, "c\nd\n"),
    ],
)
def test_the_newest_program_can_be_read_alone_and_is_what_a_tail_is_of(
    store: MemoryStore, shelf: Shelf, logs: Logs, query: LogQuery, run: int, text: str
) -> None:
    replaced(store, shelf, b"a\nb\nc\nd\n", 4)
    part = logs.read("train", query)
    assert (part.run, part.text) == (run, text)
    assert part.finished is (run == 2)


def test_a_program_that_has_printed_nothing_yet_is_the_newest_all_the_same(
    store: MemoryStore, shelf: Shelf, logs: Logs
) -> None:
    replaced(store, shelf, b"a\n", 2, state=JobState.RUNNING)
    part = logs.read("train", LogQuery(newest=True))
    assert (part.run, part.text, part.offset, part.finished) == (2, "", 2, False)
    first = logs.read("train", LogQuery())
    assert (first.run, first.text, first.next_offset, first.finished) == (1, "a\n", 2, False)


@pytest.mark.parametrize("query", [LogQuery(), LogQuery(tail=9)])
def test_a_log_whose_beginning_is_gone_begins_where_it_still_is(
    store: MemoryStore, shelf: Shelf, logs: Logs, query: LogQuery
) -> None:
    _tried(store, 1, state=JobState.SUCCEEDED, status=AttemptStatus.TERMINATED)
    shelf.logs[1, 0], shelf.begins = b"gone\nkept\nlast\n", 5
    part = logs.read("train", query)
    assert (part.offset, part.text, part.next_offset) == (5, "kept\nlast\n", 15)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (LogQuery(attempt=3), "its attempts are 1 to 2"),
        (LogQuery(rank=2), "its ranks are 0 to 1"),
    ],
)
def test_an_attempt_or_rank_that_is_not_there_is_not_found(
    store: MemoryStore, logs: Logs, query: LogQuery, hint: str
) -> None:
    _tried(store, 2, state=JobState.RUNNING, status=AttemptStatus.RUNNING)
    with pytest.raises(NotFound) as caught:
        logs.read("train", query)
    assert caught.value.hint == hint


def test_tail_and_offset_exclude_each_other(logs: Logs) -> None:
    with pytest.raises(InvalidRequest):
        logs.read("train", LogQuery(tail=1, offset=0))


@pytest.mark.parametrize("text", ["a", "ü", "€", "😀"])
def test_only_whole_characters_are_kept(text: str) -> None:
    data = text.encode()
    for cut in range(1, len(data)):
        assert whole_characters(b"x" + data[:cut]) == b"x"
    assert whole_characters(b"x" + data) == b"x" + data


def test_stray_continuation_bytes_do_not_hold_a_log_up() -> None:
    assert whole_characters(b"x\x80\x80\x80\x80\x80") == b"x\x80\x80\x80\x80\x80"


def test_a_log_that_is_deleted_while_it_is_read_is_not_said_to_be_empty(store: MemoryStore) -> None:
    class Going(Shelf):
        def read(
            self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False
        ) -> LogPart:
            store.delete_finished([job_id])
            return super().read(job_id, attempt, rank, offset=offset, limit=limit, stderr=stderr)

    _tried(store, 1, state=JobState.SUCCEEDED, status=AttemptStatus.TERMINATED)
    with pytest.raises(NotFound, match="was deleted while its log was read"):
        Logs(store, Going()).read("train", LogQuery())
