"""Connections that send no whole request, more of them than the server may open files."""

from __future__ import annotations

import select
import socket
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.errors import Unavailable
from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # connections that are held until somebody gives up

FILES, CALLERS = 256, 600
HEAD = b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n"
BODY = b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
LARGEST_LOG = 20_000
SLOW_S = 3.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, HOLDFAST_REQUEST_TIMEOUT=f"{SLOW_S}s")
    server.words = ("sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh", *server.words)
    yield server
    server.clean_up()


def call(server: Server, sent: bytes) -> socket.socket:
    """Connect, and send something."""
    url = httpx.URL(str(server.address()["url"]))
    assert url.port is not None
    caller = socket.create_connection((url.host, url.port), timeout=60)
    with suppress(ConnectionError):  # it may have had to make way already
        caller.sendall(sent)
    return caller


def has_gone(caller: socket.socket) -> bool:
    """Whether the server has closed a connection; an answer before that is read."""
    ready = select.poll()  # select itself knows no descriptor above 1023
    ready.register(caller, select.POLLIN)
    with suppress(ConnectionError):
        while ready.poll(0):
            if not caller.recv(4096):
                return True
        return False
    return True


@pytest.mark.parametrize("sent", [b"", HEAD, BODY], ids=["nothing", "half a head", "half a body"])
def test_a_server_answers_while_more_half_requests_hang_than_it_may_open_files(server: Server, sent: bytes) -> None:
    with server.start(), ExitStack() as stack:
        callers = [stack.enter_context(call(server, sent)) for _ in range(CALLERS)]
        with server.client() as client:
            job = client.submit({"name": "through", "command": ["true"]})
            until(client, job.id, lambda view: view.state == "Succeeded")
        assert len(server.log.read_bytes()) < LARGEST_LOG, server.log.read_text()[:2000]
        wait_until(lambda: all(map(has_gone, callers)), "the end of all half requests")
    assert len(server.log.read_bytes()) < LARGEST_LOG


def test_who_takes_too_long_for_a_request_is_let_go_and_who_rests_is_not(server: Server) -> None:
    server.start().close()
    token = server.address()["token"]
    known = f"Host: x\r\nAuthorization: Bearer {token}\r\n".encode()
    whole = b"GET /api/v1/version HTTP/1.1\r\n" + known + b"\r\n"
    half = b"POST /api/v1/jobs HTTP/1.1\r\n" + known + b"Content-Length: 1000\r\n\r\n"
    with call(server, half) as slow, call(server, whole) as second, call(server, whole) as quick:
        assert quick.recv(4096).startswith(b"HTTP/1.1 200")
        assert second.recv(4096).startswith(b"HTTP/1.1 200")
        second.sendall(whole[:20])  # a request of a connection that was answered before is no exception
        deadline = time.monotonic() + 60
        while not (has_gone(slow) and has_gone(second)):
            assert time.monotonic() < deadline
            with suppress(OSError):
                slow.sendall(b" ")  # a byte now and then does not help
            select.select([], [], [], 0.05)
    assert "Traceback" not in server.log.read_text()


def test_callers_that_are_being_answered_keep_their_places_and_further_ones_are_told_to_come_again(
    tmp_path: Path,
) -> None:
    server = Server(tmp_path, HOLDFAST_CONNECTIONS="4")
    try:
        server.start().close()
        follow = f"GET /api/v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.address()['token']}\r\n"
        stream = (follow + "Accept: text/event-stream\r\n\r\n").encode()
        with ExitStack() as stack:
            callers = [stack.enter_context(call(server, stream)) for _ in range(4)]
            assert all(caller.recv(4096).startswith(b"HTTP/1.1 200") for caller in callers)
            with call(server, stream) as further:
                assert further.recv(4096).startswith(b"HTTP/1.1 503")
            assert not any(map(has_gone, callers))
            callers[0].close()
            with server.client() as client:
                wait_until(lambda: answers(client), "a place")
    finally:
        server.clean_up()


def answers(client: Client) -> bool:
    with suppress(Unavailable):
        return not list(client.jobs())
    return False
