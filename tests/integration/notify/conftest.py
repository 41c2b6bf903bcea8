"""A real web server that does what it is told, well or badly, and remembers what it was sent."""

from __future__ import annotations

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


class Received(Struct, frozen=True):
    """One request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class Receiver:
    """A web server on a loopback address; its paths say what it answers, such as ``/500``, ``/hang`` and ``/drip``."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.over, self.open = threading.Event(), threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                receiver.received.append(Received(self.path, {**self.headers}, body))
                receiver.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def answer(self, to: BaseHTTPRequestHandler) -> None:
        """Answer a request as its path says."""
        what = to.path.strip("/")
        if what == "hang" or (what == "gate" and not self.open.is_set()):
            self.over.wait(60)
        elif what == "drip":
            to.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
            while not self.over.wait(0.05):
                to.wfile.write(b"x")
        elif what == "cut":
            to.connection.close()
        else:
            to.send_response(int(what) if what.isdecimal() else 200)
            if what.startswith("30"):
                to.send_header("Location", f"{self.url}/secret")
            to.end_headers()
            if what == "500":
                to.wfile.write(b"no\x1b[31m disk\n left")

    def encrypt(self, certificate: Path, key: Path) -> None:
        """Speak TLS from now on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def close(self) -> None:
        """End it."""
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()
