"""``holdfast.fluster``, as its users write it: the document's examples, its notebook, and a server that is killed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from holdfast.fluster import (
    ClusterError,
    Entrypoint,
    FlusterClient,
    RetryConfig,
    RpcClusterClient,
    cluster_pb2,
    create_environment,
    fluster_ctx,
    get_fluster_ctx,
)
from holdfast.fluster.launching import packed
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="256m")
NOTEBOOK = Path(__file__).parents[2] / "examples" / "fluster" / "retries.ipynb"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    server.open()
    yield server
    server.clean_up()


@pytest.fixture
def client(server: FlusterServer) -> Iterator[RpcClusterClient]:
    with RpcClusterClient(str(server.address()["url"])) as client:
        yield client


def script(source: str, **named: object) -> Entrypoint:
    """Make a call that is pickled by value, as one of a notebook's is."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)  # noqa: S102 - of a test
    return Entrypoint.from_callable(space["job"], **named)


EXITS = "def job(codes):\n    import os, sys\n    sys.exit(codes[int(os.environ['FLUSTER_ATTEMPT_ID'])])"


def test_the_four_configurations_of_the_document(client: RpcClusterClient) -> None:
    def quick(**said: Any) -> RetryConfig:  # noqa: ANN401 - fields of a configuration
        return RetryConfig(initial_delay=0.01, max_delay=0.02, **said)

    cases = [
        (quick(max_retries_failure=3), [1, 2, 3, 0], "SUCCEEDED", 3),
        (quick(max_retries_failure=5, backoff_multiplier=2.0), [1, 1, 1, 1, 1, 1], "FAILED", 6),
        (quick(max_retries_failure=3, retry_on_exit_codes=[137, 139]), [137, 139, 2], "FAILED", 3),
        (quick(max_retries_failure=3, no_retry_on_exit_codes=[1]), [2, 1], "FAILED", 2),
        (None, [1], "FAILED", 1),
    ]
    names = [
        client.submit(script(EXITS, codes=codes), f"configured-{at}", SMALL, retry=retry)
        for at, (retry, codes, _, _) in enumerate(cases)
    ]
    for name, (_, codes, state, failures) in zip(names, cases, strict=True):
        status = client.wait(name, timeout=60.0)
        assert cluster_pb2.JobState.Name(status.state) == f"JOB_STATE_{state}", status
        assert (status.failure_count, len(status.attempts)) == (failures, len(codes) - 1)


CHECKPOINTS = """
def job(place):
    import os, pathlib
    attempt = int(os.environ.get("FLUSTER_ATTEMPT_ID", "0"))
    folder = pathlib.Path(place, f"job-{os.environ['FLUSTER_JOB_ID']}")
    folder.mkdir(exist_ok=True)
    state = 0
    if attempt > 0:
        previous_checkpoint = folder / f"checkpoint_{attempt - 1}"
        if previous_checkpoint.exists():
            state = int(previous_checkpoint.read_text())
    (folder / f"checkpoint_{attempt}").write_text(str(state + 1))
    if attempt < 2:
        raise RuntimeError("interrupted")
    return state + 1
"""


def test_the_example_of_idempotency_goes_on_from_its_checkpoint(client: RpcClusterClient, tmp_path: Path) -> None:
    retry = RetryConfig(max_retries_failure=5, initial_delay=0.01)
    name = client.submit(script(CHECKPOINTS, place=str(tmp_path)), "idempotent", SMALL, retry=retry)
    assert client.wait(name, timeout=60.0).state == cluster_pb2.JOB_STATE_SUCCEEDED
    assert client.result(name) == 3


@pytest.mark.slow
def test_the_notebook_runs_from_its_first_cell_to_its_last() -> None:
    cells = json.loads(NOTEBOOK.read_text())["cells"]
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for cell in cells:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), str(NOTEBOOK), "exec"), space)  # noqa: S102 - ours
    assert printed.getvalue().splitlines() == [
        "Succeeded after 3 attempts: success",
        "0 1 RuntimeError: Random failure",
        "1 1 RuntimeError: Random failure",
    ]


@pytest.mark.slow
def test_two_clusters_of_their_own_may_be_beside_each_other_and_end_with_their_clients() -> None:
    with FlusterClient.local() as one, FlusterClient.local() as other:
        names = [client.submit(script("def job(): return 1"), "same", SMALL) for client in (one, other)]
        assert [client.wait(name).state for client, name in zip((one, other), names, strict=True)] == [
            cluster_pb2.JOB_STATE_SUCCEEDED
        ] * 2
        sleeps = other.submit(script("def job():\n    import time; time.sleep(1000)"), "sleeps", SMALL)
        wait_until(lambda: other.status(sleeps).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
    for client in (one, other):
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", int(client.address.rpartition(":")[2])), timeout=1).close()


def test_a_workspace_whose_git_does_not_answer_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.secret").write_text("x")
    assert zipfile.ZipFile(io.BytesIO(packed(tmp_path))).namelist() == ["a.secret"], "it is none of git's"
    (tmp_path / ".git").write_text("gitdir: /nowhere\n")
    with pytest.raises(RuntimeError, match=r"git does not say which files of .*: fatal"):
        packed(tmp_path)
    (tmp_path / "below").mkdir()
    with pytest.raises(RuntimeError, match="git does not say"):
        packed(tmp_path / "below")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match="git is not installed"):
        packed(tmp_path)
    with pytest.raises(NotADirectoryError):
        packed(tmp_path / "missing")


