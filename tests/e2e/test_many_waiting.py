"""More than a thousand jobs wait for one, over killed servers and retention: all of them are released."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.damage import native
from tests.e2e.server import until, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client
    from tests.e2e.server import Server

pytestmark = pytest.mark.slow  # thousands of jobs on servers that are killed

COUNT = 1100


def in_state(client: Client, state: str) -> int:
    return client.summary().jobs.get(state, 0)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_all_that_wait_for_a_job_are_released_over_a_killed_server_and_retention(
    server: Server, tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    gate, ran = tmp_path / "gate", tmp_path / "ran"
    server.environ = {**server.environ, "HOLDFAST_CPUS": "16"}
    if database == "postgresql":
        server.environ |= {"HOLDFAST_DATABASE": request.getfixturevalue("postgres_url"), "HOLDFAST_LEASE": "5s"}
    waits = {"dependsOn": ["first"], "queue": "later", "resources": {"cpu": 0.01}}
    holds = {"shell": f"until [ -e {gate} ]; do sleep 0.05; done"}
    with server.start() as client:
        client.queues.create(native("Queue", "later", paused=True))
        job = client.submit(native("Job", "first", **holds)).id
        program = f'echo "$HOLDFAST_JOB_NAME" >> {ran}'
        client.submit_bulk([native("Job", f"n{number}", **{"shell": program, **waits}) for number in range(COUNT)])
        wait_until(lambda: in_state(client, "Waiting") == COUNT, "all that wait")
    server.end()
    with server.start() as client:
        until(client, job, lambda view: view.state == "Running")
        gate.touch()
        wait_until(lambda: in_state(client, "Running") == 0, "the end of what they wait for")
    server.end()
    with server.start() as client:
        wait_until(lambda: in_state(client, "Waiting") == 0, "the release of all")
        assert server.run("db", "prune", "--older-than", "0s").stdout == "1 job deleted\n"
        assert client.summary().jobs == {"Queued": COUNT}
        client.queues.put("later", native("Queue", "later"))
        wait_until(lambda: in_state(client, "Queued") == in_state(client, "Running") == 0, "the end of all")
    assert sorted(ran.read_text().split()) == sorted(f"n{number}" for number in range(COUNT))
