"""A server with Armada's door open, and Armada's own client, unmodified, in a process and an environment of its own."""

from __future__ import annotations

import json
import subprocess
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.server import Server
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PRELUDE = '''
import json, os, sys, threading
import grpc
from google.protobuf import empty_pb2, json_format
from armada_client.client import ArmadaClient
from armada_client.armada import event_pb2, job_pb2, submit_pb2, submit_pb2_grpc
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as amount
from armada_client.typings import JobState

channel = grpc.insecure_channel(sys.argv[1])
client = ArmadaClient(channel)
policies = submit_pb2_grpc.RetryPolicyServiceStub(channel)

def item(*args, priority=1.0, command=(), **more):
    some = {"cpu": amount.Quantity(string="100m"), "memory": amount.Quantity(string="64Mi")}
    asked = core.ResourceRequirements(requests=some, limits=some)
    program = core.Container(name="main", image="busybox", command=command, args=args, resources=asked)
    return bare(program, priority=priority, **more)

def bare(container, **more):
    pod = core.PodSpec(containers=[container])
    return client.create_job_request_item(pod_spec=pod, **{"namespace": "default", **more})

def a_queue():
    client.create_queue(client.create_queue_request(name="ml", priority_factor=3.0))

def policy(name, *rules):
    return submit_pb2.RetryPolicy(name=name, default_action=submit_pb2.RETRY_ACTION_FAIL, rules=rules)

def states(ids):
    found = client.get_job_status(ids).job_states
    return {key: submit_pb2.JobState.Name(state) for key, state in found.items()}

def submitted(queue, job_set, *items):
    return [one.job_id for one in client.submit_jobs(queue, job_set, list(items)).job_response_items]

def told(queue, job_set, ended, after=None):
    """What a watch tells until so many jobs have ended."""
    found, over = [], 0
    for raw in client.get_job_events_stream(queue, job_set, after):
        one = client.unmarshal_event_response(raw)
        kind = one.type.name
        found.append([raw.id, kind, one.message.job_id, json_format.MessageToDict(one.message)])
        over += kind in ("succeeded", "cancelled", "preempted") or (kind == "failed" and not one.message.retryable)
        if over == ended:
            return found

def refused(call):
    try:
        call()
    except grpc.RpcError as error:
        return [error.code().name, error.details()]

def done(value):
    print(json.dumps(value))
'''


class Stock:
    """Armada's client, of the version that is pinned."""

    def __init__(self, address: str) -> None:
        """Remember where the door is."""
        self._python = python_of("armada")
        self._address = address

    def __call__(self, script: str, **given: object) -> Any:  # noqa: ANN401 - what a script says is done
        """Run a script, which ends by saying what it has ``done``; ``given`` are names it has."""
        names = "".join(f"{name} = {value!r}\n" for name, value in given.items())
        text = PRELUDE + names + textwrap.dedent(script)
        ran = subprocess.run(
            [self._python, "-c", text, self._address], capture_output=True, text=True, check=False, timeout=120
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])


class DoorServer(Server):
    """A server with the door open, by which everybody on this machine is ``ann``."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """Remember the directory."""
        opened = {"HOLDFAST_DOORS": "armada", "HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0"}
        super().__init__(folder, **{**opened, "HOLDFAST_DOOR_ANONYMOUS": "ann", **environ})

    @property
    def at(self) -> str:
        """Where the door is reached that is open now."""
        return str(json.loads((self.data / "server.json").read_text())["doors"]["armada"])

    @property
    def stock(self) -> Stock:
        """The client, which comes in by the door that is open now."""
        return Stock(self.at)

    def open(self, role: str = "admin") -> Stock:
        """Start it, and give ``ann`` a role."""
        with self.start() as client:
            client.put_settings({"access": {role: ["user:ann"]}})
        return self.stock


@pytest.fixture
def door(tmp_path: Path) -> Iterator[DoorServer]:
    """A server that is not started yet."""
    if not python_of("armada").exists():
        pytest.skip("Armada's client is not installed; to judge the door by it: ./dev clients")
    server = DoorServer(tmp_path)
    yield server
    server.clean_up()
