"""A server is killed at each step of an Iris launch that replaces a job: the old one ends if the new one is stored."""

from __future__ import annotations

import shutil
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.api.iris._generated import job
from tests import strace
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import PATIENCE_S, wait_until
from tests.e2e.test_crash_points_of_the_server import FOLLOWED, boundaries, database
from tests.e2e.test_iris_names import Heir

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["database"]
pytestmark = pytest.mark.slow
AT_ONCE = 3
OLD, KID = "/own/x", "/own/x/kid"
RECREATE = job.EXISTING_JOB_POLICY_RECREATE


class Replacing:
    """A server on a directory of its own, whose thread that stores launches is followed."""

    def __init__(self, folder: Path, database: Path, point: strace.Point | None) -> None:
        (folder / "data").mkdir(parents=True, mode=0o700)
        shutil.copy(database, folder / "data")
        self.server = FlusterServer(folder)
        self.usual = self.server.words
        self.server.words = (
            *(sys.executable, str(FOLLOWED), "iris-launches", str(folder)),
            *self.usual[self.usual.index("up") :],
        )
        self.follower = strace.Follower(folder, point)
        self.begins = 0
        """How many points there are before the launch that replaces."""

    def states(self) -> dict[str, str]:
        """Return the states of all jobs, by their ids."""
        with self.server.client() as client:
            return {one.id: one.state for one in client.jobs()}

    def live(self) -> set[str]:
        """Launch a job with a child, and replace it until the server dies; returns the ids of both."""
        process = self.server.spawn()
        wait_until(self.server.serves, "a server that serves")
        with self.server.client() as client:
            client.put_settings({"access": {"admin": ["user:ann"]}})
        heir = Heir(self.server)
        assert [heir.launch(OLD), heir.launch(KID)] == ["OK", "OK"]
        both = {*self.states()}
        self.begins = len(strace.points(self.follower.trace))
        with suppress(httpx.TransportError):
            assert heir.launch(OLD, existing_job_policy=RECREATE) == "OK"
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        self.server.process = None
        return both

    def check(self, both: set[str]) -> None:
        """Let another server go on, and send the launch again: both jobs end, for one new job."""
        self.server.words = self.usual
        self.server.start().close()
        before = self.states()
        assert before.keys() > both or "Cancelled" not in before.values(), "nothing ends for what is not there"
        assert Heir(self.server).launch(OLD, existing_job_policy=RECREATE) == "OK"
        assert len(self.states()) == len(both) + 1
        wait_until(lambda: {self.states()[key] for key in both} == {"Cancelled"}, "the end of what was replaced")

    def end(self) -> None:
        self.server.clean_up()
        self.follower.end()


def live(folder: Path, database: Path, point: strace.Point | None) -> tuple[bool, list[strace.Point]]:
    """Live through a round; returns whether its point was come to, and the points of the launch that replaces."""
    this = Replacing(folder, database, point)
    try:
        this.check(this.live())
    finally:
        this.end()
    trace = this.follower.trace
    return strace.was_killed(trace), strace.points(trace)[this.begins :]


def test_a_server_that_dies_at_a_replacement_has_ended_the_old_job_only_with_the_new_one_stored(
    tmp_path: Path, database: Path, record_property: strace.Tell
) -> None:
    _, points = live(tmp_path / "all", database, None)
    strace.live_through_all(
        boundaries(points),
        lambda point: live(tmp_path / point.name, database, point)[0],
        record_property,
        at_once=AT_ONCE,
    )
