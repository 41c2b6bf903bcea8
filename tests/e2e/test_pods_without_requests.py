"""Pods that request nothing and wait for each other: they run at once on few CPUs, as many as their node takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.jobset_stage import Ledger, give_program, group, jobset, program
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any

    from holdfast.client import Client


@pytest.fixture
def two_cpus(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, HOLDFAST_CPUS="2")
    yield server
    server.clean_up()


def meeting(ledger: Ledger, pods: int) -> Mapping[str, Any]:
    """Write a set whose programs end once all of them have begun, and that requests nothing."""
    together = group("all", [], pods=pods)
    pod = together["template"]["spec"]["template"]
    give_program(pod, program(ledger, {"*": f"meet {pods}; ok"}))
    del pod["spec"]["containers"][0]["resources"]
    return jobset("meeting", together)


def completes(api: Client) -> bool:
    return api.job_set("meeting").terminal == "Completed"


def test_thirty_pods_that_wait_for_each_other_meet_on_two_cpus(two_cpus: Server, tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    with two_cpus.start() as api:
        api.create_job_set(meeting(ledger, 30))
        wait_until(lambda: completes(api), "the end of a set whose pods wait for each other")
    ledger.check()


def test_pods_beyond_what_their_node_takes_wait_over_a_death_of_the_server_until_it_takes_more(
    two_cpus: Server, tmp_path: Path
) -> None:
    ledger = Ledger(tmp_path / "ledger")
    two_cpus.environ = {**two_cpus.environ, "HOLDFAST_RESOURCES": "pods=4"}
    full = "no node has room for one more pod: each takes 4 at most"
    why = f"Job meeting-all-0 runs 4 of its 6 pods; the other pods wait: {full}."
    with two_cpus.start() as api:
        api.create_job_set(meeting(ledger, 6))
        ledger.wait_for(4)
        wait_until(lambda: why in two_cpus.run("why", "jobset", "meeting").stdout, "why two of the pods wait")
    two_cpus.end()
    with two_cpus.start():
        wait_until(lambda: why in two_cpus.run("why", "jobset", "meeting").stdout, "why two of the pods still wait")
    assert len(ledger.started()) == 4
    two_cpus.end()
    two_cpus.environ = {**two_cpus.environ, "HOLDFAST_RESOURCES": "pods=6"}
    with two_cpus.start() as api:
        wait_until(lambda: completes(api), "the end of a set whose pods wait for each other")
    ledger.check()
