"""``holdfast.fluster``: what jobs print, read and followed to the end, and where their programs answer."""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

import pytest

import holdfast.fluster
from holdfast.fluster import (
    ClusterError,
    Entrypoint,
    FlusterClient,
    FlusterContext,
    JobId,
    LogEntry,
    LogPoller,
    RetryConfig,
    RpcClusterClient,
    cluster_pb2,
    fluster_ctx,
    fluster_ctx_scope,
)
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="256m")
COUNTS = """
def job(go, number):
    import os, time
    for at in range(number):
        print("line", os.environ["FLUSTER_ATTEMPT_ID"], at, flush=True)
        while at % 10 == 5 and not os.path.exists(f"{go}-{at}"):
            time.sleep(0.01)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlusterServer]:
    server = FlusterServer(tmp_path_factory.mktemp("door"))
    server.open()
    yield server
    server.clean_up()


@pytest.fixture
def client(server: FlusterServer) -> Iterator[RpcClusterClient]:
    with RpcClusterClient(str(server.address()["url"]), patience_s=60.0) as client:
        yield client


def script(source: str, **named: object) -> Entrypoint:
    """Make a call that is pickled by value, as one of a notebook's is."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)  # noqa: S102 - of a test
    return Entrypoint.from_callable(space["job"], **named)


def texts(entries: list[LogEntry]) -> list[str]:
    return [entry.data for entry in entries]


def test_a_log_is_read_from_the_worker_line_by_line_and_narrowed(client: RpcClusterClient) -> None:
    source = "def job():\n    print(*range(25_000), sep='\\n')"
    name = client.submit(script(source), "prints", SMALL)
    client.wait(name, timeout=60.0)
    entries = client.fetch_logs(name)
    assert texts(entries) == [*map(str, range(25_000))], "more than comes in one answer"
    assert {entry.source for entry in entries} == {"stdout"}
    assert texts(client.fetch_logs(name, start_line=24_998)) == ["24998", "24999"]
    assert texts(client.fetch_logs(name, start_line=-2)) == ["24998", "24999"]
    assert texts(client.fetch_logs(name, regex="^1.99$")) == [f"1{at}99" for at in range(10)]
    assert client.fetch_logs(name, start_ms=entries[-1].timestamp_ms) == []
    assert client.fetch_logs(name, end_ms=1) == []
    assert texts(client.fetch_logs(name, max_lines=1))[0] == "0"
    with pytest.raises(ClusterError, match=r"invalid_argument.*filter\.regex"):
        client.fetch_logs(name, regex="(")
    with pytest.raises(ClusterError, match="not_found"):
        client.fetch_logs("nobody")


def test_a_job_that_no_worker_has_has_nothing_to_read(client: RpcClusterClient) -> None:
    waits = client.submit(script("def job(): pass"), "waits", cluster_pb2.ResourceSpec(cpu=1000, memory="1g"))
    with pytest.raises(ValueError, match="no worker has job 'waits'"):
        client.fetch_logs(waits)
    client.terminate(waits)