def test_a_workspace_is_found_by_the_call_and_left_out_where_git_ignores_it(
    server: FlusterServer, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "tool.py").write_text("VALUE = 5\n")
    (tmp_path / ".gitignore").write_text("*.secret\n")
    (tmp_path / "a.secret").write_text("x")
    source = "def job():\n    import os, tool\n    return tool.VALUE, sorted(set(os.listdir()) - {'__pycache__'})"
    with FlusterClient.remote(str(server.address()["url"]), workspace=tmp_path) as client:
        name = client.submit(script(source), "workspace", SMALL, environment=create_environment(env_vars={"A": "b"}))
        assert client.wait(name, timeout=60.0).state == cluster_pb2.JOB_STATE_SUCCEEDED
        assert client.result(name) == (5, [".gitignore", "entrypoint.pkl", "tool.py"])


def test_a_call_knows_its_job_and_children_have_their_parent_s_name(
    client: RpcClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLUSTER_JOB_ID", "top/mid")
    monkeypatch.setenv("FLUSTER_ATTEMPT_ID", "2")
    monkeypatch.setenv("FLUSTER_PORT_MY_HTTP", "8080")
    context = fluster_ctx()
    assert (context.parent_job_id, context.namespace, context.attempt_id) == ("top", "top", 2)
    assert context.get_port("my-http") == 8080
    with pytest.raises(KeyError, match="requested no port 'grpc'; its ports are: my_http"):
        context.get_port("grpc")
    with pytest.raises(RuntimeError, match="FLUSTER_CONTROLLER_ADDRESS"):
        _ = context.client
    monkeypatch.delenv("FLUSTER_JOB_ID")
    assert (get_fluster_ctx(), fluster_ctx().job_id) == (None, "")
    with pytest.raises(ValueError, match="has a slash"):
        client.submit(script("def job(): pass"), "a/b", SMALL)


def test_prefixes_are_whole_names_and_end_what_is_below_them(client: RpcClusterClient) -> None:
    sleeps = script("def job():\n    import time; time.sleep(1000)")
    for parent, name in (("", "tree"), ("tree", "leaf"), ("", "treetop")):
        client.submit(sleeps, name, SMALL, parent=parent)
    assert {job.job_id for job in client.list_jobs(prefix="tree")} == {"tree", "tree/leaf"}
    assert [job.job_id for job in client.list_jobs(prefix="tree/")] == ["tree/leaf"]
    assert set(client.terminate_prefix("tree")) == {"tree", "tree/leaf"}
    assert client.wait("tree/leaf").state == client.wait("tree").state == cluster_pb2.JOB_STATE_KILLED
    with pytest.raises(TimeoutError, match="has not ended within"):
        client.wait("treetop", timeout=0.2)
    killed = client.list_jobs(states=[cluster_pb2.JOB_STATE_KILLED], prefix="tree")
    assert {job.job_id for job in killed} == {"tree", "tree/leaf"}
    client.terminate("treetop")


def test_what_is_refused_is_raised_at_once_with_its_code(client: RpcClusterClient) -> None:
    with pytest.raises(ClusterError) as raised:
        client.status("no/such")
    assert raised.value.code == "not_found"
    with RpcClusterClient("ftp://localhost") as odd, pytest.raises(httpx.UnsupportedProtocol):
        odd.list_jobs()
    with RpcClusterClient(client.address.removeprefix("http://")) as short:
        assert short.address == client.address
        short.list_jobs()
    with pytest.raises(TypeError, match="cannot be sent to another process"):
        client.submit(Entrypoint.from_callable(threading.Lock().acquire), "lock", SMALL)


@pytest.mark.slow
def test_a_client_rides_out_a_server_that_is_killed_again_and_again_while_it_submits_and_waits(tmp_path: Path) -> None:
    server = FlusterServer(tmp_path)
    server.open()
    port = str(server.address()["url"]).rpartition(":")[2]
    server.words = (*server.words[:-1], port)
    ended: list[cluster_pb2.JobStatus] = []
    late: list[str] = []
    try:
        with RpcClusterClient(f"http://127.0.0.1:{port}", patience_s=120.0) as client:
            source = (
                "def job(go):\n    import os, time\n    while not os.path.exists(go): time.sleep(0.02)\n    return 7"
            )
            name = client.submit(script(source, go=str(tmp_path / "go")), "rides", SMALL)
            waits = threading.Thread(target=lambda: ended.append(client.wait(name, timeout=300.0)), daemon=True)
            waits.start()
            wait_until(lambda: client.status(name).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
            for at in range(3):
                server.end()
                submits = threading.Thread(
                    target=lambda at=at: late.append(client.submit(script("def job(): pass"), f"late-{at}", SMALL)),
                    daemon=True,
                )
                submits.start()
                server.start().close()
                submits.join(60)
            (tmp_path / "go").touch()
            waits.join(60)
            assert [status.state for status in ended] == [cluster_pb2.JOB_STATE_SUCCEEDED]
            assert late == ["late-0", "late-1", "late-2"]
            assert client.result(name) == 7
            assert client.status(name).attempts == [], "the program has run through"
    finally:
        server.clean_up()


def test_a_server_of_this_machine_is_asked_by_no_proxy(
    client: RpcClusterClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with RpcClusterClient(client.address, patience_s=0) as inside:
        inside.list_jobs()


def test_to_import_it_loads_no_grpc_and_nothing_of_a_server() -> None:
    parts = ("grpc", "fastapi", "sqlalchemy", "holdfast.app", "holdfast.service")
    line = f"import sys, holdfast.fluster.client; print([name for name in {parts} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True, env={**os.environ})
    assert told.stdout == "[]\n"
