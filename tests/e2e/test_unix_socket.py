"""A server's Unix socket: who calls is known by the operating system, whatever they ask with, and needs no token."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import holdfast
from holdfast.app import whereabouts
from holdfast.app.entrance import accounts
from holdfast.app.settings import Settings
from holdfast.client import Client
from tests.e2e.server import HOLDFAST, PATIENCE_S, Server, wait_until
from tests.e2e.terminal import Terminal
from tests.e2e.test_cli_shell import Shell
from tests.e2e.test_mcp import Agent, agent
from tests.e2e.test_strangers import AS_CALLER, CALLER, SOURCE, STRANGER, Caller, caller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["caller"]
DEEP = "a-folder-whose-name-alone-is-longer-than-half-of-what-an-address-may-be" * 2
OWN = accounts.account().name


def listening(folder: Path, name: str = "holdfast.sock") -> Server:
    """Start a server that listens on a socket, too."""
    server = Server(folder)
    server.words = (*server.words, "--socket", str(folder / name))
    server.start().close()
    return server


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell that knows of a server nothing but its socket."""
    folder = tmp_path_factory.mktemp("socket")
    server = listening(folder)
    (folder / "elsewhere").mkdir()
    try:
        yield Shell(folder / "elsewhere", {"HOLDFAST_SOCKET": str(folder / "holdfast.sock")})
    finally:
        server.clean_up()


def test_commands_need_no_token_and_what_they_do_is_their_accounts(served: Shell) -> None:
    assert served.run("run", "--name", "hello", "--", "echo", "hello").out == "hello\n"
    assert not (served.folder / "data").exists(), "nothing was opened but the socket"
    held = served.run("run", "--detach", "--name", "long", "--", "sleep", "1000")
    assert served.run("cancel", "long", "--reason", "enough").code == 0, held
    entries = served.run("get", "audit", "-o", "json").json["items"]
    assert [entry["action"] for entry in entries] == ["create", "create", "cancel"]
    assert {(entry["actor"], entry["origin"]) for entry in entries} == {(OWN, "socket")}
    assert served.run("logs", "-f", "hello").out == "hello\n"
    with served.start("events", "-f") as follow:
        assert follow.stdout is not None
        assert follow.stdout.readline().split() == ["ID", "TIME", "SUBJECT", "EVENT", "WHAT"]
        assert "hello" in follow.stdout.readline()
    with Terminal({**os.environ, **served.environ, "HOLDFAST_DATA": str(served.folder / "data")}, "top") as screen:
        screen.until_screen(lambda lines: "Succeeded" in "".join(lines), "a frame")


def test_an_agent_asks_by_the_socket(served: Shell) -> None:
    async def story(agent: Agent) -> None:
        [job] = await agent.submit({"shell": "echo by socket"})
        await agent.until(job, {"Succeeded"})
        assert (await agent.use("job_logs", job=job))["text"] == "by socket\n"

    async def whole() -> None:
        async with agent(served.folder / "data", **served.environ) as one:
            await story(one)

    asyncio.run(whole())


