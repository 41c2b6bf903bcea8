"""Whoever looks at jobs that nobody runs is told so; what is printed as data stays data."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import until
from tests.e2e.test_cli_shell import PATIENCE_S, Shell, shell

if TYPE_CHECKING:
    from tests.e2e.server import Server

pytestmark = pytest.mark.slow  # what people see of servers that were killed

__all__ = ["shell"]
NOTE = "no server is running, so this may be out of date; start one: holdfast up\n"
LOOKS = (
    "get jobs -o json",
    "get job long -o json",
    "get nodes -o json",
    "attempts long -o json",
    "events -o json",
    "events --job long -o json",
    "why long -o json",
    "describe long",
    "logs long",
)


SILENT = ("why short", "get job short", "describe short", "logs short", "get queues")
WAITS = "echo up; while ! test -e over; do sleep 0.05; done"


@pytest.fixture
def orphaned(server: Server) -> Shell:
    """The shell of someone whose server was killed while a job ran."""
    with server.start() as client:
        job = client.submit({"name": "long", "command": ["sleep", "1000"]}).id
        until(client, job, lambda view: view.state == "Running")
        short = client.submit({"name": "short", "command": ["true"]}).id
        until(client, short, lambda view: view.state == "Succeeded")
    server.end(signal.SIGKILL)
    return Shell(server.data.parent)


def test_each_look_at_a_job_whose_server_was_killed_says_so_beside_its_output(orphaned: Shell) -> None:
    for line in LOOKS:
        said = orphaned.run(*line.split())
        assert (said.code, said.err) == (0, NOTE), line
        if "json" in line:
            assert json.loads(said.out), line
    assert [orphaned.run(*line.split()).err for line in SILENT] == [""] * len(SILENT), "no server would change these"


def test_nothing_is_said_while_a_command_runs_the_jobs_or_once_all_have_ended(shell: Shell) -> None:
    with shell.start("run", "--name", "here", "--", "sh", "-c", WAITS) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "up\n"
        assert shell.run("get", "jobs").err == ""
        assert shell.run("why", "here").err == ""
        (shell.folder / "over").touch()
        assert running.wait(PATIENCE_S) == 0
    assert shell.run("get", "jobs").err == ""


def test_who_follows_events_is_told_when_the_server_is_killed(server: Server) -> None:
    with server.start() as client:
        client.submit({"name": "long", "command": ["sleep", "1000"]})
    with Shell(server.data.parent).start("events", "-f") as following:
        assert following.stdout is not None
        assert following.stderr is not None
        while "job.started" not in following.stdout.readline():
            continue
        server.end(signal.SIGKILL)
        said = following.stderr.readline()
        if said.startswith("no events are followed for now"):
            said = following.stderr.readline()
        assert said == NOTE
