"""A server that is flooded with large messages keeps its memory, and goes on answering others."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

import httpx
import psutil
import pytest

from holdfast.api.iris._generated import controller
from tests.e2e.server import PATIENCE_S, Server

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_BYTES, MOST_S = 300_000_000, 5.0
"""How much larger the server may become, and how long another may wait: a slow machine waits much longer than ours."""
LAUNCH = "/iris.cluster.ControllerService/LaunchJob"
CLIENT = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
import grpc, httpx, zstandard

door, kind, count, headers, address, path, tag = json.loads(sys.argv[1])
SIZE = (16 << 20) - 4096
bodies = {
    "items": lambda: b"\\n\\x01q\\x12\\x01s" + b"\\x1a\\x0cB\\x01c\\x1a\\x07default" * (SIZE // 14),
    "fields": lambda: b"\\n\\x01q" + b"\\x1a\\x00" * (SIZE // 2),
    "text": lambda: b"x" * SIZE,
    "launch": lambda: zstandard.ZstdCompressor(level=19).compress(bytes([tag, 0]) * (32 << 20)),
}
body = bodies[kind.removesuffix(", packed")]()
packed = grpc.Compression.Gzip if kind.endswith("packed") else None

def by_grpc(_):
    options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options=options) as channel:
        try:
            channel.unary_unary(path)(body, metadata=list(headers.items()), compression=packed, timeout=120)
        except grpc.RpcError as error:
            return error.code().name
    return "OK"

def by_http(_):
    try:
        return str(httpx.post(address + path, content=body, headers=headers, timeout=120).status_code)
    except httpx.TransportError:
        return "cut off"

with ThreadPoolExecutor(count) as pool:
    print(json.dumps(sorted(set(pool.map(by_grpc if door.endswith("grpc") else by_http, range(count))))))
"""


class Watch:
    """Looks how large a server is, and how long others wait, while something goes on."""

    def __init__(self, server: Server) -> None:
        """Look how large it is before."""
        address = server.address()
        self.url, self.token = str(address["url"]), str(address["token"])
        self.process = psutil.Process(int(str(address["pid"])))
        self.before = self.peak = self.process.memory_info().rss
        self.longest_s = 0.0
        self._over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._measure, self._ask)]

    def __enter__(self) -> Self:
        """Begin to look."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop looking."""
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _measure(self) -> None:
        while not self._over.wait(0.01):
            self.peak = max(self.peak, self.process.memory_info().rss)

    def _ask(self) -> None:
        with httpx.Client(headers={"authorization": f"Bearer {self.token}"}, timeout=PATIENCE_S) as client:
            while not self._over.wait(0.02):
                began = time.monotonic()
                client.get(f"{self.url}/api/v1/queues").raise_for_status()
                self.longest_s = max(self.longest_s, time.monotonic() - began)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    listening = {"HOLDFAST_ARMADA_LISTEN": "127.0.0.1:0", "HOLDFAST_FLUSTER_LISTEN": "127.0.0.1:0"}
    server = Server(tmp_path_factory.mktemp("flooded"), HOLDFAST_DOORS="armada,fluster", **listening)
    server.forks = False
    server.start().close()
    yield server
    server.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("door", "kind", "count", "answers"),
    [
        ("armada-grpc", "items", 24, {"UNAUTHENTICATED"}),
        ("armada-grpc", "fields, packed", 12, {"UNAUTHENTICATED"}),
        ("health-grpc", "text", 24, {"INVALID_ARGUMENT"}),
        ("fluster-grpc", "text", 24, {"UNAUTHENTICATED"}),
        ("fluster-grpc", "text, packed", 12, {"UNAUTHENTICATED"}),
        ("armada", "text", 24, {"401", "cut off"}),
        ("iris", "text", 24, {"401", "cut off"}),
        ("iris", "launch", 12, {"401"}),
        ("iris, known", "launch", 12, {"400", "503"}),
        ("rest", "text", 24, {"401", "cut off"}),
    ],
)
def test_a_flood_of_large_messages_takes_little_memory_and_keeps_nobody_waiting(
    server: Server, door: str, kind: str, count: int, answers: set[str]
) -> None:
    with Watch(server) as watch:
        doors = server.address()["doors"]
        assert isinstance(doors, dict)
        addresses = {"armada-grpc": doors["armada"], "health-grpc": doors["armada"], **doors}
        paths = {
            "armada-grpc": "/api.Submit/SubmitJobs",
            "health-grpc": "/grpc.health.v1.Health/Check",
            "fluster-grpc": "/fluster.cluster.ControllerService/LaunchJob",
            "armada": "/v1/job/submit",
            "rest": "/api/v1/jobs",
        }
        headers = {}
        if "grpc" not in door:
            headers["content-type"] = "application/proto" if "iris" in door else "application/json"
        if kind == "launch":
            headers["content-encoding"] = "zstd"
        if "known" in door:
            headers["authorization"] = f"Bearer {watch.token}"
        tag = controller.Controller.LaunchJobRequest.DESCRIPTOR.fields_by_name["constraints"].number << 3 | 2
        address = addresses[door] if door.endswith("grpc") else watch.url
        call = [door, kind, count, headers, address, paths.get(door, LAUNCH), tag]
        words = [sys.executable, "-c", CLIENT, json.dumps(call)]
        flood = subprocess.run(words, capture_output=True, text=True, timeout=300, check=True)
    assert set(json.loads(flood.stdout)) <= answers
    assert watch.peak - watch.before < MOST_BYTES
    assert watch.longest_s < MOST_S
    figures = httpx.get(f"{watch.url}/metrics", headers={"authorization": f"Bearer {watch.token}"}).text
    assert "holdfast_api_accepted_bytes 0.0" in figures, "all of it was given back"
