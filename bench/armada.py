"""Jobs by Armada's door beside jobs by REST, on one server: submitted at once, and followed until all have ended.

Each client is a process of its own: Armada's, unmodified, where it is installed (``./dev clients``), and ours. Jobs may
have far more memory than a start takes: with 1Mi a few of thousands ended for want of it, and were waited for in vain.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.server import serving
from holdfast.client import Client
from tools.clients import python_of

if TYPE_CHECKING:
    import psutil

_BY_DOOR = """
import sys, time, grpc
from armada_client.client import ArmadaClient
from armada_client.k8s.io.api.core.v1 import generated_pb2 as core
from armada_client.k8s.io.apimachinery.pkg.api.resource import generated_pb2 as amount
client, count = ArmadaClient(grpc.insecure_channel(sys.argv[1])), int(sys.argv[2])
client.create_queue(client.create_queue_request(name="ml", priority_factor=1.0))
some = {"cpu": amount.Quantity(string="1"), "memory": amount.Quantity(string="64Mi")}
asked = core.ResourceRequirements(requests=some, limits=some)
pod = core.PodSpec(containers=[core.Container(name="main", command=["/bin/true"], resources=asked)])
items = [client.create_job_request_item(pod_spec=pod, namespace="default") for _ in range(count)]
began = time.perf_counter()
client.submit_jobs("ml", "bench", items)
submitted, over = time.perf_counter(), 0
for raw in client.get_job_events_stream("ml", "bench"):
    over += raw.message.WhichOneof("events") == "succeeded"
    if over == count:
        break
print(submitted - began, time.perf_counter() - began)
"""
_BY_REST = """
import sys, time
from holdfast.client import Client
client, count = Client(sys.argv[1], token=sys.argv[2]), int(sys.argv[3])
item = {"name": "bench", "command": ["/bin/true"], "resources": {"cpu": 1, "memory": "64Mi"}, "group": "rest"}
items = [item] * count
began = time.perf_counter()
client.submit_bulk(items)
submitted, over = time.perf_counter(), 0
for event in client.events(follow=True, group="rest"):
    over += event.type == "dev.holdfast.job.succeeded.v1"
    if over == count:
        break
print(submitted - began, time.perf_counter() - began)
"""


class Rates(NamedTuple):
    """Jobs in a second, and what the server spent."""

    submitted: float
    ended: float
    """From the submission on, until the client has been told of the last end."""
    cpu_s: float
    """Processor time of the server for all of them, without that of what holds programs."""


def measure(count: int = 10_000) -> tuple[Rates, Rates] | None:
    """Return the rates by REST and by the door; ``None`` where Armada's client is not installed."""
    stock = python_of("armada")
    if not stock.exists():
        return None
    opened = {"HOLDFAST_DOORS": "armada", "HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0", "HOLDFAST_DOOR_ANONYMOUS": "bench"}
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        serving(Path(folder), **opened) as (_, process),
    ):
        server = json.loads((Path(folder) / "server.json").read_text())
        with Client(server["url"], token=server["token"]) as client:
            client.put_settings({"access": {"operator": ["user:bench"]}})
        by_rest = _run(process, count, sys.executable, _BY_REST, server["url"], server["token"])
        by_door = _run(process, count, str(stock), _BY_DOOR, server["doors"]["armada"])
    return by_rest, by_door


def _run(server: psutil.Process, count: int, python: str, script: str, *words: str) -> Rates:
    before = server.cpu_times()
    ran = subprocess.run([python, "-c", script, *words, str(count)], capture_output=True, text=True, check=True)
    submitted_s, ended_s = map(float, ran.stdout.split())
    after = server.cpu_times()
    return Rates(count / submitted_s, count / ended_s, after.user + after.system - before.user - before.system)
