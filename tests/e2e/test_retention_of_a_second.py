"""Servers that keep what has ended for a second, and are killed again and again: everything runs, and once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.damage import native
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.server import Server

pytestmark = pytest.mark.slow  # more than a thousand programs under servers that are killed

CHAINS, LINKS, TASKS, FAN = 5, 12, 120, 1100
DEATHS = (20, 60, 110, 180, 400, 900)
"""After so many programs a server is killed; the next begins with deleting whatever it may."""


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_waits_for_others_runs_once_although_they_are_deleted_as_soon_as_they_may_be(
    server: Server, tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    ran = tmp_path / "ran"
    ran.touch()
    server.environ = {**server.environ, "HOLDFAST_CPUS": "32", "HOLDFAST_RETENTION": "1s"}
    if database == "postgresql":
        server.environ |= {"HOLDFAST_DATABASE": request.getfixturevalue("postgres_url"), "HOLDFAST_LEASE": "5s"}
    program = {"shell": f'echo "$HOLDFAST_JOB_NAME" >> {ran}', "resources": {"cpu": 0.05}}
    after = {f"c{chain}-{link}": [f"c{chain}-{link - 1}"] for chain in range(CHAINS) for link in range(1, LINKS)}
    after |= {f"c{chain}-0": [] for chain in range(CHAINS)} | {f"f{number}": ["c0-5"] for number in range(FAN)}
    tasks = {"indices": f"0-{TASKS - 1}", "maxRunning": 8}
    with server.start() as client:
        array = client.submit_array(native("Job", "sweep", array=tasks, **program)).id
        client.submit(native("Job", "report", dependsOn=["sweep"], **program))
        client.submit_bulk([native("Job", name, dependsOn=others, **program) for name, others in after.items()])
    names = [*after, "report", *(f"sweep-{index}" for index in range(TASKS))]
    for many in DEATHS:
        wait_until(lambda many=many: len(ran.read_text().split()) >= many, f"{many} programs")  # type: ignore[misc]
        server.end()
        server.start().close()
    wait_until(lambda: len(ran.read_text().split()) >= len(names), "all programs")
    assert sorted(ran.read_text().split()) == sorted(names)
    with server.client() as client:
        wait_until(lambda: client.array(array).state == "Succeeded", "the end of the array")
        wait_until(lambda: client.summary().jobs.keys() <= {"Succeeded"}, "the end of all")
