"""A damaged row in a real database: the server starts, everything else runs, and the row is found and disposed of."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import until, wait_until
from tests.e2e.test_databases import Machine

if TYPE_CHECKING:
    from tests.e2e.server import Server

pytestmark = pytest.mark.slow  # several servers on damaged databases

DAMAGE = '[1, {"name": 5}]'


def queue(*, paused: bool) -> dict[str, object]:
    spec = {"paused": paused}
    return {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "later"}, "spec": spec}


@pytest.mark.parametrize("begun", [False, True])
def test_a_damaged_row_keeps_no_server_from_starting_and_nothing_else_from_running(
    server: Server, *, begun: bool
) -> None:
    client = server.start()
    client.create_queue(queue(paused=not begun))
    bad = client.submit({"name": "bad", "shell": "sleep 300", "queue": "later"}).id
    good = client.submit({"name": "good", "shell": "sleep 3; exit 5", "queue": "later"}).id
    if begun:
        for job in (bad, good):
            until(client, job, lambda seen: seen.attempts and seen.attempts[-1].runs[0].started_at)
    client.close()
    server.end()
    with closing(sqlite3.connect(server.data / "holdfast.db")) as database:
        digest = database.execute("SELECT spec FROM jobs WHERE id = ?", (bad,)).fetchone()[0]
        database.execute("UPDATE specs SET body = ? WHERE digest = ?", (DAMAGE, digest))
        database.commit()
    for _ in range(2):
        client = server.start()
        wait_until(lambda: [job.id for job in client.jobs(quarantined=True)] == [bad], "the quarantine")  # noqa: B023
        client.close()
        server.end()
    client = server.start()
    client.put_queue("later", queue(paused=False))
    assert until(client, good, lambda job: job.ended_at).attempts[-1].exit_code == 5
    machine = Machine(server.data)
    assert machine.run("get", "jobs", "--quarantined", "-o", "name").out == f"job/{bad}\n"
    assert "is quarantined: Holdfast failed while taking it in" in machine.run("why", bad).out
    assert "holdfast_quarantined_workloads 1.0" in client.metrics()
    assert machine.run("cancel", bad).code == 0
    wait_until(lambda: client.job(bad).state == "Cancelled", "the end of what nobody could read")
    assert not list(client.jobs(quarantined=True))
    wait_until(lambda: not server.programs(), "the end of its program")
    client.close()
