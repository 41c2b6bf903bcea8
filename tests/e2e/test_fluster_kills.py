"""Workspaces and results of Fluster's jobs over ``kill -9`` of everything that handles them, at each step."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import time
import zipfile
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holdfast.fluster import ClusterError, Entrypoint, RetryConfig, RpcClusterClient, cluster_pb2
from tests.e2e.fluster_stage import FlusterServer
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
FILES = 6_000
SMALL = cluster_pb2.ResourceSpec(cpu=0, memory="512m")
AGAIN = RetryConfig(max_retries_failure=1, initial_delay=0.01, max_delay=0.01)
LOOKS = """
def job():
    import hashlib, os
    found = sorted(os.path.join(folder, name) for folder, _, names in os.walk("data") for name in names)
    return len(found), hashlib.sha256(b"".join(open(name, "rb").read() for name in found)).hexdigest()
"""
LARGE = "def job():\n    return bytes(range(256)) * (15 << 12)"


def workspace() -> tuple[bytes, tuple[int, str]]:
    """Make an archive that takes a while to be kept and unpacked, and say what a call finds in it."""
    data, bodies = io.BytesIO(), [os.urandom(2_000) for _ in range(FILES)]
    with zipfile.ZipFile(data, "w") as archive:
        for number, body in enumerate(bodies):
            archive.writestr(f"data/{number:05}", body)
    return data.getvalue(), (FILES, hashlib.sha256(b"".join(bodies)).hexdigest())


BUNDLE, FOUND = workspace()


def script(source: str) -> Entrypoint:
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(source, space)  # noqa: S102 - of a test
    return Entrypoint.from_callable(space["job"])


class Stage:
    """A server that comes back at its address, and a client with a workspace that rides that out."""

    def __init__(self, folder: Path) -> None:
        self.server = FlusterServer(folder)
        self.server.open()
        port = str(self.server.address()["url"]).rpartition(":")[2]
        self.server.words = (*self.server.words[:-1], port)
        self.client = RpcClusterClient(f"http://127.0.0.1:{port}", bundle=BUNDLE, patience_s=120.0)

    def again(self) -> None:
        """Kill the server, and start it again."""
        self.server.end()
        self.server.start().close()

    def kept(self) -> list[str]:
        return [path.name for path in (self.server.data / "blobs").rglob("*") if path.is_file()]

    def runs(self, name: str) -> list[Path]:
        """Find what all runs in the directory have of a name."""
        return [*(self.server.data / "runs" / "jobs").glob(f"*/*/{name}")]

    def ended(self, name: str) -> cluster_pb2.JobStatus:
        status = self.client.wait(name, timeout=120.0)
        assert status.state == cluster_pb2.JOB_STATE_SUCCEEDED, status
        return status


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.client.close()
    stage.server.clean_up()


def test_a_server_killed_as_a_workspace_comes_in_and_is_kept_has_one_job_that_finds_all_of_it(stage: Stage) -> None:
    names: list[str] = []
    sends = threading.Thread(target=lambda: names.append(stage.client.submit(script(LOOKS), "sent", SMALL)))
    sends.start()
    wait_until(stage.kept, "a workspace that is being kept")
    stage.again()
    wait_until(lambda: [one for one in stage.kept() if not one.endswith(".new")], "one that is kept")
    stage.again()
    sends.join(120)
    assert names == ["sent"]
    stage.ended("sent")
    assert stage.client.result("sent") == FOUND
    assert [job.job_id for job in stage.client.list_jobs()] == ["sent"]
    assert [one for one in stage.kept() if not one.endswith(".new")] == [hashlib.sha256(BUNDLE).hexdigest()]


@pytest.mark.parametrize("killed", ["server", "holdfast-shim", "holdfast-run", "holdfast-prep"])
def test_a_workspace_is_whole_though_who_unpacks_it_is_killed(stage: Stage, killed: str) -> None:
    stage.client.submit(script(LOOKS), "unpacks", SMALL)
    wait_until(lambda: stage.runs("work/data/0*"), "a workspace that is being unpacked")
    if killed == "server":
        stage.again()
    else:
        for process in stage.server.holders(killed):
            process.kill()
    status = stage.ended("unpacks")
    assert stage.client.result("unpacks") == FOUND
    assert (status.failure_count, status.preemption_count) == (0, 0), "it costs the job nothing"


@pytest.mark.parametrize("killed", ["server", "program"])
def test_a_result_is_whole_or_that_of_the_next_attempt(stage: Stage, killed: str) -> None:
    stage.client.submit(script(LARGE), "leaves", SMALL, retry=AGAIN)
    wait_until(lambda: stage.runs("result*"), "a result that is being written")
    if killed == "server":
        stage.again()
    else:
        for process in stage.server.programs():
            _kill(process)
    stage.ended("leaves")
    assert stage.client.result("leaves") == bytes(range(256)) * (15 << 12)


def test_two_jobs_that_come_with_one_workspace_at_the_same_moment_each_find_it(stage: Stage) -> None:
    together = threading.Barrier(2)

    def send(name: str) -> None:
        together.wait()
        stage.client.submit(script(LOOKS), name, SMALL)

    _at_once([lambda: send("one"), lambda: send("two")])
    for name in ("one", "two"):
        stage.ended(name)
        assert stage.client.result(name) == FOUND
    assert stage.kept() == [hashlib.sha256(BUNDLE).hexdigest()]


def test_results_and_workspaces_go_with_the_jobs_that_had_them(stage: Stage) -> None:
    stage.client.submit(script(LOOKS), "goes", SMALL)
    stage.ended("goes")
    [kept], [folder] = stage.kept(), [path.parent for path in stage.runs("result")]
    stage.server.environ = {**stage.server.environ, "HOLDFAST_RETENTION": "1s"}
    old_at = time.time() + 1.1
    wait_until(lambda: time.time() > old_at, "a job that is old when a server starts: it looks once a minute")
    stage.again()
    wait_until(lambda: not folder.exists(), "a result that goes with its job")
    assert stage.kept() == [kept], "another job may be on its way"
    [path] = (stage.server.data / "blobs").rglob(kept)
    os.utime(path, (1, 1))
    stage.again()
    wait_until(lambda: not stage.kept(), "a workspace that nobody names any more")
    with pytest.raises(ClusterError, match="not_found"):
        stage.client.status("goes")
    assert stage.client.submit(script(LOOKS), "goes", SMALL) == "goes", "its name is free again"


def _at_once(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return  # it had ended by then, with its result
