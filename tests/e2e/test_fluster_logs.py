"""Logs by Fluster's door: as its clients poll them, line by line, at the server's own address."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.api.fluster.calls import WORKER
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, launch

if TYPE_CHECKING:
    from collections.abc import Iterator

EXPECTED = [*map(str, range(1, 301)), "the \u65e5 end"]


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    door = server.open()
    door("LaunchJob", launch("talks", "#!/bin/sh\nseq 300\nprintf 'the \u65e5 end'\n"))
    door.ended("talks")
    yield door
    server.clean_up()


def asked(name: str, wanted: dict[str, int | str]) -> cluster.Worker.FetchLogsRequest:
    sent = cluster.Worker.FetchLogsRequest(job_id=name)
    for field, value in wanted.items():
        setattr(sent.filter, field, value)
    return sent


def fetched(door: Connected, name: str = "talks", **wanted: int | str) -> list[cluster.Worker.LogEntry]:
    return list(door("FetchLogs", asked(name, wanted), WORKER).logs)


def texts(door: Connected, **wanted: int | str) -> list[str]:
    return [line.data for line in fetched(door, "talks", **wanted)]


def test_a_log_comes_line_by_line_with_times_and_is_narrowed_by_all_that_can_be_asked(door: Connected) -> None:
    lines = fetched(door)
    assert [line.data for line in lines] == EXPECTED
    assert {line.source for line in lines} == {"stdout"}
    assert all(0 < one.timestamp_ms <= after.timestamp_ms for one, after in pairwise(lines))
    assert texts(door, start_line=298) == EXPECTED[298:]
    assert texts(door, start_line=-2) == EXPECTED[-2:]
    assert texts(door, regex="^2.7$") == [f"2{digit}7" for digit in range(10)]
    assert fetched(door, end_ms=1) == []
    assert fetched(door, start_ms=lines[-1].timestamp_ms) == []


def test_who_polls_from_the_last_lines_time_on_has_each_line_once(door: Connected) -> None:
    found, last_ms = list[str](), 0
    while part := fetched(door, start_ms=last_ms, max_lines=7):
        found += [line.data for line in part]
        last_ms = part[-1].timestamp_ms
    assert found == EXPECTED


def test_what_cannot_be_asked_for_is_refused(door: Connected) -> None:
    def refused(name: str, **wanted: int | str) -> tuple[str, list[str]]:
        error = door.refused("FetchLogs", asked(name, wanted), WORKER)
        return error.code, error.paths

    fields = ["job_id", "filter.start_ms", "filter.end_ms", "filter.max_lines"]
    assert refused("", start_ms=-1, max_lines=-1, end_ms=1 << 62) == ("invalid_argument", fields)
    assert refused("talks", regex="(") == ("invalid_argument", ["filter.regex"])
    assert refused("nobody") == ("not_found", [])
    assert texts(door, start_line=-(1 << 63)) == EXPECTED
    assert texts(door, start_line=(1 << 63) - 1) == []
    assert texts(door, regex="(a+)+$") == [], "no pattern takes for ever"


def test_a_job_that_has_not_begun_has_no_lines(door: Connected) -> None:
    door("LaunchJob", launch("never", "#!/bin/sh\ntrue\n", cpu=1000))
    assert fetched(door, "never") == []
