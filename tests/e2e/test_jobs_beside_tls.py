"""Programs of jobs find a server that others reach by TLS, or by a proxy: in clear, on this machine, by their token."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.client import Client
from holdfast.errors import HoldfastError, Unauthenticated
from holdfast.fluster import RpcClusterClient, cluster_pb2
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import HOLDFAST, PATIENCE_S, wait_until
from tests.e2e.test_fluster_client import SMALL, script
from tests.e2e.test_network import EVERYWHERE, TOKEN, address_of, issue
from tests.e2e.test_tokens_of_jobs import PARENT, SUCCEEDED, ended, token_of, variables
from tools.clients import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ASKS = (
    "import os; from holdfast.client import Client\n"
    "with Client(os.environ['HOLDFAST_URL'], os.environ['HOLDFAST_TOKEN']) as client:\n"
    "    print(sorted((one.name, one.group) for one in client.jobs()))\n"
)
IRIS = """
import os
from iris.cluster.client.job_info import get_job_info
from iris.cluster.client.remote_client import RemoteClusterClient
from iris.cluster.types import Entrypoint, EnvironmentSpec, TaskAttempt
from iris.rpc import job_pb2
shown = get_job_info().credentials.interceptors()
client = RemoteClusterClient(os.environ["IRIS_CONTROLLER_URL"], timeout_ms=20000, interceptors=shown)
me = TaskAttempt.from_wire(os.environ["IRIS_TASK_ID"]).task_id.parent
kids = [client.submit_job(
    me.child(f"kid{each}"), Entrypoint.from_command("echo", "from below"),
    job_pb2.ResourceSpecProto(cpu_millicores=100, memory_bytes=64 << 20),
    environment=EnvironmentSpec(setup_scripts=[]).to_proto()) for each in range(3)]
ended = [client.wait_for_job(kid, timeout=60, poll_interval=0.2).state for kid in kids]
raise SystemExit(ended != [4, 4, 4])
"""


def everywhere(folder: Path, *, secure: bool) -> FlusterServer:
    """Return a server that listens to others, which is not started yet."""
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    more = {} if secure else {"HOLDFAST_PROXY": "192.0.2.1"}
    server = FlusterServer(folder, HOLDFAST_DOOR_ANONYMOUS="", HOLDFAST_TOKEN_FILE=str(token), **more)
    certificate: tuple[str, ...] = ()
    if secure:
        cert, key = issue(folder)
        certificate = ("--tls-cert", str(cert), "--tls-key", str(key))
    server.words = (*server.words[:-2], "--listen", f"{EVERYWHERE}:0", *certificate)
    return server


@pytest.fixture(scope="module", params=["tls", "proxy"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[FlusterServer]:
    server = everywhere(tmp_path_factory.mktemp("away"), secure=request.param == "tls")
    server.start().close()
    yield server
    server.clean_up()


@pytest.fixture(autouse=True)
def trusting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the certificate trusted by who asks from outside, and by no program of a job."""
    if "server" in request.fixturenames:
        cert = request.getfixturevalue("server").folder / "server.pem"
        if cert.exists():
            monkeypatch.setenv("SSL_CERT_FILE", str(cert))


def outside(server: FlusterServer) -> RpcClusterClient:
    return RpcClusterClient(address_of(server), token=TOKEN)


def jobs_url(server: FlusterServer) -> str:
    return f"http://127.0.0.1:{(server.data / 'jobs-port').read_text().strip()}"


def test_a_parent_launches_three_children_from_inside_and_reads_what_they_returned(server: FlusterServer) -> None:
    with outside(server) as client:
        name = client.submit(script(PARENT), "parent", SMALL)
        assert client.wait(name, timeout=PATIENCE_S).state == SUCCEEDED, client.status(name).error
        lines = ["square 4", "square 9", "square 16"]
        seen = ["parent", *(f"parent/c{n}" for n in (2, 3, 4))]
        assert client.result(name) == (seen[1:], [SUCCEEDED] * 3, [4, 9, 16], lines, seen)
        assert [line.data for line in client.fetch_logs("parent/c3")] == lines[1:2], "its worker is where one asks"


