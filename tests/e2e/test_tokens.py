"""The token of a server outlives it, and can be given another by a file."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.e2e.server import PATIENCE_S, Server

if TYPE_CHECKING:
    from pathlib import Path


def scraped(url: str, token: str) -> int:
    """Ask for the metrics as who knows only address and token."""
    return httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE_S).status_code


def started(server: Server) -> str:
    """Start a server, from the second time on where it was before."""
    server.start().close()
    url = str(server.address()["url"])
    server.words = (*server.words[:-1], url.rpartition(":")[2])
    return url


@pytest.mark.slow
def test_a_token_outlives_servers_that_stop_or_are_killed_until_it_is_taken_away(server: Server) -> None:
    url, kept = started(server), server.data / "token"
    token = kept.read_text().strip()
    assert (kept.stat().st_mode & 0o777, token) == (0o600, server.address()["token"])
    asks = Server(server.folder / "elsewhere", HOLDFAST_URL=url, HOLDFAST_TOKEN_FILE=str(kept))
    for number in (signal.SIGTERM, signal.SIGKILL):
        server.end(number)
        started(server)
        assert scraped(url, token) == 200, f"with the token from before {number!r}"
        assert asks.run("get", "queues", "-o", "name").stdout == "queue/default\n"
    server.end(signal.SIGTERM)
    kept.unlink()
    started(server)
    assert (scraped(url, token), scraped(url, kept.read_text().strip())) == (401, 200)
    assert asks.run("get", "queues", "-o", "name").returncode == 0, "the file is read by each command"
    assert token not in server.log.read_text()


def test_a_token_that_others_can_read_is_neither_sent_nor_served(server: Server, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("a-token-of-ours\n")
    own.chmod(0o600)
    server.environ = {**server.environ, "HOLDFAST_TOKEN_FILE": str(own)}
    url = started(server)
    assert scraped(url, "a-token-of-ours") == 200
    assert not (server.data / "token").exists(), "none is made where one is given"
    own.chmod(0o640)
    asks = Server(tmp_path / "elsewhere", HOLDFAST_URL=url, HOLDFAST_TOKEN_FILE=str(own))
    server.end()
    for said in (asks.run("get", "queues"), server.run("up", "--port", "0")):
        assert (said.returncode, f"{own} can be read by other users (mode 0640)" in said.stderr) == (4, True), said
        assert "a-token-of-ours" not in said.stdout + said.stderr