def test_a_job_is_followed_over_its_attempts_to_its_end(
    client: RpcClusterClient, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """
def job():
    import os, sys
    print("attempt", os.environ["FLUSTER_ATTEMPT_ID"], *range(3), sep="\\n")
    sys.exit(os.environ["FLUSTER_ATTEMPT_ID"] == "0")
"""
    name = client.submit(script(source), "follows", SMALL, retry=RetryConfig(max_retries_failure=1, initial_delay=2.0))
    found = [*client.follow_logs(name, timeout=60.0, poll_interval=0.1)]
    assert texts(found) == ["attempt", "0", "0", "1", "2", "attempt", "1", "0", "1", "2"]
    assert client.wait(name, stream_logs=True).state == cluster_pb2.JOB_STATE_SUCCEEDED
    assert capsys.readouterr().out.splitlines() == ["attempt", "1", "0", "1", "2"]
    polled: list[LogEntry] = []
    poller = LogPoller(client, name, polled.append, poll_interval=0.1)
    poller.start()
    wait_until(lambda: len(polled) == 5, "all lines")
    poller.stop()
    assert texts(polled) == ["attempt", "1", "0", "1", "2"]


@pytest.mark.slow
def test_a_log_is_followed_over_kills_of_the_server_and_each_line_comes_once(tmp_path: Path) -> None:
    server = FlusterServer(tmp_path)
    server.open()
    port, go, found = str(server.address()["url"]).rpartition(":")[2], tmp_path / "go", list[str]()
    server.words = (*server.words[:-1], port)
    try:
        with RpcClusterClient(f"http://127.0.0.1:{port}", patience_s=60.0) as client:
            name = client.submit(script(COUNTS, go=str(go), number=20), "counts", SMALL)

            def follow() -> None:
                for entry in client.follow_logs(name, timeout=300.0):
                    found.append(entry.data)

            follows = threading.Thread(target=follow, daemon=True)
            follows.start()
            for at in (5, 15):
                wait_until(lambda at=at: f"line 0 {at}" in found, f"line {at}")  # type: ignore[misc]
                server.end()
                (tmp_path / f"go-{at}").touch()
                server.start().close()
            follows.join(120)
            assert found == [f"line 0 {at}" for at in range(20)]
    finally:
        server.clean_up()


def test_programs_say_where_they_answer_and_are_found_by_their_family(server: FlusterServer) -> None:
    url = str(server.address()["url"])
    sleeps = script("def job():\n    import time; time.sleep(1000)")
    with FlusterClient.remote(url) as client:
        top = client.submit(sleeps, "top", SMALL)
        wait_until(lambda: client.status(top).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
        with fluster_ctx_scope(FlusterContext(JobId("top"))):
            key = client.endpoint_registry.register("model", "127.0.0.1:8080", {"kind": "small"})
            found = client.resolver().resolve("model").first()
            assert (found.url, found.actor_id, found.metadata) == ("http://127.0.0.1:8080", key, {"kind": "small"})
        with fluster_ctx_scope(FlusterContext(JobId("top/kid"))):
            assert not client.resolver().resolve("model").is_empty
            assert client.resolver().resolve("mode").is_empty, "a part of a name is none"
        with fluster_ctx_scope(FlusterContext(JobId("topper"))):
            assert client.resolver().resolve("model").is_empty
            with pytest.raises(ValueError, match="nobody has registered 'model'"):
                client.resolver().resolve("model").first()
        with pytest.raises(RuntimeError, match="does not run in a job"):
            client.resolver().resolve("model")
        assert [one.name for one in client.list_endpoints("top/")] == ["top/model"]
        client.endpoint_registry.unregister(key)
        assert client.list_endpoints("top/") == []
        client.terminate(top)


def test_in_a_job_the_context_is_that_of_the_job_and_its_cluster(
    server: FlusterServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(server.address()["url"])
    monkeypatch.setenv("FLUSTER_JOB_ID", "above")
    monkeypatch.setenv("FLUSTER_CONTROLLER_ADDRESS", url)
    context = fluster_ctx()
    assert context.client is context.client
    with RpcClusterClient(url) as outside:
        above = outside.submit(script("def job():\n    import time; time.sleep(1000)"), "above", SMALL)
        wait_until(lambda: outside.status(above).state == cluster_pb2.JOB_STATE_RUNNING, "a run")
    assert context.client.submit(script("def job(): pass"), "one", SMALL) == "above/one"
    with FlusterClient.remote(url) as again:
        assert again.submit(script("def job(): pass"), "two", SMALL) == "above/two"
    with FlusterClient.remote(url, parent="") as apart:
        assert apart.submit(script("def job(): pass"), "three", SMALL) == "three"
    key = context.registry.register("door", "127.0.0.1:1")
    assert context.resolver.resolve("door").first().actor_id == key
    assert set(context.client.terminate_prefix("above", exclude_finished=False)) == {"above", "above/one", "above/two"}
    context.client.close()


def test_what_is_not_here_says_so_when_it_is_imported() -> None:
    with pytest.raises(ImportError, match=r"Holdfast has no actors: .*registry\.register"):
        importlib.import_module("holdfast.fluster.actor")
    for name, says in (("ActorServer", "has no actors"), ("WorkerPool", "has no worker pools; submit a job for each")):
        with pytest.raises(ImportError, match=says):
            getattr(holdfast.fluster, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = holdfast.fluster.Nothing
