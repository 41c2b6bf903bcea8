"""``holdfast logs`` with times of lines: since when, and each line after its own, with a server and without one."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import InvalidRequest
from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z) (.*)")
PROGRAM = ["sh", "-c", "echo first; sleep 2.1; echo second; printf third"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.clean_up()


def lines(text: str) -> list[tuple[datetime, str]]:
    found = [LINE.fullmatch(line) for line in text.splitlines()]
    assert all(found), text
    return [(datetime.fromisoformat(one[1]), one[2]) for one in found if one is not None]


@pytest.mark.slow
def test_lines_are_printed_with_their_times_and_from_a_second_on(server: Server) -> None:
    with server.start() as client:
        job = client.submit({"name": "train", "command": PROGRAM}).id
        until(client, job, lambda view: view.state == "Succeeded")
        told = lines(server.run("logs", "train", "--timestamps").stdout)
        assert [line for _, line in told] == ["first", "second", "third"]
        between = (told[0][0] + timedelta(seconds=1)).isoformat()
        assert server.run("logs", "train", "--since-time", between).stdout == "second\nthird"
        assert server.run("logs", "train", "--since-time", between, "--tail", "1").stdout == "third"
        assert server.run("logs", "train", "--since", "1h").stdout == "first\nsecond\nthird"
        assert server.run("logs", "train", "--since-time", told[0][0].isoformat()).stdout == "first\nsecond\nthird"
        chosen = server.run("logs", "-s", "Succeeded", "--since-time", between, "--timestamps").stdout
        assert re.fullmatch(r"\[train\] \S+Z second\n\[train\] \S+Z third\n", chosen)
        assert client.logs(job, since=datetime.fromisoformat(between), timestamps=True).finished
        with pytest.raises(InvalidRequest):
            client.logs(job, since=datetime.fromisoformat("2026-01-01T00:00:00"))
    server.end()
    assert lines(server.run("logs", "train", "--timestamps").stdout) == told, "without a server, too"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--since", "5m", "--since-time", "2026-01-01T00:00:00Z"), "--since-time: cannot be combined with --since"),
        (("--since-time", "yesterday"), "'yesterday' is not a time with its time zone"),
        (("--since-time", "2026-01-01T00:00:00"), "is not a time with its time zone"),
        (("--since", "soon"), "--since"),
    ],
)
def test_times_that_are_none_are_refused(server: Server, words: tuple[str, ...], told: str) -> None:
    ended = server.run("logs", "train", *words)
    assert (ended.returncode, told in ended.stderr) == (2, True), ended.stderr


def test_since_alone_chooses_no_jobs(server: Server) -> None:
    ended = server.run("logs", "--since", "5m")
    assert (ended.returncode, "JOB" in ended.stderr) == (2, True)


@pytest.mark.slow
def test_following_with_times_prints_each_line_once_it_is_whole(server: Server) -> None:
    with server.start() as client:
        program = (
            "import time\nfor n in range(4):\n print('a', end='', flush=True)\n time.sleep(0.3)\n print(n, flush=True)"
        )
        job = client.submit({"name": "train", "command": ["python3", "-c", program]}).id
        wait_until(lambda: client.job(job).attempts, "an attempt")
        told = lines(server.run("logs", "train", "-f", "--timestamps").stdout)
    assert [line for _, line in told] == ["a0", "a1", "a2", "a3"]
    assert sorted(at for at, _ in told) == [at for at, _ in told]
