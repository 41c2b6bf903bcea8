"""What a real server keeps to itself: its token, its files, and its address."""

from __future__ import annotations

import os
import signal
import stat
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.app.server import serve
from holdfast.client import Client
from holdfast.errors import Refused, Unauthenticated
from tests.e2e.server import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server

TOKEN = "t0ken-that-nobody-else-may-see"  # noqa: S105 - nothing else is opened by it


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Give what is started the loosest file modes there are."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_the_token_is_nowhere_but_in_its_file(server: Server, tmp_path: Path) -> None:
    server.environ = {**server.environ, "HOLDFAST_TOKEN": TOKEN, "HOLDFAST_LOG_LEVEL": "debug"}
    with server.start() as client:
        waiting = "env; env >&2; mkfifo gate; touch ready; read _ < gate || true"
        job = client.submit({"name": "curious", "command": ["sh", "-c", waiting], "workingDir": str(tmp_path)}).id
        until(client, job, lambda view: view.state == "Running" and (tmp_path / "ready").exists())
        assert server.process is not None
        started = [*server.holders(), *server.programs()]
        everyone = [psutil.Process(server.process.pid), *started]
        assert [process for process in everyone if TOKEN in " ".join(process.cmdline())] == []
        assert [process for process in started if TOKEN in process.environ().values()] == []
        assert len(started) >= 2
        (tmp_path / "gate").write_text("")
        until(client, job, lambda view: view.state == "Succeeded")
        with Client(str(server.address()["url"]), f"{TOKEN}x") as stranger, pytest.raises(Unauthenticated):
            stranger.nodes()
    server.end(signal.SIGTERM)
    holding = [path for path in server.data.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert holding == []
    assert TOKEN not in server.log.read_text()


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_can_read_what_a_server_keeps(server: Server) -> None:
    with server.start() as client:
        job = client.submit({"name": "writer", "command": ["sh", "-c", "echo out; echo kept > kept"]}).id
        until(client, job, lambda view: view.state == "Succeeded")
        kept = [server.data, server.data / "server.json", server.data / "runs", *server.data.glob("holdfast.db*")]
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in kept}
    assert len(kept) > 3
    assert {name: oct(mode) for name, mode in modes.items() if mode & 0o077} == {}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])  # noqa: S104 - to be refused
def test_only_a_loopback_address_is_listened_on(host: str, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="loopback"):
        serve(host, 0, tmp_path / "data")
    assert not (tmp_path / "data").exists()
