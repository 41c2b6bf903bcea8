"""GPUs are handed out one by one, with a real server and real programs; kill -9 in between. The GPUs are declared."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import InvalidManifest
from tests import nvml
from tests.e2e.server import HOLDFAST, Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client import Client

ENDED = {"Succeeded", "Failed"}
DECLARED = """
devices:
  - {id: GPU-5d1c, index: 0, type: NVIDIA A100-SXM4-40GB, memory: 40Gi, maker: nvidia}
  - {id: GPU-77aa, index: 1, type: NVIDIA A100-SXM4-40GB, memory: 40Gi, maker: nvidia}
"""
TELLS = 'echo "$CUDA_VISIBLE_DEVICES $HIP_VISIBLE_DEVICES $NVIDIA_VISIBLE_DEVICES $HOLDFAST_GPU_SHARE" > {out}.new; '
STAYS = "mv {out}.new {out}; while ! test -e {folder}/go; do sleep 0.02; done"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "devices.yaml").write_text(DECLARED)
    server = Server(tmp_path, HOLDFAST_DEVICES=str(tmp_path / "devices.yaml"))
    yield server
    server.clean_up()


def test_no_two_programs_get_one_gpu_though_the_server_is_killed_in_between(server: Server, tmp_path: Path) -> None:
    def submit(client: Client, name: str, gpu: object) -> str:
        script = (TELLS + STAYS).format(out=tmp_path / name, folder=tmp_path)
        return client.submit({"name": name, "shell": script, "resources": {"cpu": 0.1, "gpu": gpu}}).id

    def told(name: str) -> str:
        wait_until((tmp_path / name).exists, f"{name} began")
        return (tmp_path / name).read_text().strip()

    with server.start() as client:
        submit(client, "first", {"type": "A100*", "memory": "40Gi"})
        assert told("first") == "GPU-5d1c -1 GPU-5d1c"
    server.end()
    with server.start() as client:
        shares = [submit(client, f"share-{n}", 0.5) for n in range(2)]
        waiting, plain = submit(client, "waiting", 1), submit(client, "plain", 0)
        assert [told(f"share-{n}") for n in range(2)] == ["GPU-77aa -1 GPU-77aa 0.5"] * 2
        assert told("plain") == "-1 -1 void"
        why = until(client, waiting, lambda view: view.reason).reason
        assert why == "needs 1 gpu, both are in use by first, share-0, share-1"
        assert [(one.id, one.state, one.used, [run.name for run in one.runs]) for one in client.devices()] == [
            ("GPU-5d1c", "InUse", 1.0, ["first"]),
            ("GPU-77aa", "InUse", 1.0, ["share-0", "share-1"]),
        ]
        (tmp_path / "go").touch()
        assert told("waiting") in {"GPU-5d1c -1 GPU-5d1c", "GPU-77aa -1 GPU-77aa"}
        ended = until(client, waiting, lambda view: view.state in ENDED)
        assert (ended.state, len(ended.attempts[0].runs[0].devices)) == ("Succeeded", 1)
        for job in (*shares, plain):
            until(client, job, lambda view: view.state in ENDED)
        wait_until(lambda: {one.state for one in client.devices()} == {"Free"}, "all GPUs are given back")


def test_a_device_that_others_use_or_that_falls_off_the_bus_is_avoided_while_it_is_so(tmp_path: Path) -> None:
    state, (first, second), pid = tmp_path / "nvml.state", nvml.UUIDS, os.getpid()
    stranger = f"used by {Path(f'/proc/{pid}/comm').read_text().strip()} (pid {pid})"
    state.write_text(f"{first} {pid}\n{second} lost\n")
    server = Server(tmp_path, HOLDFAST_DEVICE_LOOK="0.1s", **nvml.compiled(tmp_path))

    def wait_for_states(client: Client, *expected: str) -> None:
        wait_until(lambda: tuple(one.state for one in client.devices()) == expected, f"the devices are {expected}")

    try:
        with server.start() as client:
            wait_for_states(client, "Foreign", "Unhealthy")
            assert [one.reason for one in client.devices()] == [stranger, "it has fallen off the bus"]
            script = f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; sleep 60"
            job = client.submit({"name": "waits", "shell": script, "resources": {"gpu": 1}}).id
            why = until(client, job, lambda view: view.reason).reason
            assert why == f"needs 1 gpu, {first} is {stranger}; {second} is not healthy: it has fallen off the bus"
            state.write_text(f"{second} lost\n")
            wait_until((tmp_path / "pid").exists, "the job began when the stranger was gone")
            state.write_text(f"{first} {(tmp_path / 'pid').read_text()}\n")
            wait_for_states(client, "InUse", "Free")
    finally:
        server.clean_up()


@pytest.mark.slow
def test_a_gpu_that_a_run_shows_to_be_faulty_is_set_aside_until_a_person_hands_it_out_again(server: Server) -> None:
    line = "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    with server.start() as client:
        bad = {"name": "bad", "shell": f"echo '{line}'; exit 1", "resources": {"cpu": 0.1, "gpu": 1}}
        until(client, client.submit(bad).id, lambda view: view.state in ENDED)
    server.end()
    with server.start() as client:
        faulty, told = client.devices()[0], f"cordoned: {line} (job bad)"
        assert (faulty.id, faulty.state, faulty.reason) == ("GPU-5d1c", "Cordoned", told)
        waiting = client.submit({"name": "waiting", "shell": "true", "resources": {"cpu": 0.1, "gpu": 2}}).id
        assert until(client, waiting, lambda view: view.reason).reason == f"needs 2 gpu, GPU-5d1c is {told}"
        words = [*HOLDFAST, "uncordon", "GPU-5d1c"]
        said = subprocess.run(words, env=dict(server.environ), capture_output=True, text=True, check=True)
        assert said.stdout == "GPU GPU-5d1c uncordoned\n"
        assert until(client, waiting, lambda view: view.state in ENDED).state == "Succeeded"
        assert [each.type for each in client.events(types=["device"])] == [
            "dev.holdfast.device.cordoned.v1",
            "dev.holdfast.device.uncordoned.v1",
        ]


@pytest.mark.slow
def test_a_run_whose_gpus_do_nothing_for_too_long_is_ended_and_not_while_it_uses_them(tmp_path: Path) -> None:
    state = tmp_path / "nvml.state"
    state.write_text("".join(f"{name} busy\n" for name in nvml.UUIDS))
    server = Server(tmp_path, **nvml.compiled(tmp_path))
    try:
        with server.start() as client:
            stall = {"stall": {"idleDevice": "1s"}, "resources": {"gpu": 1, "cpu": 0}}
            job = client.submit({"name": "train", "shell": f"sleep 2.2; : > {state}; sleep 60", **stall}).id
            ended = until(client, job, lambda view: view.state in ENDED)
            (attempt,) = ended.attempts
            assert (ended.state, attempt.cause, attempt.category) == ("Failed", "stalled", "stall")
            assert f"GPUs idle for 1s: {attempt.runs[0].devices[0]}" in str(attempt.message)
            began, over = map(datetime.fromisoformat, (attempt.started_at or "", attempt.ended_at or ""))
            assert (over - began).total_seconds() > 3.0
    finally:
        server.clean_up()


@pytest.mark.slow
def test_named_resources_of_nodes_and_of_the_cluster_are_counted_over_a_restart(tmp_path: Path) -> None:
    server, go = Server(tmp_path, HOLDFAST_RESOURCES="scratch=100Gi"), tmp_path / "go"
    try:
        with server.start() as client:
            client.put_settings({"resources": {"licence/matlab": 1}})
            script = f"touch {tmp_path}/began; while ! test -e {go}; do sleep 0.02; done"
            takes = {"cpu": 0.1, "licence/matlab": 1, "scratch": "30Gi"}
            client.submit({"name": "first", "shell": script, "resources": takes})
            wait_until((tmp_path / "began").exists, "the first began")
        server.end()
        with server.start() as client:
            with pytest.raises(InvalidManifest, match="licence/matlab"):
                client.submit({"name": "typo", "shell": "true", "resources": {"licence/maple": 1}})
            flags = ["--cpus", "0.1", "--resource", "licence/matlab=1", "--resource", "scratch=30Gi"]
            words = [*HOLDFAST, "run", "--detach", "--name", "second", *flags, "--", "true"]
            subprocess.run(words, env=dict(server.environ), capture_output=True, check=True)
            why = until(client, "second", lambda view: view.reason).reason
            assert why == "needs 1 licence/matlab, 0 of the cluster's are free"
            alone = f"mkdir {tmp_path}/held && sleep 0.3 && rmdir {tmp_path}/held"
            pods = {"name": "pods", "shell": alone, "parallelism": 3, "resources": takes}
            short = {"apiVersion": "holdfast.dev/v1", "kind": "JobSet", "metadata": {"name": "set"}}
            client.create_job_set({**short, "spec": {"jobs": [pods]}})
            go.touch()
            assert until(client, "second", lambda view: view.state in ENDED).state == "Succeeded"
            wait_until(lambda: client.job_set("set").state in {"Completed", "Failed"}, "its pods, one after the other")
            assert client.job_set("set").state == "Completed"
    finally:
        server.clean_up()
