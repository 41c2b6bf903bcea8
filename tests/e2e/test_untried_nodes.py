"""Real programs under a policy that keeps retries off every node that was tried: over kills of the server, too."""

from __future__ import annotations

import random
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

UNTRIED = {
    "rules": [{"name": "untried", "action": "Retry", "mutate": {"affinity": {"avoidSameNode": True}}}],
    "backoff": {"initialDelay": "0s"},
}
KILLS, JOBS, NODES = 8, 24, 4
SEED = 11


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, HOLDFAST_NODES=str(NODES), HOLDFAST_CPUS="8")
    yield server
    server.clean_up()


def nodes_of(client: Client, job: str) -> list[str]:
    return [run.node or "" for attempt in client.attempts(job) for run in attempt.runs]


def test_a_job_runs_once_on_each_node_and_why_says_that_none_is_left(server: Server) -> None:
    with server.start() as client:
        job = client.submit({"name": "bad", "command": ["sh", "-c", "exit 3"], "retry": UNTRIED}).id
        done = until(client, job, lambda view: view.state == "Failed")
        tried = nodes_of(client, job)
        decisions = client.decisions(job)
    assert (done.attempt, len(set(tried)), len(tried)) == (NODES, NODES, NODES)
    assert [one.code for one in decisions] == ["retry"] * (NODES - 1) + ["retry_unschedulable"]
    assert [one.avoid_nodes for one in decisions] == [*(tried[: n + 1] for n in range(NODES - 1)), []]
    told = server.run("why", "bad").stdout
    assert "no untried node fits the job: it was tried on" in told


def manifest(number: int) -> dict[str, Any]:
    """A job of one or two ranks that fails as often as its number says, or on every node."""
    fails = number % (NODES + 1)
    program = f"sleep 0.0{number % 7}; test $HOLDFAST_ATTEMPT -gt {fails}"
    gang = 2 if number % 3 == 0 else 1
    return {
        "name": f"job-{number}",
        "command": ["sh", "-c", program],
        "gang": gang,
        "resources": {"cpu": 1.5 if gang == 2 else 0.2},
        "retry": UNTRIED,
    }


@pytest.mark.slow
def test_kills_of_the_server_send_no_retry_to_a_node_that_was_tried(server: Server) -> None:
    dice = random.Random(SEED)  # noqa: S311 - to be repeatable
    with server.start() as client:
        jobs = [client.submit(manifest(number)).id for number in range(JOBS)]
    for _ in range(KILLS):
        threading.Event().wait(dice.uniform(0.0, 0.4))
        server.end()
        server.spawn()
        if dice.random() < 0.7:
            wait_until(server.serves, "a server that serves")
    wait_until(server.serves, "a server that serves")
    with server.client() as client:
        wait_until(lambda: all(client.job(job).state in {"Succeeded", "Failed"} for job in jobs), "the end of all")
        for number, job in enumerate(jobs):
            spec, view, tried = manifest(number), client.job(job), nodes_of(client, job)
            fits, fails = NODES // spec["gang"], number % (NODES + 1)
            assert max(Counter(tried).values()) == 1, (spec["name"], tried)
            if fails < fits:
                assert (view.state, view.attempt) == ("Succeeded", fails + 1), spec["name"]
            else:
                assert (view.state, view.attempt) == ("Failed", fits), spec["name"]
                assert client.decisions(job)[-1].code == "retry_unschedulable"
