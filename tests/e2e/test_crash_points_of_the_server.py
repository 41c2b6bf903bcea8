"""A server is killed at its system calls, between commit, publish and forget above all: the next one continues it."""

from __future__ import annotations

import shutil
import signal
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import HoldfastError
from tests import strace
from tests.e2e.server import PATIENCE_S, Server, wait_until
from tests.integration.conftest import Machine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.client import Client
    from holdfast.wire.jobs import JobView
    from tests.strace import Point, Tell

FOLLOWED = Path(__file__).parent.parent / "followed.py"
AT_ONCE = 3
"""Rounds beside each other, which wait most of their time."""
PLANS = {"one": [0], "two": [7, 0]}
"""Jobs, and what their attempts end with."""
THREADS = ("MainThread", "holdfast-controller", "holdfast-executor")
"""Who starts and ends, who commits, and who orders and forgets."""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty one, since making it takes most of a server's system calls."""
    strace.require()
    server = Server(tmp_path_factory.mktemp("empty"))
    try:
        server.start().close()
        server.end(signal.SIGTERM)
    finally:
        server.clean_up()
    return server.data / "holdfast.db"


class Round:
    """One data directory, and a server of which one thread is followed."""

    def __init__(self, folder: Path, database: Path, thread: str, point: Point | None) -> None:
        self.ledger = folder / "ledger"
        (folder / "data").mkdir(parents=True, mode=0o700)
        shutil.copy(database, folder / "data")
        self.ledger.touch()
        self.server = Server(folder)
        self.usual = self.server.words
        self.server.words = (sys.executable, str(FOLLOWED), thread, str(folder), *self.usual[self.usual.index("up") :])
        self.machine = Machine(folder / "data" / "runs")  # holds the programs from now on
        self.follower = strace.Follower(folder, point)

    def submit(self, client: Client) -> None:
        """Submit both jobs, also again: the same request is taken once."""
        script = "echo $HOLDFAST_JOB_NAME $HOLDFAST_ATTEMPT >> {}; set -- {}; eval exit \\$$HOLDFAST_ATTEMPT"
        retry = {"retryLimit": 3, "defaultAction": "Retry", "backoff": {"initialDelay": "0s"}}
        jobs = [
            {"name": name, "shell": script.format(self.ledger, " ".join(map(str, plan))), "retry": retry}
            for name, plan in PLANS.items()
        ]
        client.submit_bulk(jobs, key="both")

    def live(self) -> None:
        """Let the server live to its point, or to its end."""
        process = self.server.spawn()
        wait_until(lambda: process.poll() is not None or self.server.serves(), "a server that serves, or is dead")
        if process.poll() is None:
            with suppress(HoldfastError), self.server.client() as client:
                self.submit(client)
                wait_until(lambda: process.poll() is not None or self.is_over(), "a ledger that is full")
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        self.server.process = None

    def is_over(self) -> bool:
        ran = self.ledger.read_text().splitlines()
        return len(ran) == sum(map(len, PLANS.values())) and not self.machine.engine.observe()

    def finish(self) -> list[JobView]:
        """Let another server do what is left."""
        self.server.words = self.usual
        with self.server.start() as client:
            self.submit(client)
            wait_until(lambda: all(job.state == "Succeeded" for job in client.jobs()), "the end of both jobs")
            return list(client.full_jobs())

    def check(self, jobs: Sequence[JobView]) -> None:
        """Compare the histories with what the programs wrote: nothing but the server was killed."""
        assert {job.name: [attempt.exit_code for attempt in job.attempts] for job in jobs} == PLANS
        ran = Counter(self.ledger.read_text().splitlines())
        assert ran == Counter(f"{name} {number + 1}" for name, plan in PLANS.items() for number in range(len(plan)))

    def end(self) -> None:
        self.machine.engine.close()
        self.server.clean_up()
        self.follower.end()


def live(folder: Path, database: Path, thread: str, point: Point | None) -> bool:
    """Live through a round; returns whether the point was come to."""
    this = Round(folder, database, thread, point)
    try:
        this.live()
        this.check(this.finish())
    finally:
        this.end()
    return strace.was_killed(this.follower.trace)


def boundaries(points: Sequence[Point]) -> list[Point]:
    """Leave out most writes of a transaction: before the last one nothing is valid that comes with it."""
    after = [point.call for point in points[1:]]
    return [point for point, call in zip(points, [*after, ""], strict=True) if (point.call, call) != ("pwrite64",) * 2]


def enumerate_points(folder: Path, database: Path, thread: str) -> list[Point]:
    live(folder / "all", database, thread, None)
    return boundaries(strace.points(folder / "all" / "trace"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("thread", THREADS)
def test_one_that_dies_anywhere_is_continued(
    tmp_path: Path, database: Path, thread: str, record_property: Tell
) -> None:
    points = enumerate_points(tmp_path, database, thread)
    strace.live_through_all(
        points, lambda point: live(tmp_path / point.name, database, thread, point), record_property, at_once=AT_ONCE
    )
