"""Fluster's door over real sockets: Connect as its specification has it, whatever is sent."""

from __future__ import annotations

import gzip
import json
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest
import zstandard

from holdfast.api.connect.serving import LARGEST_MESSAGE
from holdfast.api.fluster.calls import CALLS
from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, fluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["fluster"]
LIST = "/fluster.cluster.ControllerService/ListWorkers"
STATUS = "/fluster.cluster.ControllerService/GetJobStatus"
NODES = 40
"""So many that an answer about them is worth compressing."""


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    server = FlusterServer(tmp_path_factory.mktemp("door"), HOLDFAST_NODES=str(NODES), HOLDFAST_CPUS=str(NODES))
    yield server.open()
    server.clean_up()


def told(answer: httpx.Response) -> tuple[int, str, str]:
    """Return the status of HTTP, the code and the sentence of a refusal."""
    assert answer.headers["content-type"] == "application/json"
    found = answer.json()
    assert {*found} <= {"code", "message", "details"}
    return answer.status_code, found["code"], found["message"]


def test_a_call_is_answered_in_the_form_and_by_the_compression_that_its_caller_takes(door: Connected) -> None:
    plain = door.post(LIST, b"", accept_encoding="identity")
    workers = cluster.Controller.ListWorkersResponse.FromString(plain.content).workers
    assert (plain.status_code, plain.headers["content-type"], len(workers)) == (200, "application/proto", NODES)
    assert all(one.healthy and one.last_heartbeat_ms > 0 for one in workers)
    assert "content-encoding" not in plain.headers
    as_json = door.post(LIST, b"{}", "application/json; charset=utf-8", accept_encoding="identity")
    assert as_json.headers["content-type"] == "application/json"
    assert {one["workerId"] for one in as_json.json()["workers"]} == {one.worker_id for one in workers}
    for accepted, chosen in {
        "zstd,gzip,identity": "zstd",
        "gzip": "gzip",
        "br, gzip;q=0.5": "gzip",
        "zstd;q=0, br": None,
        "identity, gzip": None,
    }.items():
        answer = door.post(LIST, b"{}", "application/json", accept_encoding=accepted)
        assert (answer.headers.get("content-encoding"), answer.status_code) == (chosen, 200)
        assert len(answer.json()["workers"]) == NODES


@pytest.mark.parametrize("encoding", ["identity", "gzip", "zstd"])
def test_a_message_is_read_as_it_was_compressed(door: Connected, encoding: str) -> None:
    packs: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress}
    pack = packs.get(encoding, bytes)
    sent = json.dumps({"jobId": "nobody's"}).encode()
    assert told(door.post(STATUS, pack(sent), "application/json", content_encoding=encoding))[1] != "invalid_argument"
    if encoding != "identity":
        bomb = pack(b" " * (LARGEST_MESSAGE + 1))
        assert len(bomb) < 200_000
        http, code, message = told(door.post(STATUS, bomb, "application/json", content_encoding=encoding))
        assert (http, code, "larger than" in message) == (400, "invalid_argument", True)
        for broken in (b"x", pack(sent)[:-3], pack(sent) + b"more"):
            http, code, message = told(door.post(STATUS, broken, "application/json", content_encoding=encoding))
            assert (http, code, f"not what {encoding} compresses" in message) == (400, "invalid_argument", True)


def test_what_is_no_call_is_refused_with_the_code_that_connect_has_for_it(door: Connected) -> None:
    http, code, message = told(door.post("/fluster.cluster.ControllerService/Nothing", b""))
    assert (http, code) == (501, "unimplemented")
    assert "/fluster.cluster.ControllerService/Nothing" in message
    assert told(door.post(LIST, b"", content_encoding="br"))[:2] == (501, "unimplemented")
    assert told(door.post(LIST, b"\xff\xff\xff\xff"))[:2] == (400, "invalid_argument")
    assert told(door.post(LIST, b"[" * 100_000, "application/json"))[:2] == (400, "invalid_argument")
    http, code, message = told(door.post(STATUS, b'{"jobIdd": "x"}', "application/json"))
    assert (http, code, "jobIdd" in message) == (400, "invalid_argument", True)
    assert told(door.post(STATUS, b'{"jobId": "\\ud800"}', "application/json"))[:2] == (400, "invalid_argument")
    assert told(door.post(LIST, b"", connect_protocol_version="2"))[:2] == (400, "invalid_argument")
    for timeout in ("soon", "-1", "1.5", "1" * 11):
        assert told(door.post(LIST, b"", connect_timeout_ms=timeout))[:2] == (400, "invalid_argument")
    assert told(door.post(LIST, b"", connect_timeout_ms="0"))[:2] == (504, "deadline_exceeded")
    assert door.post(LIST, b"", connect_timeout_ms="9999999999").status_code == 200
    unlike = door.post(LIST, b"", "text/plain")
    assert (unlike.status_code, unlike.headers["accept-post"]) == (415, "application/proto, application/json")
    assert told(door.post(LIST, b"x" * (LARGEST_MESSAGE + 1)))[:2] == (400, "invalid_argument")


def test_a_message_that_is_announced_too_large_is_refused_before_it_is_sent(door: Connected) -> None:
    where = urlsplit(door.url)
    with socket.create_connection((where.hostname or "", where.port or 0), timeout=10) as connection:
        head = f"POST {LIST} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/proto\r\n"
        connection.sendall(f"{head}content-length: {LARGEST_MESSAGE * 1000}\r\n\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_a_way_other_than_posting_is_refused(door: Connected) -> None:
    answer = httpx.get(f"{door.url}{LIST}")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert httpx.post(f"{door.url}{LIST}", headers={"origin": "http://elsewhere"}).status_code == 403


def test_workers_of_flusters_own_are_refused_with_the_reason(door: Connected) -> None:
    for name in ("RegisterWorker", "ReportJobState"):
        refused = door.refused(name)
        assert (refused.http, refused.code) == (501, "unimplemented")
        assert refused.message.startswith(f"{name} is not implemented here: workers of Fluster do not join")


def test_every_method_is_named_by_its_services() -> None:
    assert len(CALLS.methods) == 17
    assert {method.path for method in CALLS.methods.values()} == {*CALLS.methods}


def test_who_shows_nothing_or_a_wrong_token_stays_outside_and_has_nothing_read(fluster: FlusterServer) -> None:
    environ = dict(fluster.environ)
    del environ["HOLDFAST_DOOR_ANONYMOUS"]
    fluster.environ = environ
    with fluster.start() as admin:
        viewer = admin.create_token("looks", role="viewer").token
    for token in (None, "guess"):
        refused = Connected(fluster, token).refused("ListWorkers")
        assert (refused.http, refused.code) == (401, "unauthenticated")
    assert told(Connected(fluster).post(LIST, b"\xff"))[:2] == (401, "unauthenticated")
    assert len(Connected(fluster, viewer)("ListWorkers").workers) == 1
