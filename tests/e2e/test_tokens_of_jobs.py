"""Programs that act by the token of their job, as real processes of a server by whose doors nobody comes in unnamed."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holdfast.client import Client
from holdfast.errors import Unauthenticated
from holdfast.fluster import RpcClusterClient, cluster_pb2
from holdfast.service.access.tokens import RunTokens
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import HOLDFAST, wait_until
from tests.e2e.test_fluster_client import SMALL, script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARENT = """
def job(go=None):
    import os, time
    from holdfast.fluster import Entrypoint, cluster_pb2
    from holdfast.fluster.context import fluster_ctx
    while go is not None and not os.path.exists(go):
        time.sleep(0.02)
    def child(number):
        print("square", number * number)
        return number * number
    small = cluster_pb2.ResourceSpec(cpu=0, memory="64m")
    with fluster_ctx().client as client:
        names = [client.submit(Entrypoint.from_callable(child, n), f"c{n}", small) for n in (2, 3, 4)]
        states = [client.wait(name, timeout=60.0).state for name in names]
        printed = [line.data for name in names for line in client.fetch_logs(name)]
        seen = sorted(job.job_id for job in client.list_jobs())
        return names, states, [client.result(name) for name in names], printed, seen
"""
SUCCEEDED = cluster_pb2.JOB_STATE_SUCCEEDED


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"), HOLDFAST_DOOR_ANONYMOUS="")
    server.start().close()
    yield server
    server.clean_up()


def connected(server: FlusterServer) -> RpcClusterClient:
    address = server.address()
    return RpcClusterClient(str(address["url"]), token=str(address["token"]))


def token_of(server: FlusterServer, uid: str) -> str:
    return RunTokens((server.data / "job-tokens").read_text().strip().encode()).token(uid)


def test_a_call_launches_children_and_waits_for_them_where_nobody_comes_in_unnamed(server: FlusterServer) -> None:
    with connected(server) as client:
        client.submit(script("def job(): pass"), "beside", SMALL)
        name = client.submit(script(PARENT), "parent", SMALL)
        assert client.wait(name, timeout=60.0).state == SUCCEEDED, client.status(name).error
        seen = ["parent", "parent/c2", "parent/c3", "parent/c4"]
        lines = ["square 4", "square 9", "square 16"]
        assert client.result(name) == (seen[1:], [SUCCEEDED] * 3, [4, 9, 16], lines, seen)


def test_a_job_that_asks_for_it_finds_the_server_by_the_command_and_by_the_client(server: FlusterServer) -> None:
    python = (
        "import os; from holdfast.client import Client\n"
        "with Client(os.environ['HOLDFAST_URL'], os.environ['HOLDFAST_TOKEN']) as client:\n"
        "    print(sorted((one.name, one.group) for one in client.jobs()))\n"
    )
    runs = '"$0" -c "$1" run --name inner -- echo inside'
    with server.client() as client:
        client.submit(
            {"name": "outer", "identity": True, "command": ["/bin/sh", "-ec", runs, sys.executable, HOLDFAST[2]]}
        )
        ended(client, "outer")
        assert "inside" in client.logs("outer").text
        assert client.job("inner").group == "outer"
        client.submit({"name": "reads", "group": "x", "identity": True, "command": [sys.executable, "-c", python]})
        ended(client, "reads")
        assert client.logs("reads").text == "[('reads', 'x')]\n"
        client.submit({"name": "none", "shell": "env | grep -E '^HOLDFAST_(URL|TOKEN)=' || true"})
        ended(client, "none")
        assert client.logs("none").text == ""


def ended(client: Client, name: str) -> None:
    wait_until(lambda: client.job(name).state in {"Succeeded", "Failed"}, f"the end of {name}")
    assert client.job(name).state == "Succeeded", client.logs(name).text


SLEEPS = "while [ ! -e {go} ]; do sleep 0.02; done"


def test_a_token_is_in_its_program_s_environment_and_nowhere_else(server: FlusterServer, tmp_path: Path) -> None:
    with server.client() as client:
        job_id = client.submit({"name": "hides", "identity": True, "shell": SLEEPS.format(go=tmp_path / "go")}).id
        token = token_of(server, f"{job_id}-1-0-1")
        secret = token.rpartition("_")[2]
        wait_until(lambda: ("HOLDFAST_TOKEN", token) in [*variables(job_id)], "a program with its token")
        with Client(str(server.address()["url"]), token) as own:
            assert [one.id for one in own.jobs()] == [job_id]
        lines = [" ".join(one.info["cmdline"] or ()) for one in psutil.process_iter(["cmdline"])]
        assert [line for line in lines if secret in line] == []
        told = [server.run(*words) for words in (("describe", "job", job_id), ("why", job_id))]
        told += [server.run(*words, "-o", "json") for words in (("get", "jobs"), ("get", "audit"))]
        assert [one.stderr for one in told if one.returncode or secret in one.stdout + one.stderr] == []
        assert [one for one in client.events() if secret in repr(one)] == []
        (tmp_path / "go").touch()
        ended(client, job_id)
        with Client(str(server.address()["url"]), token) as own, pytest.raises(Unauthenticated, match="has ended"):
            [*own.jobs()]
    kept = [path for path in (*server.data.rglob("*"), server.log) if path.is_file()]
    assert [path for path in kept if secret.encode() in path.read_bytes()] == []
    assert stat.S_IMODE((server.data / "job-tokens").stat().st_mode) == 0o600


def variables(job_id: str) -> Iterator[tuple[str, str]]:
    """Read those of all processes of a job."""
    for process in psutil.process_iter():
        try:
            found = process.environ()
        except psutil.Error:
            continue
        if found.get("HOLDFAST_JOB_ID") == job_id:
            yield from found.items()


@pytest.mark.slow
def test_a_program_goes_on_with_its_token_when_its_server_was_killed(tmp_path: Path) -> None:
    server = FlusterServer(tmp_path, HOLDFAST_DOOR_ANONYMOUS="")
    server.start().close()
    try:
        with connected(server) as client:
            name = client.submit(script(PARENT, go=str(tmp_path / "go")), "parent", SMALL)
            wait_until(lambda: client.status(name).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
            port = str(server.address()["url"]).rpartition(":")[2]
            server.end()
            server.words = (*server.words[:-1], port)
            (tmp_path / "go").touch()
            server.start().close()
            assert client.wait(name, timeout=60.0).state == SUCCEEDED, client.status(name).error
            result: Any = client.result(name)
            assert result[2] == [4, 9, 16]
    finally:
        server.clean_up()
