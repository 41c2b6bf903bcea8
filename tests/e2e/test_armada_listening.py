"""Armada's door where other machines reach it: by TLS, with a token of one's own, and slowly for who guesses."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.app.entrance import doors
from holdfast.app.settings import Settings
from holdfast.errors import InvalidSetting
from tests.e2e.server import PATIENCE_S, Server, wait_until
from tests.e2e.test_network import EVERYWHERE, TOKEN, issue

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    cert, key = issue(tmp_path)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    opened = {"HOLDFAST_DOORS": "armada", "HOLDFAST_ARMADA_LISTEN": "0.0.0.0:0"}
    shown = {"HOLDFAST_TLS_CERT": str(cert), "HOLDFAST_TLS_KEY": str(key), "HOLDFAST_TOKEN_FILE": str(token)}
    server = Server(tmp_path, **opened, **shown)
    yield server
    server.clean_up()


def port(server: Server) -> int:
    told = server.address()["doors"]
    assert isinstance(told, dict)
    return int(told["armada"].rpartition(":")[2])


class Stranger:
    """A client on another machine, which trusts a certificate."""

    def __init__(self, server: Server, trusted: bytes | None = None) -> None:
        pem = (server.folder / "server.pem").read_bytes() if trusted is None else trusted
        self.channel = grpc.secure_channel(f"localhost:{port(server)}", grpc.ssl_channel_credentials(pem))

    def __enter__(self) -> Stranger:  # noqa: PYI034 - no other kind
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """Hang up."""
        self.channel.close()

    def asks(self, token: str | None, timeout_s: float = PATIENCE_S) -> str:
        """Return the code of the answer to who shows a token."""
        call: Any = self.channel.unary_unary("/api.Submit/Health")
        shown = (("authorization", f"Bearer {token}"),) if token is not None else ()
        try:
            call(b"", metadata=shown, timeout=timeout_s)
        except grpc.RpcError as error:
            return error.code().name
        return "OK"


def test_others_come_in_by_tls_with_a_token_alone(server: Server) -> None:
    with server.start() as admin, Stranger(server) as stranger:
        assert stranger.asks(TOKEN) == "OK"
        assert stranger.asks(None) == stranger.asks("guess") == "UNAUTHENTICATED"
        token = admin.create_token("ci", role="viewer").token
        assert stranger.asks(token) == "OK"
        other, _ = issue(server.folder, "other")
        with Stranger(server, other.read_bytes()) as wrong:
            assert wrong.asks(TOKEN, 5) in {"UNAVAILABLE", "DEADLINE_EXCEEDED"}, "a certificate that nobody vouches for"
        with grpc.insecure_channel(f"localhost:{port(server)}") as clear:
            call: Any = clear.unary_unary("/api.Submit/Health")
            with pytest.raises(grpc.RpcError):
                call(b"", timeout=5)


@pytest.mark.slow
def test_who_guesses_tokens_waits_and_nobody_else_does(server: Server) -> None:
    server.start().close()
    with Stranger(server) as guessing, Stranger(server) as working, ThreadPoolExecutor(100) as threads:
        began = time.monotonic()
        guesses = [threads.submit(guessing.asks, f"guess{number}") for number in range(100)]
        took = []
        for _ in range(20):
            asked = time.monotonic()
            assert working.asks(TOKEN) == "OK"
            took.append(time.monotonic() - asked)
        assert {each.result() for each in guesses} == {"UNAUTHENTICATED"}
        guessing.asks("guess")
        assert time.monotonic() - began >= 2
        assert sorted(took)[len(took) // 2] < 1


@pytest.mark.slow
def test_a_renewed_certificate_is_shown_to_who_connects_from_then_on(server: Server) -> None:
    server.start().close()
    with Stranger(server) as before:
        assert before.asks(TOKEN) == "OK"
        cert, key = issue(server.folder, "renewed")
        renewed = cert.read_bytes()
        key.replace(server.folder / "server.key")
        cert.replace(server.folder / "server.pem")

        def shown() -> bool:
            with Stranger(server, renewed) as after:
                return after.asks(TOKEN, 5) == "OK"

        wait_until(shown, "the renewed certificate")
        assert before.asks(TOKEN) == "OK", "who was connected goes on"


def test_a_door_that_others_reach_asks_for_what_makes_that_safe(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting) as caught:
        doors.place_of(Settings(armada_listen="0.0.0.0:1", door_anonymous="ann"))
    assert [one.path for one in caught.value.problems] == ["HOLDFAST_ARMADA_LISTEN", "HOLDFAST_DOOR_ANONYMOUS"]
    secure = {"tls_cert": tmp_path / "c", "tls_key": tmp_path / "k"}
    for place in ("0.0.0.0:1", "[::]:1", "192.0.2.1:1", "127.0.0.1:1", "[::1]:1", "localhost:1"):
        doors.place_of(Settings.model_validate({**secure, "armada_listen": place}))
    for place in (EVERYWHERE, f"{EVERYWHERE}:", f"{EVERYWHERE}:65536", "example.org:1", ""):
        with pytest.raises(InvalidSetting, match="A setting is not valid") as caught:
            doors.place_of(Settings.model_validate({**secure, "armada_listen": place}))
        assert "not an address and a port" in caught.value.problems[0].message
