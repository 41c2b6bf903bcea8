"""Others hold as many connections open as they can, by TLS and by the Unix socket, while somebody works."""

from __future__ import annotations

import socket
import ssl
import statistics
import threading
import time
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

import httpx
import psutil
import pytest

from tests.e2e import people
from tests.e2e.server import PATIENCE_S, Server, wait_until
from tests.e2e.test_network import EVERYWHERE, TOKEN, address_of, issue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow  # connections that are held until somebody gives up

MOST, CALLERS, CALLS = 100, 1000, 25
ATTACKER, GOOD = "127.0.0.1", "127.0.0.2"
SLOW_S = 3.0
HELLO = bytes.fromhex("1603010200010001fc0303")
"""The beginning of a handshake that never goes on."""
HEAD = b"GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    cert, key = issue(tmp_path)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    bounded = {"HOLDFAST_CONNECTIONS": str(MOST), "HOLDFAST_REQUEST_TIMEOUT": f"{SLOW_S}s"}
    server = Server(tmp_path, HOLDFAST_TOKEN_FILE=str(token), **bounded)
    flags = ("--listen", f"{EVERYWHERE}:0", "--tls-cert", str(cert), "--tls-key", str(key))
    server.words = (*server.words[:-2], *flags)
    yield server
    server.clean_up()


class Attack:
    """Opens connections from one address, as fast as it can, each of them with half of something."""

    def __init__(self, port: int, *, by_tls: bool) -> None:
        self._port, self._by_tls = port, by_tls
        self._stack, self._over = ExitStack(), threading.Event()
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(2)]
        self.opened = 0

    def __enter__(self) -> Self:
        """Begin."""
        for each in self._threads:
            each.start()
        wait_until(lambda: self.opened >= MOST, "an attack under way")
        return self

    def __exit__(self, *_: object) -> None:
        """End, and let go of all of them."""
        self._over.set()
        for each in self._threads:
            each.join()
        self._stack.close()

    def _run(self) -> None:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        while self.opened < CALLERS and not self._over.is_set():
            with suppress(OSError):
                caller = socket.create_connection((ATTACKER, self._port), PATIENCE_S, (ATTACKER, 0))
                if self._by_tls:
                    caller = context.wrap_socket(caller)
                self._stack.enter_context(caller)
                caller.sendall(HEAD if self._by_tls else HELLO)
            self.opened += 1


def held(server: Server, port: int) -> int:
    """How many connections of the attacker the server has open."""
    assert server.process is not None
    found = psutil.Process(server.process.pid).net_connections("tcp")
    return sum(1 for one in found if one.laddr.port == port and getattr(one.raddr, "ip", "") == ATTACKER)


@pytest.mark.parametrize("by_tls", [False, True], ids=["half-open handshakes", "half requests"])
def test_who_works_is_answered_while_another_address_holds_all_it_can(server: Server, by_tls: bool) -> None:  # noqa: FBT001 - of the test
    server.start().close()
    url, trust = address_of(server), ssl.create_default_context(cafile=str(server.folder / "server.pem"))
    port, took = int(url.rpartition(":")[2]), []
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with Attack(port, by_tls=by_tls) as attack:
        most = 0
        for number in range(CALLS):
            began = time.perf_counter()
            transport = httpx.HTTPTransport(verify=trust, local_address=GOOD)
            with httpx.Client(transport=transport, base_url=url, headers=headers, timeout=PATIENCE_S) as client:
                job = {"name": f"job{number}", "command": ["true"]}
                assert client.post("/api/v1/jobs", json=job).status_code == 201
            took.append(time.perf_counter() - began)
            most = max(most, held(server, port))
        assert most < MOST * 3 // 4, "its share, and those that are being closed"
        assert attack.opened > MOST
        assert most > MOST // 4, "it does hold some"
    assert max(took) < SLOW_S, f"{statistics.median(took):.3f} s in the middle"
    wait_until(lambda: held(server, port) == 0, "the end of the attack's connections")


def test_half_a_handshake_is_not_waited_for(server: Server) -> None:
    server.start().close()
    port = int(address_of(server).rpartition(":")[2])
    with socket.create_connection((ATTACKER, port), PATIENCE_S) as caller:
        caller.sendall(HELLO[:5])
        began = time.monotonic()
        assert caller.recv(100) in {b"", b"\x15"} or time.monotonic() - began < PATIENCE_S
        with suppress(ConnectionError):
            while caller.recv(100):
                pass
        assert time.monotonic() - began < PATIENCE_S / 2


HOLDING = """
import socket, sys, time
held = []
for _ in range(int(sys.argv[2])):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(60)
    try:
        one.connect(sys.argv[1])
        one.sendall(b"GET /api/v1/jobs HTTP/1.1\\r\\nHost: x\\r\\n")
        held.append(one)
    except OSError:
        pass
def is_open(one):
    try:
        return bool(one.recv(1))
    except BlockingIOError:
        return True
    except OSError:
        return False

for one in held:
    one.settimeout(0)
deadline = time.monotonic() + 60
while len(held) > int(sys.argv[3]) and time.monotonic() < deadline:
    held = [one for one in held if is_open(one)]
print(len(held))
"""


def test_an_account_has_a_share_of_the_connections_to_the_socket() -> None:
    for lab in people.machine(HOLDFAST_CONNECTIONS=str(MOST)):
        assert int(lab.ann.python(HOLDING, str(lab.ann.socket), "300", str(MOST // 2))) <= MOST // 2
        assert lab.bob.wrote("works", "echo done") == "done\n"
