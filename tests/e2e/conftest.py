"""A Holdfast of one's own for each test: real store, real processes, the public client."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.app.connect import connect
from holdfast.app.settings import Settings
from tests import databases
from tests.e2e.jobset_stage import Stage
from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.wire.jobs import JobView

ENDED = frozenset({"Succeeded", "Failed", "Cancelled", "Held"})


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Have tests that say so begin servers and commands as people do."""
    Server.forks = item.get_closest_marker("as_people_do") is None


class Holdfast:
    """A running embedded Holdfast and the few verbs the stories need."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.folder = folder

    def submit(self, program: str, *arguments: str, **spec: object) -> str:
        """Submit a Python program given as text; returns the job's id."""
        command = [sys.executable, "-c", program, *arguments]
        name = spec.pop("name", "story")
        return self.client.submit({"name": name, "command": command, "grace": "2s", **spec}).id

    def wait(self, job: str, until: Callable[[JobView], bool], *, within_s: float = 45.0) -> JobView:
        """Poll a job until it is as wanted."""
        deadline = time.monotonic() + within_s
        pause = threading.Event()
        while True:
            view = self.client.job(job)
            if until(view):
                return view
            if time.monotonic() > deadline:
                pytest.fail(f"job is still {view.state} ({view.reason}) after {within_s} s")
            pause.wait(0.03)

    def ended(self, job: str, *, within_s: float = 45.0) -> JobView:
        """Wait for a job to end or be held."""
        return self.wait(job, lambda view: view.state in ENDED, within_s=within_s)

    def run(self, program: str, *arguments: str, **spec: object) -> JobView:
        """Submit and wait."""
        return self.ended(self.submit(program, *arguments, **spec))

    def settings(self, values: Mapping[str, Any]) -> None:
        """Change the operator's settings."""
        self.client.put_settings(values)


@pytest.fixture
def holdfast(tmp_path: Path) -> Iterator[Holdfast]:
    settings = Settings(data=tmp_path / "data", cpus=4.0)
    databases.begin(settings.data)
    with connect(drive=True, settings=settings) as client:
        holdfast = Holdfast(client, tmp_path)
        yield holdfast
        for job in list(client.jobs(states=["Running"])):  # which would outlive it, as programs do
            client.cancel(job.id)
            holdfast.ended(job.id)


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A server that tests of job sets share; each deletes the sets it made.

    One set is there from the beginning: the document's first, to the letter, whose program sleeps for 20 s.
    """
    stage = Stage(tmp_path_factory.mktemp("stage"))
    stage.open()
    yield stage
    stage.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server that is not started yet; nothing of it outlives the test."""
    server = Server(tmp_path)
    yield server
    server.clean_up()
