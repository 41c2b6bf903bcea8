"""Jobs of Armada's that no node can hold, or whose machine runs out of memory: what happens to them, as it is told."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.e2e.armada_stage import DoorServer
from tests.e2e.test_armada_conditions import AGAIN, FIRST, attach, ended
from tests.e2e.test_armada_preemption import told_of
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow  # each waits for a time or for a machine to be looked at

MARGIN, MOST_USED = 1 << 30, 4 << 30
HUGE = """
job = item("sh", "-c", "true")
for amounts in (job.pod_spec.containers[0].resources.requests, job.pod_spec.containers[0].resources.limits):
    amounts["cpu"].string = "1000"
[job] = submitted("ml", "s", job)
"""
FILLS = """
import os, time
if os.environ["HOLDFAST_ATTEMPT"] == "1":
    held = bytearray(2500 << 20)
    for at in range(0, len(held), 4096):
        held[at] = 1
    time.sleep(600)
"""


@pytest.fixture
def opened(tmp_path: Any) -> Iterator[Callable[..., DoorServer]]:  # noqa: ANN401 - a path
    """Open a door with settings."""
    if not python_of("armada").exists():
        pytest.skip("Armada's client is not installed; to judge the door by it: ./dev clients")
    servers: list[DoorServer] = []

    def open_(**environ: str) -> DoorServer:
        servers.append(DoorServer(tmp_path, **environ))
        servers[0].open()
        return servers[0]

    yield open_
    for server in servers:
        server.clean_up()


def test_a_job_that_no_node_can_hold_is_rejected_as_upstream_does(opened: Callable[..., DoorServer]) -> None:
    door = opened(HOLDFAST_DOOR_UNSCHEDULABLE_AFTER="1s")
    events, state, said = door.stock(
        "a_queue()\n"
        + HUGE
        + 'done([told("ml", "s", 1), states([job])[job], client.get_job_errors([job]).job_errors[job]])'
    )
    job = events[0][2]
    assert told_of(events, job) == ["submitted", "queued", "failed"]
    failed = events[-1][3]
    assert (failed["cause"], failed.get("retryable", False)) == ("Rejected", False)
    assert (failed["failureCategory"], failed["failureSubcategory"]) == ("internal", "job-rejected")
    assert re.fullmatch(r"needs 1000 cpu, the largest node has \d+: no node could ever take it", failed["reason"])
    assert "podName" not in failed
    assert state == "REJECTED"
    assert "no node could ever take it" in said


def test_a_policy_that_names_unschedulable_has_it_tried_again_as_often_as_it_says(
    opened: Callable[..., DoorServer],
) -> None:
    door = opened(HOLDFAST_DOOR_UNSCHEDULABLE_AFTER="1s")
    attach(door, "onConditions: [Unschedulable]", more=", backoff: {initialDelay: 0s}")
    job = door.stock(HUGE + "done(job)")
    events = ended(door)
    assert [(kind, of) for _, kind, of, _ in events[2:]] == [("failed", job)] * 2
    retried, final = (one for _, kind, _, one in events if kind == "failed")
    assert (retried["cause"], retried["retryable"], final["cause"]) == ("Rejected", True, "Rejected")
    assert final["reason"].startswith("Retry policy: policy retry limit exceeded (1/1)")
    assert "Final run error:\nneeds 1000 cpu" in final["reason"]


@pytest.mark.parametrize("named", [True, False])
def test_what_a_machine_evicts_is_told_with_what_it_lacked(opened: Callable[..., DoorServer], *, named: bool) -> None:
    least = psutil.virtual_memory().available - MARGIN
    if least < MOST_USED:
        pytest.skip("this machine has too little memory left for a program that uses much of it")
    door = opened(HOLDFAST_EVICT_BELOW=f"memory={least}")
    attach(door, f"onConditions: [{'Evicted' if named else 'OOMKilled'}]")
    job = door.stock(
        """
        job = item(python, "-c", program)
        for amounts in (job.pod_spec.containers[0].resources.requests, job.pod_spec.containers[0].resources.limits):
            amounts["memory"].string = "3Gi"
        done(submitted("ml", "s", job)[0])
        """,
        python=sys.executable,
        program=FILLS,
    )
    events = ended(door)
    kinds = [kind for kind in told_of(events, job) if kind != "running"]
    assert kinds == [*FIRST[:-1], "failed", *([*AGAIN, "succeeded"] if named else [])]
    [failed] = [one for _, kind, _, one in events if kind == "failed"]
    assert (failed["cause"], failed.get("retryable", False)) == ("Evicted", named)
    assert re.search(
        r"node \S+ was low on memory: \S+Gi of \S+Gi available, and the minimum is \S+Gi", failed["reason"]
    )
