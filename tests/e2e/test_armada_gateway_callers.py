"""Who may do what by Armada's JSON gateway, what is refused at its threshold, and how many may follow events."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.e2e.armada_stage import DoorServer
from tests.e2e.gateway_stage import Gateway, gateway, server
from tests.e2e.server import wait_until
from tests.e2e.test_network import EVERYWHERE, TOKEN, address_of, issue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["gateway", "server"]
SUBMIT = "/v1/job/submit"
HUGE = 16 * 1024 * 1024 + 1


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def test_callers_show_tokens_as_at_the_other_side_of_the_door_and_have_the_same_rights(server: DoorServer) -> None:
    del server.environ["HOLDFAST_DOOR_ANONYMOUS"]  # type: ignore[attr-defined]  # a dictionary
    with server.start() as client:
        client.put_settings({"access": {"viewer": ["user:eve"]}})
    own = str(server.address()["token"])
    eve = server.json("token", "create", "reader", "--user", "eve")["token"]
    queue = {"name": "ml", "priorityFactor": 1}
    for shown in (f"Bearer {own}", f"bearer {own}", basic("anybody", own)):
        assert Gateway(server, authorization=shown).ok("POST", "/v1/queue", queue) == {}
    for shown in (f"Bearer {eve}", basic("eve", eve)):
        ask = Gateway(server, authorization=shown)
        assert ask.ok("GET", "/v1/queue/ml")["name"] == "ml"
        status, code, _ = ask.refused("POST", "/v1/queue", queue)
        assert (status, code) == (403, 7)
    for shown in ("Bearer wrong", basic("eve", "wrong"), "Basic %%%", "Digest x", ""):
        status, code, _ = Gateway(server, authorization=shown).refused("GET", "/v1/queue/ml")
        assert (status, code) == (401, 16), shown
    answer = Gateway(server)("GET", "/v1/queue/ml")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_who_shows_nothing_is_nobody_where_somebody_else_may_have_sent_it(gateway: Gateway) -> None:
    assert gateway("GET", "/v1/queue/ml").status_code == 200
    for name in ("x-forwarded-for", "forwarded", "via"):
        assert gateway("GET", "/v1/queue/ml", headers={name: "192.0.2.1"}).status_code == 401


def test_a_token_for_logs_alone_reads_logs_and_nothing_else(gateway: Gateway, server: DoorServer) -> None:
    ids = [*gateway.submit(["echo", "hello"]), *gateway.submit(["echo", "elsewhere"], job_set="other")]
    gateway.told(1)
    gateway.told(1, "other")
    with server.client() as client:
        everywhere, there = (
            Gateway(server, authorization=f"Bearer {client.create_token(name, scopes=[scope]).token}")
            for name, scope in (("all", "logs@job"), ("some", "logs@job:group=s"))
        )
    told = [everywhere.ok("POST", "/v1/binoculars/log", {"jobId": one})["log"][0]["line"] for one in ids]
    assert told == ["hello", "elsewhere"]
    assert everywhere.refused("POST", "/v1/job/details", {"jobIds": ids})[:2] == (403, 7)
    assert len(there.ok("POST", "/v1/binoculars/log", {"jobId": ids[0]})["log"]) == 1
    assert there.refused("POST", "/v1/binoculars/log", {"jobId": ids[1]})[0] in {403, 404}


def test_a_page_in_a_browser_is_nobody_by_whatever_name_it_comes(gateway: Gateway) -> None:
    ours = gateway.url.removeprefix("http://")
    for headers, status in (
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "evil.example", "origin": "http://evil.example"}, 403),
        ({"origin": f"http://{ours}"}, 200),
        ({"host": "localhost"}, 200),
    ):
        assert gateway("GET", "/v1/queue/ml", headers=headers).status_code == status, headers


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1/nope", None, 404, 5),
        ("POST", "/v1/queue/ml", b"{}", 405, 12),
        ("PATCH", "/v1/queue/ml", b"{}", 405, 12),
        ("OPTIONS", SUBMIT, None, 405, 12),
        ("POST", "/v1/node/preempt/n1", b"{}", 400, 3),
        ("POST", "/v1/node/cancel/n1", b'{"executor": "nowhere", "queues": ["ml"]}', 200, 0),
        ("POST", SUBMIT, b"{", 400, 3),
        ("POST", SUBMIT, b"[" * 200_000, 400, 3),
        ("POST", SUBMIT, b"", 403, 7),
        ("POST", SUBMIT, b'{"queue": 7}', 400, 3),
        ("POST", SUBMIT, b'{"queue": "ml", "jobRequestItems": 7}', 400, 3),
        ("POST", SUBMIT, b'{"queue": "ml", "jobSetId": "s", "jobRequestItems": [{}]}', 400, 3),
        ("POST", "/v1/queue", b'{"name": "", "priorityFactor": 1}', 400, 3),
        ("POST", "/v1/queue", b'{"name": "q", "priorityFactor": 0.5}', 400, 3),
        ("POST", "/v1/queue", b'{"name": "q\\u0000", "priorityFactor": 1}', 400, 3),
        ("DELETE", "/v1/queue/%00%ff%ZZ", None, 200, 0),
        ("GET", "/v1/queue/%00%ff%ZZ", None, 404, 5),
        ("GET", "/v1/batched/queues?num=x", None, 400, 3),
        ("POST", "/v1/job-set/ml/s", b'{"fromMessageId": "x", "watch": true}', 400, 3),
        ("POST", "/v1/job-set/ml/s", json.dumps({"fromMessageId": f"{1 << 63}:0:0:1"}).encode(), 400, 3),
        ("POST", "/v1/job-set/ml/s", b'{"fromMessageId": "1:0:0:2"}', 400, 3),
        ("POST", "/v1/job-set/nope/s", b"{}", 404, 5),
        ("POST", "/v1/job-set/ml/none", b'{"watch": true, "errorIfMissing": true}', 404, 5),
        ("POST", "/v1/job/cancel", b'{"queue": "ml"}', 400, 3),
        ("POST", "/v1/job/status", json.dumps({"jobIds": ["x"] * 501}).encode(), 400, 3),
        ("POST", "/v1/binoculars/log", b'{"jobId": "x"}', 404, 5),
        ("POST", "/v1/binoculars/log", b'{"jobId": "x", "logOptions": {"tailLines": -1}}', 400, 3),
        ("POST", "/v1/binoculars/cordon", b'{"nodeName": "nope"}', 404, 5),
        ("POST", "/v1/retry-policy", b'{"name": "p", "rules": [{"action": "Maybe"}]}', 400, 3),
        ("PUT", "/v1/retry-policy/nope", b'{"retryLimit": 1, "defaultAction": "Retry"}', 404, 5),
        ("GET", "/v1/retry-policy/nope", None, 404, 5),
    ],
)
def test_bad_input_over_http_is_refused_with_the_status_of_its_code(
    gateway_of_all: Gateway, method: str, path: str, body: bytes | None, status: int, code: int
) -> None:
    answer = gateway_of_all(method, path, body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told == {} if status == 200 else (told["code"] == code and told["error"] == told["message"] != ""), told


@pytest.fixture(scope="module")
def gateway_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    server = DoorServer(tmp_path_factory.mktemp("server"))
    server.open()
    ask = Gateway(server)
    ask.ok("POST", "/v1/queue", {"name": "ml", "priorityFactor": 1})
    yield ask
    server.clean_up()


def test_a_body_that_is_too_large_is_not_read_to_its_end(gateway: Gateway) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            yield b" " * (1 << 20)

    announced = gateway("POST", SUBMIT, b" " * HUGE)
    assert (announced.status_code, announced.json()["code"]) == (413, 8)
    assert announced.json()["message"].startswith("grpc: received message larger than max")
    with suppress(httpx.WriteError):  # the server may hang up before all is sent
        assert gateway("POST", SUBMIT, content=pieces()).status_code == 413
    assert gateway.ok("GET", "/v1/queue/ml")["name"] == "ml"


def test_those_who_follow_over_http_take_the_doors_places_and_give_them_back(tmp_path: Path) -> None:
    server = DoorServer(tmp_path, HOLDFAST_DOOR_WATCHES="2")
    try:
        server.open()
        ask = Gateway(server)
        ask.ok("POST", "/v1/queue", {"name": "ml", "priorityFactor": 1})
        ask.submit(["true"])
        with ExitStack() as stack:
            for _ in range(2):
                lines = ask.events(watch=True)
                stack.callback(lines.close)  # type: ignore[attr-defined]  # a generator
                assert next(lines)["result"]["message"].keys() == {"submitted"}
            status, code, told = ask.refused("POST", "/v1/job-set/ml/s", {"watch": True})
            assert (status, code) == (429, 8)
            assert "2 clients follow events already" in told
        wait_until(lambda: ask("POST", "/v1/job-set/ml/s", {}).status_code == 200, "a place that was given back")
    finally:
        server.clean_up()


def test_half_sent_requests_and_clients_that_hang_up_leave_the_others_alone(gateway: Gateway) -> None:
    gateway.submit(["true"])
    host, port = gateway.url.removeprefix("http://").split(":")
    halves = (
        b"POST /v1/job/submit HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1000\r\n\r\n{",
        b"POST /v1/job/submit HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}",
        b'POST /v1/job-set/ml/s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 15\r\n\r\n{"watch": true}',
        b"POST /v1/job-set/ml/s HTTP/1.1\r\nhost: 127.0.0.1\r\n",
    )
    with ExitStack() as stack:
        for half in halves * 3:
            client = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            client.sendall(half)
            client.shutdown(socket.SHUT_WR)
        assert gateway.ok("GET", "/v1/queue/ml")["name"] == "ml"
    assert gateway.ok("POST", "/v1/queues/active", {}) in ({}, {"activeQueuesByPool": {"default": {"queues": ["ml"]}}})


def test_where_other_machines_reach_the_port_nobody_comes_in_without_a_token(tmp_path: Path) -> None:
    cert, key = issue(tmp_path)
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    server = DoorServer(tmp_path, HOLDFAST_TOKEN_FILE=str(tmp_path / "token"))
    server.words = (*server.words[:-2], "--listen", f"{EVERYWHERE}:0", "--tls-cert", str(cert), "--tls-key", str(key))
    try:
        server.open()
        trust = ssl.create_default_context(cafile=str(cert))
        with httpx.Client(base_url=address_of(server), verify=trust) as away:
            assert away.get("/v1/queue/default").status_code == 401
            shown = {"Authorization": f"Bearer {TOKEN}"}
            assert away.get("/v1/queue/default", headers=shown).json()["name"] == "default"
            strange = {**shown, "Host": "attacker.example"}
            assert away.get("/v1/queue/default", headers=strange).status_code == 403
        near = httpx.HTTPTransport(uds=str(server.data / "holdfast.sock"))
        with httpx.Client(base_url="http://localhost", transport=near) as own:
            assert own.get("/v1/queue/default").status_code == 200, "by the socket the system says who it is"
    finally:
        server.clean_up()


@pytest.mark.slow  # half a minute is how long a reader may take
def test_whoever_does_not_read_a_stream_is_let_go_and_holds_nobody_up(tmp_path: Path) -> None:
    server = DoorServer(tmp_path, HOLDFAST_DOOR_WATCHES="1")
    try:
        server.open()
        ask = Gateway(server)
        ask.ok("POST", "/v1/queue", {"name": "ml", "priorityFactor": 1})
        ask.submit(*[["true", "x" * 50_000]] * 300)
        host, port = ask.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as lazy:
            body = b'{"watch": true}'
            head = b"POST /v1/job-set/ml/s HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: %d\r\n\r\n" % len(body)
            lazy.sendall(head + body)
            assert lazy.recv(12) == b"HTTP/1.1 200"
            assert ask.refused("POST", "/v1/job-set/ml/s", {"watch": True})[0] == 429
            assert ask.ok("GET", "/v1/queue/ml")["name"] == "ml", "meanwhile others are answered"
            wait_until(lambda: ask("POST", "/v1/job-set/ml/s", {}).status_code == 200, "its place", within_s=50)
            told = bytearray()
            with suppress(ConnectionError):
                while piece := lazy.recv(1 << 20):
                    told += piece
        assert b"succeeded" not in told[-2000:], "what it had not read by then it never gets"
        assert len(ask("POST", "/v1/job-set/ml/s", {}).text.splitlines()) >= 300
    finally:
        server.clean_up()


@pytest.mark.slow
def test_two_callers_with_one_client_id_get_one_job_by_either_side_of_the_door(gateway: Gateway) -> None:
    def submit(_: int) -> str:
        [job] = gateway.submit(["true"], clientId="once")
        return job

    with ThreadPoolExecutor(8) as threads:
        assert len({*threads.map(submit, range(24))}) == 1
