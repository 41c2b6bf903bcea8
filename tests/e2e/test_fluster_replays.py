"""Launches by Fluster's door that are sent again: by whom, for how long, and what else can be wrong meanwhile."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.e2e.fluster_stage import Connected, FlusterServer, RefusedError, cluster, fluster, launch
from tests.e2e.server import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fluster"]
TRUE = "#!/bin/sh\ntrue\n"


def test_a_launch_is_known_again_for_as_long_as_is_set(tmp_path: Path) -> None:
    server = FlusterServer(tmp_path, HOLDFAST_FLUSTER_REPLAY="1s")
    try:
        door = server.open()
        sent = launch("once", TRUE)
        assert [door("LaunchJob", sent).job_id for _ in range(2)] == ["once", "once"]

        def refused() -> bool:
            answer = door.post("/fluster.cluster.ControllerService/LaunchJob", sent.SerializeToString())
            return answer.status_code == 409

        wait_until(refused, "a launch that is another one by now")
    finally:
        server.clean_up()


def test_the_same_bytes_of_somebody_else_are_another_launch(fluster: FlusterServer) -> None:
    with fluster.start() as admin:
        admin.put_settings({"access": {"user": ["user:ann", "user:bob"]}})
        tokens = [admin.create_token(name, role="user", user=name).token for name in ("ann", "bob")]
    ann, bob = (Connected(fluster, token) for token in tokens)
    sent = launch("ours", TRUE)
    assert ann("LaunchJob", sent).job_id == ann("LaunchJob", sent).job_id == "ours"
    assert bob.refused("LaunchJob", sent).code == "already_exists"


def test_who_may_not_submit_launches_nothing_and_others_launches_go_on(fluster: FlusterServer) -> None:
    with fluster.start() as admin:
        admin.put_settings({"access": {"operator": ["user:ann"]}})
        viewer = admin.create_token("looks", role="viewer").token
    door, looks = Connected(fluster), Connected(fluster, viewer)
    refused = looks.refused("LaunchJob", launch("hers", TRUE))
    assert (refused.http, refused.code) == (403, "permission_denied")
    door("LaunchJob", launch("mine", TRUE))
    assert looks.status("mine").job_id == "mine"
    assert looks.refused("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="mine")).code == (
        "permission_denied"
    )


def test_what_a_queue_does_not_take_in_is_refused_alone(fluster: FlusterServer) -> None:
    with fluster.start() as admin:
        admin.put_settings({"access": {"operator": ["user:ann"]}})
        queue = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "fluster"}}
        admin.queues.put("fluster", {**queue, "spec": {"paused": True, "maxQueued": 2}})
    door = Connected(fluster)
    for at in range(2):
        door("LaunchJob", launch(f"fits/{at}", TRUE))
    refused = door.refused("LaunchJob", launch("waits", TRUE))
    assert (refused.http, refused.code) == (429, "resource_exhausted")
    assert door.refused("GetJobStatus", cluster.Controller.GetJobStatusRequest(job_id="waits")).code == "not_found"
    assert door("LaunchJob", launch("fits/0", TRUE)).job_id == "fits/0", "what is known takes no room"


@pytest.mark.slow
def test_each_of_many_launches_over_a_kill_of_the_server_is_one_job_however_often_it_is_sent(
    fluster: FlusterServer,
) -> None:
    door = fluster.open()
    sent, killed = [launch(f"over/{at}", f"#!/bin/sh\n# {at}\n") for at in range(60)], threading.Event()
    deadline = time.monotonic() + 2 * PATIENCE_S

    def until_answered(one: cluster.Controller.LaunchJobRequest) -> str:
        while True:
            try:
                return str(Connected(fluster)("LaunchJob", one).job_id)
            except (httpx.HTTPError, RefusedError, OSError, ValueError):
                if time.monotonic() > deadline:
                    raise
                killed.wait(0.05)  # it is down, or its address is not written yet

    def kill() -> None:
        wait_until(lambda: len(door("ListJobs").jobs) > 10, "some of them")
        fluster.end()
        fluster.start().close()

    with ThreadPoolExecutor(9) as threads:
        killing = threads.submit(kill)
        answers = list(threads.map(until_answered, sent))
        killing.result()
    assert answers == [one.name for one in sent]
    listed = [one.job_id for one in Connected(fluster)("ListJobs").jobs]
    assert sorted(listed) == sorted(answers)


def test_the_name_of_a_job_that_has_ended_is_free_once_that_is_pruned(fluster: FlusterServer) -> None:
    door = fluster.open()
    door("LaunchJob", launch("train", "#!/bin/sh\ntrue\n"))
    door.ended("train")
    refused = door.refused("LaunchJob", launch("train", "#!/bin/sh\nfalse\n"))
    assert "holdfast db prune" in refused.message
    fluster.run("db", "prune", "--older-than", "0s")
    door("LaunchJob", launch("train", "#!/bin/sh\nfalse\n"))
    assert door.ended("train").state == cluster.JOB_STATE_FAILED