def test_python_asks_by_the_socket_and_waits_without_a_thread(served: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SOCKET", served.environ["HOLDFAST_SOCKET"])
    monkeypatch.setenv("HOLDFAST_DATA", str(served.folder / "data"))
    with holdfast.Client.from_env() as found:
        assert found.submit(pow, (2, 5)).result(PATIENCE_S) == 32
    with holdfast.Client(f"unix://{served.environ['HOLDFAST_SOCKET']}") as named:
        assert named.submit("echo named").wait(PATIENCE_S) == "Succeeded"

    async def awaited() -> int:
        async with await holdfast.AsyncClient.from_env() as client:
            job = await client.submit(abs, (-3,))
            found: int = await job.result(PATIENCE_S)
            return found

    assert asyncio.run(awaited()) == 3


def test_a_socket_is_private_whatever_the_umask_and_its_place_may_be_far_below(tmp_path: Path) -> None:
    (tmp_path / DEEP).mkdir(mode=0o700)
    before = os.umask(0)
    try:
        server = listening(tmp_path, f"{DEEP}/holdfast.sock")
    finally:
        os.umask(before)
    path = tmp_path / DEEP / "holdfast.sock"
    try:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with Client(f"unix://{path}") as client:
            assert client.version().api == "v1"
        assert server.end(signal.SIGTERM) == 0
        assert not path.exists(), "nobody is sent to a server that has stopped"
    finally:
        server.clean_up()


@pytest.mark.slow
def test_only_a_socket_that_nobody_listens_on_is_replaced(tmp_path: Path) -> None:
    path, living = tmp_path / "holdfast.sock", listening(tmp_path)
    other = Server(tmp_path / "other", HOLDFAST_SOCKET=str(path))
    try:
        refused = other.run("up", "--port", "0")
        assert (refused.returncode, f"another server listens on {path}" in refused.stderr) == (5, True), refused
        assert living.end() == -signal.SIGKILL
        assert path.is_socket(), "a server that is killed leaves it"
        living.start().close()
        with Client(f"unix://{path}") as client:
            assert client.version().api == "v1"
        living.end()
        (tmp_path / "holdfast.sock.lock").unlink()
        path.unlink()
        with closing(socket.socket(socket.AF_UNIX)) as foreign:
            foreign.bind(str(path))
            foreign.listen(1)
            assert other.run("up", "--port", "0").returncode == 5, "no lock, but somebody listens"
        path.unlink()
        path.write_text("precious")
        refused = other.run("up", "--port", "0")
        assert (refused.returncode, f"{path} exists and is not a socket" in refused.stderr) == (4, True), refused
        assert path.read_text() == "precious"
        tmp_path.chmod(0o777)
        refused = other.run("up", "--port", "0")
        assert (refused.returncode, f"{tmp_path} can be written by other users" in refused.stderr) == (4, True), refused
    finally:
        tmp_path.chmod(0o700)
        living.clean_up()
        other.clean_up()


@pytest.mark.slow
def test_who_waits_by_a_socket_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    server = listening(tmp_path)
    shell = Shell(tmp_path / "data", {"HOLDFAST_SOCKET": str(tmp_path / "holdfast.sock")})
    gate = tmp_path / "gate"
    try:
        shell.run("run", "--detach", "--name", "long", "--", "sh", "-c", f"until test -e {gate}; do sleep 0.05; done")
        with shell.start("wait", "long") as waiting:
            wait_until(lambda: "long" in shell.run("get", "jobs", "--state", "Running").out, "a job that runs")
            wait_until(lambda: server.has_answered("/jobs/states"), "a command that waits")
            server.end()
            assert waiting.stderr is not None
            assert "does not answer" in waiting.stderr.readline()
            server.start().close()
            gate.touch()
            assert waiting.wait(PATIENCE_S) == 0
    finally:
        server.clean_up()


def test_the_machines_server_is_asked_where_nothing_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HOLDFAST_DATA", "HOLDFAST_URL", "HOLDFAST_SOCKET"):
        monkeypatch.delenv(name, raising=False)
    place = tmp_path / "holdfast.sock"
    monkeypatch.setattr(whereabouts, "SYSTEM_SOCKET", place)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    assert whereabouts.find(Settings()) is None
    with closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(place))
        found = whereabouts.find(Settings())
        assert found is not None
        assert (found.url, found.token) == (f"unix://{place}", None)
        assert whereabouts.find(Settings(data=tmp_path / "mine")) is None, "who names a directory means it"
        own = Server(tmp_path)
        own.data = tmp_path / "home" / "holdfast"
        own.environ = {**own.environ, "HOLDFAST_DATA": str(own.data)}
        try:
            own.start().close()
            found = whereabouts.find(Settings())
            assert found is not None
            assert found.pid == own.address()["pid"]
        finally:
            own.clean_up()
        for named, url in (
            (Settings(socket=tmp_path / "s"), f"unix://{tmp_path / 's'}"),
            (Settings(url="http://h", socket=tmp_path / "s"), "http://h"),
        ):
            found = whereabouts.find(named)
            assert found is not None
            assert found.url == url
    place.unlink()
    place.touch()
    assert whereabouts.find(Settings()) is None, "it is no socket"


PLAIN = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode())"
ASKING = f"{PLAIN}; print(s.makefile().read())"
REQUEST = "GET /api/v1/jobs HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


@pytest.mark.slow
def test_a_server_takes_requests_of_its_own_account_and_of_root_alone(caller: Caller) -> None:
    path = caller.data / "holdfast.sock"
    server = Server(caller.data.parent)
    server.words = (*AS_CALLER, *HOLDFAST, "up", "--port", "0", "--socket", str(path))
    server.environ = {**SOURCE, "PATH": os.defpath, "HOLDFAST_DATA": str(caller.data)}
    stranger = ("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", *AS_CALLER[3:])
    try:
        server.start().close()
        held = caller.run("run", "--detach", "--name", "long", "--", "sleep", "1000", HOLDFAST_SOCKET=str(path))
        assert held.returncode == 0, held
        assert caller.run("hold", "long", HOLDFAST_SOCKET=str(path)).returncode == 0
        with Client(f"unix://{path}") as root:
            root.cancel("long")
            assert [(entry.actor, entry.action) for entry in root.audit()] == [
                (str(CALLER), "create"),
                (str(CALLER), "hold"),
                ("root", "cancel"),
            ]
        closed = caller.run_as(stranger, [*HOLDFAST, "get", "jobs"], HOLDFAST_SOCKET=str(path))
        assert (closed.returncode, "lets only its own account in" in closed.stderr) == (4, True), closed
        caller.data.chmod(0o711)
        path.chmod(0o666)
        warned = caller.run_as(stranger, [*HOLDFAST, "get", "jobs"], HOLDFAST_SOCKET=str(path))
        assert (warned.returncode, f"is another user's, number {CALLER}" in warned.stderr) == (4, True), warned
        answer = caller.run_as(stranger, [sys.executable, "-c", ASKING, str(path), REQUEST]).stdout
        assert (answer.splitlines()[0], "accepts requests of that account only, not the account" in answer) == (
            "HTTP/1.1 403 Forbidden",
            True,
        )
    finally:
        server.clean_up()
