"""Name servers that never answer, know nothing or change their mind: commands and webhooks say so, and do not hang."""

from __future__ import annotations

import http.server
import os
import shutil
import socket
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from holdfast.client.transport import LONGEST_SEARCH_S
from tests.damage import native
from tests.e2e.server import HOLDFAST, PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server

ABSENT = "NO NAME SERVER OF OURS: only root can put another resolv.conf in place for a command, and only with unshare"
SILENT = ("127.0.0.153", 53)
IN_PLACE = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"')


@pytest.fixture
def resolver(tmp_path: Path) -> Path:
    """A file to put in the place of resolv.conf, which names our name server alone."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip(ABSENT)
    resolver = tmp_path / "resolv.conf"
    resolver.write_text(f"nameserver {SILENT[0]}\noptions timeout:30 attempts:5\n")
    if subprocess.run([*IN_PLACE, resolver, "true"], capture_output=True, check=False).returncode:
        pytest.skip(ABSENT)
    return resolver


class NameServer(threading.Thread):
    """Answers for some names with the next of their addresses; of ``silent.*`` it says nothing."""

    def __init__(self, addresses: dict[str, list[str]]) -> None:
        super().__init__(daemon=True)
        self.asked: Counter[str] = Counter()
        self._addresses = addresses
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(SILENT)

    def run(self) -> None:
        while True:
            query, sender = self._socket.recvfrom(512)
            if not query:
                self._socket.close()
                return
            if answer := self._answer(query):
                self._socket.sendto(answer, sender)

    def _answer(self, query: bytes) -> bytes:
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1 : at + 1 + query[at]].decode())
            at += query[at] + 1
        name, kind, question = ".".join(labels), query[at + 1 : at + 3], query[12 : at + 5]
        if name.startswith("silent."):
            return b""
        known, found = self._addresses.get(name), b""
        if known and kind == b"\0\x01":
            self.asked[name] += 1
            address = known.pop(0) if len(known) > 1 else known[0]
            found = b"\xc0\x0c\0\x01\0\x01\0\0\0\0\0\x04" + socket.inet_aton(address)
        flags = b"\x81\x80" if known else b"\x81\x83"  # which says that there is no such name
        return query[:2] + flags + b"\0\x01\0" + (b"\x01" if found else b"\0") + b"\0\0\0\0" + question + found

    def stop(self) -> None:
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as last:
            last.sendto(b"", SILENT)
        self.join()


@contextmanager
def receiving(got: list[str]) -> Iterator[int]:
    """Take webhooks on two addresses of this machine at one port, and note by which name each was called."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(f"{self.headers['Host']} at {self.connection.getsockname()[0]}")
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as one:
        port = one.server_port
        with http.server.HTTPServer(("127.0.0.2", port), Handler) as other:
            for each in (one, other):
                threading.Thread(target=each.serve_forever, daemon=True).start()
            yield port
            for each in (one, other):
                each.shutdown()


@pytest.mark.slow
def test_webhooks_go_where_a_name_server_says_if_that_is_allowed_and_nowhere_else(
    server: Server, resolver: Path
) -> None:
    names = {
        "hooks.example": ["127.0.0.1"],
        "inner.example": ["127.0.0.2"],
        "rebind.example": ["127.0.0.1", "127.0.0.2"],
    }
    got: list[str] = []
    server.words = (*IN_PLACE, str(resolver), *server.words)
    server.environ = {**server.environ, "HOLDFAST_NOTIFY_ALLOW": "127.0.0.1"}
    name_server = NameServer(names)
    name_server.start()
    with receiving(got) as port, server.start() as client:
        for name in ("hooks", "inner", "rebind", "unknown", "silent"):
            url = f"http://{name}.example:{port}/"
            client.notifiers.create(native("Notifier", name, type="webhook", url=url, timeout="2s"))

        def said(name: str) -> str:
            ended = server.run("notify", "test", name)
            return ended.stderr if ended.returncode else ""

        assert said("hooks") == ""
        assert "inner.example is 127.0.0.2, which is not a public address" in said("inner")
        assert said("rebind") == ""
        assert "rebind.example is 127.0.0.2, which is not a public address" in said("rebind")
        assert "unknown.example cannot be found" in said("unknown")
        assert "no name server resolved silent.example within 2 s" in said("silent")
        assert got == [f"hooks.example:{port} at 127.0.0.1", f"rebind.example:{port} at 127.0.0.1"]
        assert name_server.asked["rebind.example"] == 2, "once a try: what was checked is connected to"
    name_server.stop()


@pytest.mark.slow
def test_a_command_does_not_wait_for_a_name_server_that_never_answers(tmp_path: Path, resolver: Path) -> None:
    environ = {**os.environ, "HOLDFAST_URL": "http://holdfast.example:7070", "HOLDFAST_DATA": str(tmp_path / "data")}
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as silent:
        silent.bind(SILENT)
        began = time.monotonic()
        said = subprocess.run(
            [*IN_PLACE, resolver, *HOLDFAST, "get", "jobs"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        took_s = time.monotonic() - began
        silent.settimeout(0)
        assert silent.recv(512), "it was asked"
    assert (said.returncode, took_s >= LONGEST_SEARCH_S) == (5, True), said
    assert f"no name server resolved holdfast.example within {LONGEST_SEARCH_S:g} s" in said.stderr