def test_the_command_and_the_client_find_the_server_from_inside(server: FlusterServer) -> None:
    runs = '"$0" -c "$1" run --name inner -- echo inside; "$0" -c "$2"; echo "$HOLDFAST_URL"'
    with server.client() as client:
        words = ["/bin/sh", "-ec", runs, sys.executable, HOLDFAST[2], ASKS]
        job = client.submit({"name": "outer", "group": "x", "identity": True, "command": words})
        ended(client, job.id)
        [*_, told, url] = client.logs(job.id).text.splitlines()
        assert (told, url) == ("[('inner', 'x/outer'), ('outer', 'x')]", jobs_url(server))
        assert client.logs("inner").text == "inside\n"


@pytest.mark.slow
def test_iris_own_client_launches_three_children_from_inside(server: FlusterServer) -> None:
    if not python_of("iris").exists():
        pytest.skip("Iris' client is not installed; to judge the door by it: ./dev clients")
    asked = {
        "name": "/ann/top",
        "entrypoint": {"runCommand": {"argv": [str(python_of("iris")), "-c", IRIS]}},
        "resources": {"cpuMillicores": 100, "memoryBytes": str(1 << 30)},
        "replicas": 1,
    }
    headers = {"Authorization": f"Bearer {TOKEN}", "connect-protocol-version": "1"}
    with httpx.Client(base_url=address_of(server), headers=headers, timeout=PATIENCE_S) as client:
        answer = client.post("/iris.cluster.ControllerService/LaunchJob", json=asked)
        assert answer.status_code == 200, answer.text
    with server.client() as own:
        top = next(job for job in own.jobs() if job.submitted_by and job.group == "/ann/top")
        ended(own, top.id)


def ways(server: FlusterServer) -> list[str]:
    return [address_of(server), jobs_url(server), f"unix://{server.data}/holdfast.sock"]


def test_a_job_s_token_is_for_the_same_by_every_way_in_and_dead_by_each_with_its_attempt(
    server: FlusterServer, tmp_path: Path
) -> None:
    waits = f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done"
    with server.client() as client:
        client.submit({"name": "others", "shell": "true"})
        job = client.submit({"name": "own", "identity": True, "shell": waits})
        token = token_of(server, f"{job.id}-1-0-1")
        wait_until(lambda: ("HOLDFAST_TOKEN", token) in [*variables(job.id)], "a program with its token")
        for way in ways(server):
            with Client(way, token) as own:
                assert [one.id for one in own.jobs()] == [job.id], way
                for asked in (own.nodes, own.tokens, own.audit, own.settings):
                    with pytest.raises(HoldfastError, match="with this token"):
                        [*asked()]
        (tmp_path / "go").touch()
        ended(client, job.id)
    for way in ways(server):
        with Client(way, token) as own, pytest.raises(Unauthenticated, match="has ended"):
            [*own.jobs()]


def test_nobody_else_comes_in_by_the_port_of_jobs(server: FlusterServer) -> None:
    with server.client() as client:
        made = client.create_token("mine").token
    lists = "/fluster.cluster.ControllerService/ListJobs"
    with httpx.Client(base_url=jobs_url(server), timeout=PATIENCE_S) as plain:
        for path in ("/api/v1/jobs", lists, "/metrics", "/docs", "/"):
            for shown in (None, f"Bearer {TOKEN}", f"Bearer {made}", "Bearer hfj_", f"Basic {TOKEN}"):
                headers = {"content-type": "application/json", **({"Authorization": shown} if shown else {})}
                answer = plain.request("POST" if path == lists else "GET", path, headers=headers)
                assert answer.status_code == 401, (path, shown, answer.text)
        assert plain.get("/healthz").status_code == 200


@pytest.mark.slow
def test_a_program_finds_the_next_server_where_it_was_told_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = everywhere(tmp_path, secure=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    server.start().close()
    try:
        with outside(server) as client:
            name = client.submit(script(PARENT, go=str(tmp_path / "go")), "parent", SMALL)
            wait_until(lambda: client.status(name).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
        told = jobs_url(server)
        server.end()
        (tmp_path / "go").touch()
        server.log.unlink()
        server.start().close()
        assert jobs_url(server) == told
        with outside(server) as client:
            status = client.wait(name, timeout=PATIENCE_S)
            assert status.state == SUCCEEDED, status.error
            assert client.result(name)[2] == [4, 9, 16]
    finally:
        server.clean_up()
