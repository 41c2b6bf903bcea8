"""When what a log has was written: what is noted of looks, what lines are told with, and where a second begins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.record import evolve
from holdfast.engines.process.files import ProcessLogs
from holdfast.engines.process.shim.supervisor import times
from holdfast.ports.logs import LogTimes
from holdfast.ports.store import Changes, Submission
from holdfast.service.logs import LogQuery, Logs, rfc3339
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000


def noted(path: Path) -> list[tuple[int, int]]:
    return list(zip(*times.read(os.fspath(path), None), strict=True))


def test_each_look_that_found_a_log_grown_is_noted_once_and_a_log_that_began_anew_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "times"
    for size, at in ((3, 1), (3, 2), (8, 3)):
        times.note(os.fspath(path), size, at)
    assert noted(path) == [(3, 1), (8, 3)]
    times.note(os.fspath(path), 2, 4)
    assert noted(path) == [(2, 4)]


def test_what_a_full_disk_took_in_part_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "times"
    times.note(os.fspath(path), 3, 1)
    with path.open("ab") as file:
        file.write(b"torn")
    times.note(os.fspath(path), 9, 2)
    assert noted(path) == [(3, 1), (9, 2)]


def test_a_short_run_leaves_no_file_of_times(tmp_path: Path) -> None:
    path = tmp_path / "times"
    times.note(os.fspath(path), 3, 1, begin=False)
    assert not path.exists()


@pytest.mark.parametrize("place", [lambda path: path.symlink_to("elsewhere"), os.mkfifo, lambda path: path.mkdir()])
def test_what_a_program_puts_in_their_place_neither_blocks_nor_leads_astray(tmp_path: Path, place: object) -> None:
    path = tmp_path / "times"
    assert callable(place)
    place(path)
    times.note(os.fspath(path), 3, 1)
    assert not (tmp_path / "elsewhere").exists()
    with pytest.raises(OSError, match="Errno"):
        times.read(os.fspath(path), None)


def test_times_take_a_bounded_part_of_the_disk_and_the_newest_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "times"
    looks = 2 * times.MOST_BYTES // 16
    for size in range(1, looks, 4096):  # as if so many had been noted one by one
        end = min(looks, size + 4096)
        with path.open("ab") as file:
            file.write(b"".join(n.to_bytes(8, "little") + (n * SECOND).to_bytes(8, "little") for n in range(size, end)))
        times.note(os.fspath(path), end, end * SECOND)
    assert path.stat().st_blocks * 512 <= times.MOST_BYTES + 8192
    kept = [pair for pair in noted(path) if pair[0]]
    assert kept[-1] == (looks, looks * SECOND)
    assert len(kept) >= times.MOST_BYTES // 32


def test_a_line_has_the_time_of_the_first_look_at_which_it_was_there() -> None:
    known = LogTimes((4, 9, 12), (1.0, 2.0, 3.0))
    assert [known.at(end) for end in (1, 4, 5, 9, 12, 99)] == [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    assert LogTimes().at(1) is None
    assert [known.since(at) for at in (0.0, 1.0, 1.5, 2.0, 3.0, 3.5)] == [0, 0, 4, 4, 9, 12]


def test_a_clock_that_was_set_back_hides_no_line() -> None:
    assert LogTimes((4, 9, 12), (100.0, 50.0, 60.0)).since(55.0) == 0


def written(run: Path, *looks: tuple[bytes, float]) -> None:
    """Write a log as a program would, with a look after each part; the last is told by the file alone."""
    run.mkdir(parents=True, exist_ok=True)
    for number, (data, at) in enumerate(looks):
        with (run / "log").open("ab") as file:
            file.write(data)
        os.utime(run / "log", (at, at))
        if number < len(looks) - 1:
            times.note(os.fspath(run / "times"), (run / "log").stat().st_size, int(at * SECOND))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "jobs" / "job000001" / "1.0"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore()
    store.submit(Submission([Job("job000001", "train", "default", 0, 1.0, "{}")]))
    return store


@pytest.fixture
def logs(store: MemoryStore, tmp_path: Path) -> Logs:
    return Logs(store, ProcessLogs(tmp_path))


def ended(store: MemoryStore, state: JobState = JobState.SUCCEEDED) -> None:
    status = AttemptStatus.TERMINATED if state is JobState.SUCCEEDED else AttemptStatus.RUNNING
    job = evolve(store.job("train"), attempt=1, state=state)
    store.commit(Changes(jobs={job.id: job}, attempts={(job.id, 1): Attempt(job.id, 1, status)}))


def test_each_line_is_told_with_when_it_was_written(run: Path, store: MemoryStore, logs: Logs) -> None:
    written(run, (b"one\ntwo\nhal", 1000.25), (b"f\n\n\r\xff\n", 1001.5), ("ende\u00e9".encode(), 1002.0))
    ended(store)
    part = logs.read("train", LogQuery(timestamps=True))
    first, second, last = map(rfc3339, (1000.25, 1001.5, 1002.0))
    assert first == "1970-01-01T00:16:40.250000Z"
    told = [(first, "one"), (first, "two"), (second, "half"), (second, ""), (second, "\r\ufffd"), (last, "ende\u00e9")]
    assert part.text == "\n".join(f"{at} {line}" for at, line in told)
    assert part.finished


@pytest.mark.parametrize(
    ("since", "text"),
    [
        (0.0, "one\nhalf\nthree\nend"),
        (1000.9, "one\nhalf\nthree\nend"),
        (1001.0, "half\nthree\nend"),
        (1001.999, "half\nthree\nend"),
        (1002.0, "three\nend"),
        (1003.0, "end"),
        (1004.0, ""),
    ],
)
def test_since_is_inclusive_to_the_second_and_begins_with_a_whole_line(
    run: Path, store: MemoryStore, logs: Logs, since: float, text: str
) -> None:
    written(run, (b"one\nha", 1000.25), (b"lf\n", 1001.5), (b"three\n", 1002.1), (b"end", 1003.9))
    ended(store)
    assert logs.read("train", LogQuery(since=since)).text == text


def test_since_and_a_number_of_lines_both_hold(run: Path, store: MemoryStore, logs: Logs) -> None:
    written(run, (b"one\n", 1000.0), (b"two\nthree\n", 1001.0))
    ended(store)
    assert logs.read("train", LogQuery(since=1001.0, tail=1)).text == "three\n"
    assert logs.read("train", LogQuery(since=1001.0, tail=9)).text == "two\nthree\n"


def test_a_line_with_its_time_waits_until_it_is_whole(run: Path, store: MemoryStore, logs: Logs) -> None:
    written(run, (b"one\nha", 1000.0))
    ended(store, JobState.RUNNING)
    part = logs.read("train", LogQuery(timestamps=True))
    assert (part.text, part.next_offset) == (f"{rfc3339(1000.0)} one\n", 4)
    assert logs.read("train", LogQuery(timestamps=True, offset=4)).text == ""


def test_parts_of_a_log_with_times_join_and_a_very_long_line_has_one_time(
    run: Path, store: MemoryStore, logs: Logs
) -> None:
    written(run, (b"one\n" + b"x" * 50 + b"\ntwo\n", 1000.0))
    ended(store)
    text, offset, finished = "", 0, False
    while not finished:
        part = logs.read("train", LogQuery(timestamps=True, offset=offset, limit=10))
        text, offset, finished = text + part.text, part.next_offset, part.finished
    at = rfc3339(1000.0)
    assert text == f"{at} one\n{at} {'x' * 50}\n{at} two\n"


def test_times_that_a_program_spoiled_spoil_no_more_than_that(run: Path, store: MemoryStore, logs: Logs) -> None:
    written(run, (b"one\n", 1000.0), (b"two\n", 1001.0))
    (run / "times").write_bytes(b"\xff" * 4099)
    ended(store)
    assert logs.read("train", LogQuery(timestamps=True)).text.count("\n") == 2
    assert logs.read("train", LogQuery(since=1.0)).text == "one\ntwo\n"
