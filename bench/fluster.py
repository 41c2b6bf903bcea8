"""Launches by Fluster's door beside jobs by REST, on one server: each a call of its own, durable, by eight connections.

The queue is paused, so that nothing runs beside them. Clients are processes of their own.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.server import serving
from holdfast.client import Client

CONNECTIONS = 8
_QUEUE = {"apiVersion": "holdfast.dev/v1", "kind": "Queue", "metadata": {"name": "fluster"}, "spec": {"paused": True}}
_TIMED = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from holdfast.api.fluster._generated import cluster
where, count, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[2]) // {connections}
path = "/fluster.cluster.ControllerService/LaunchJob"
def message(name):
    sent = cluster.Controller.LaunchJobRequest(name=name, serialized_entrypoint=b"#!/bin/sh\\ntrue\\n")
    sent.resources.cpu, sent.resources.memory, sent.retry.max_retries_failure = 1, "64m", 3
    return sent.SerializeToString()
def timed(kind, launch):
    bodies = [[message(f"{{kind}}/{{at}}/{{n}}") for n in range(each)] for at in range({connections})]
    began = time.perf_counter()
    with ThreadPoolExecutor({connections}) as threads:
        list(threads.map(launch, bodies))
    print(time.perf_counter() - began)
"""
_BY_CONNECT = """
import http.client
def launch(bodies):
    connection = http.client.HTTPConnection(where)
    for body in bodies:
        connection.request("POST", path, body, {{"content-type": "application/proto"}})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        answer.read()
timed("connect", launch)
"""
_BY_GRPC = """
import grpc
def launch(bodies):
    with grpc.insecure_channel(where, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call = channel.unary_unary(path)
        for body in bodies:
            call(body)
timed("grpc", launch)
"""
_BY_REST = """
import sys, time
from holdfast.client import Client
client, count = Client(sys.argv[1], token=sys.argv[2]), int(sys.argv[3])
item = {"name": "bench", "queue": "fluster", "command": ["/bin/true"], "resources": {"cpu": 1, "memory": "64Mi"}}
began = time.perf_counter()
client.submit_bulk([item] * count)
print(time.perf_counter() - began)
"""


def measure(count: int = 4_000) -> tuple[float, float, float]:
    """Return how many jobs come in a second by REST in bulk, by Connect and by gRPC one by one."""
    opened = {"HOLDFAST_DOORS": "fluster", "HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0", "HOLDFAST_DOOR_ANONYMOUS": "bench"}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, serving(Path(folder), **opened):
        server = json.loads((Path(folder) / "server.json").read_text())
        with Client(server["url"], token=server["token"]) as client:
            client.put_settings({"access": {"operator": ["user:bench"]}})
            client.queues.put("fluster", _QUEUE)
        timed = _TIMED.format(connections=CONNECTIONS)
        by_rest = _run(count, _BY_REST, server["url"], server["token"])
        by_connect = _run(count, timed + _BY_CONNECT.format(), server["url"].partition("//")[2])
        by_grpc = _run(count, timed + _BY_GRPC, server["doors"]["fluster-grpc"])
    return by_rest, by_connect, by_grpc


def _run(count: int, script: str, *words: str) -> float:
    ran = subprocess.run([sys.executable, "-c", script, *words, str(count)], capture_output=True, text=True, check=True)
    return count / float(ran.stdout)
