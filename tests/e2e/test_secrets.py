"""What a real server keeps to itself: its token, its files, and its address."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest

from holdfast.app.server import serve
from holdfast.app.settings import Settings
from holdfast.client import Client
from holdfast.errors import Refused, Unauthenticated
from tests.e2e.server import HOLDFAST, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.server import Server

pytestmark = pytest.mark.as_people_do  # what a server keeps in its memory and its environment
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
        serve(host, 0, Settings(data=tmp_path / "data"))
    assert not (tmp_path / "data").exists()


SECRET = "s3cret-value-of-a-job"  # noqa: S105 - nothing is opened by it
FLAKY = 'printf %s "$KEY" | md5sum; [ "$HOLDFAST_ATTEMPT" != 1 ]'


DIGEST = hashlib.md5(SECRET.encode(), usedforsecurity=False).hexdigest()


def holding(server: Server) -> set[Path]:
    """Find the folders of the files that hold the secret."""
    every = [path for path in server.data.rglob("*") if path.is_file()]
    return {path.parent for path in every if SECRET.encode() in path.read_bytes()}


def test_programs_get_secrets_and_nothing_else_has_them(server: Server) -> None:
    server.environ = {**server.environ, "HOLDFAST_LOG_LEVEL": "debug"}
    run = [*HOLDFAST, "run", "--secret-env", "KEY", "--retries", "1", "--backoff", "0s", "--name", "flaky", "--"]
    with server.start() as client:
        told = subprocess.check_output([*run, "sh", "-c", FLAKY], env={**server.environ, "KEY": SECRET}, text=True)
        assert told.count(DIGEST) == 2, "the retry has it, too"
        shown = client.job("flaky").model_dump_json()
        assert '{"secret":"job-' in shown
        described = subprocess.check_output(
            [*HOLDFAST, "describe", "job", "flaky"], env=dict(server.environ), text=True
        )
        assert "Secrets:" in described
        assert " KEY\n" in described
        shown += described
        shown += repr([*client.events(), *client.audit(), client.why("flaky")])
        everyone = [psutil.Process(server.process.pid if server.process else 0), *server.holders()]
        shown += repr([process.cmdline() for process in everyone])
        assert SECRET not in shown + server.log.read_text()
    assert holding(server) == {server.data / "secrets"}


@pytest.mark.slow
def test_kill_nine_leaves_no_secret_that_nobody_names_and_loses_none_that_is_named(server: Server) -> None:
    folder = server.data / "secrets"
    with server.start() as client:
        named, orphan = {"KEY": {"secret": client.keep_secret(SECRET)}}, client.keep_secret(SECRET)
        client.submit_array({"name": "a", "array": {"indices": "0-1"}, "shell": FLAKY, "env": named})
        client.submit({"name": "b", "shell": FLAKY, "env": named})
        names = {path.name for path in folder.iterdir()} - {orphan, f"{orphan}.owner"}
        until(client, "b", lambda job: job.ended_at)
        for path in folder.iterdir():
            os.utime(path, (1.0, 1.0))
        server.end(signal.SIGKILL)
    with server.start() as client:
        wait_until(lambda: {path.name for path in folder.iterdir()} == names, "a secret of nobody that is swept")
        client.retry("b")
        until(client, "b", lambda job: job.attempt == 2 and job.ended_at)
        assert client.logs("b", attempt=2).text.startswith(DIGEST)
        task = str(client.array_task("a", 1).id)
        until(client, task, lambda job: job.ended_at)
        assert client.logs(task).text.startswith(DIGEST)
    assert holding(server) == {folder}
