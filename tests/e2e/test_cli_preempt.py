"""Places of real programs are taken by the command line: warned, stopped, run again, and explained."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEEDS = """trap 'echo asked; sleep 1; exit 0' TERM
test "$HOLDFAST_ATTEMPT" = 1 || exit 0
while :; do sleep 0.05; done"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.clean_up()


def test_a_preempted_program_gets_its_grace_runs_again_and_why_says_who_asked(server: Server) -> None:
    with server.start() as client:
        job = client.submit({"name": "train", "command": ["sh", "-c", HEEDS], "grace": "30s"}).id
        until(client, job, lambda view: view.state == "Running" and view.attempts[0].started_at is not None)
        asked = server.run("preempt", "train", "--reason", "a demo at ten")
        assert (asked.returncode, asked.stdout) == (0, f"{job} train preempt requested\n")
        done = until(client, job, lambda view: view.state == "Succeeded")
        assert (done.attempt, [one.conditions for one in done.attempts]) == (2, [["Preempted"], []])
        assert client.logs(job, attempt=1).text.endswith("asked\n")
        again = server.run("preempt", "train")
    assert again.returncode != 0
    assert "only a running job can be preempted" in again.stderr
    told = server.run("why", "train", "--attempt", "1").stdout
    assert "asked by " in told
    assert "a demo at ten" in told


@pytest.mark.slow
def test_a_server_that_is_killed_in_the_middle_of_a_preemption_loses_nothing_of_it(server: Server) -> None:
    slow = HEEDS.replace("sleep 1;", "sleep 3;")
    with server.start() as client:
        job = client.submit({"name": "train", "command": ["sh", "-c", slow], "grace": "30s"}).id
        until(client, job, lambda view: view.state == "Running" and view.attempts[0].started_at is not None)
        assert server.run("preempt", job).returncode == 0
        until(client, job, lambda view: view.reason.startswith("asked by"))
        server.end(signal.SIGKILL)
    with server.start() as client:
        done = until(client, job, lambda view: view.state == "Succeeded")
        assert [one.conditions for one in done.attempts] == [["Preempted"], []]


@pytest.mark.slow
def test_a_node_and_an_array_give_up_all_that_runs_and_nothing_else(server: Server) -> None:
    sleeper = ["sh", "-c", 'test "$HOLDFAST_ATTEMPT" = 1 && exec sleep 1000']
    with server.start() as client:
        wait_until(lambda: [*client.nodes()], "the server knows its node")
        [node] = client.nodes()
        one = client.submit({"name": "one", "command": sleeper}).id
        array = client.submit_array({"name": "many", "command": sleeper, "array": {"indices": "0-1"}}).id
        wait_until(lambda: len([*client.jobs(array=array)]) == 2, "both tasks are there")
        tasks = [task.id for task in client.jobs(array=array)]
        for job in (one, *tasks):
            until(client, job, lambda view: view.state == "Running" and view.attempts[0].started_at is not None)
        assert server.run("preempt", "many").stdout.startswith(f"{array} many ")
        for job in tasks:
            until(client, job, lambda view: view.attempt == 2)
        assert client.job(one).attempt == 1
        assert server.run("preempt", node.name).stdout == f"{one} one preempt requested\n"
        until(client, one, lambda view: view.attempt == 2)
        unknown = server.run("preempt", "nothing")
    assert unknown.returncode != 0
