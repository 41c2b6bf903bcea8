"""A server that keeps to a configuration file of Armada's: edits count, a broken one changes nothing and is told."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from holdfast.errors import InvalidRequest
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

FOR_EVER = {"retryLimit": 1_000_000, "defaultAction": "Retry"}
AS_EVER = "scheduling: {retryPolicy: {enabled: true, globalMaxRetries: 1000, defaultPolicyName: stubborn}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "armada.yaml"
    path.write_text(AS_EVER)
    return path


@pytest.fixture
def server(tmp_path: Path, file: Path) -> Iterator[Server]:
    one = Server(tmp_path, HOLDFAST_ARMADA_CONFIG=str(file), HOLDFAST_CPUS="64")
    yield one
    one.clean_up()


def cap(client: Client) -> int | None:
    return client.settings().global_max_retries


def test_an_edit_counts_within_a_second_and_a_broken_one_changes_nothing_and_is_told(
    server: Server, file: Path
) -> None:
    with server.start() as client:
        assert cap(client) == 1000
        file.write_text(AS_EVER.replace("1000", "7"))
        wait_until(lambda: cap(client) == 7, "the edited file", within_s=5.0)
        file.write_text("scheduling: {retryPolicy: {globalMaxRetries: many}}")
        wait_until(lambda: "globalMaxRetries" in server.log.read_text(), "a word on the broken file", within_s=5.0)
        assert cap(client) == 7
        found = server.run("doctor")
        assert str(file) in found.stdout + found.stderr
        with pytest.raises(InvalidRequest) as caught:
            client.put_settings({"globalMaxRetries": 9})
        assert str(file) in str(caught.value.problems)
        file.unlink()
        assert cap(client) == 7
        file.write_text(AS_EVER)
        wait_until(lambda: cap(client) == 1000, "the mended file", within_s=5.0)
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        assert server.run("doctor").returncode == 0
        assert cap(client) == 1000


@pytest.mark.slow
def test_without_the_file_the_settings_are_those_from_before(server: Server) -> None:
    with server.start() as client:
        assert cap(client) == 1000
    server.end(signal.SIGTERM)
    server.environ = {name: value for name, value in server.environ.items() if name != "HOLDFAST_ARMADA_CONFIG"}
    with server.start() as client:
        assert cap(client) is None


@pytest.mark.slow
def test_a_storm_of_five_hundred_jobs_is_stopped_by_editing_the_file(server: Server, file: Path) -> None:
    with server.start() as client:
        backoff = {"initialDelay": "200ms", "multiplier": 1}
        head = {"apiVersion": "holdfast.dev/v1", "kind": "RetryPolicy", "metadata": {"name": "stubborn"}}
        client.create_policy({**head, "spec": {**FOR_EVER, "backoff": backoff}})
        manifest = {
            "apiVersion": "holdfast.dev/v1",
            "kind": "Job",
            "metadata": {"name": "storm"},
            "spec": {"command": ["false"], "resources": {"cpu": "100m"}},
        }
        client.submit_bulk([manifest] * 500)
        wait_until(lambda: any(job.attempt > 1 for job in client.jobs()), "a retry")
        file.write_text(AS_EVER.replace("1000", "0"))
        wait_until(lambda: cap(client) == 0, "the edited file", within_s=5.0)
        wait_until(lambda: all(job.state == "Failed" for job in client.jobs()), "the end of the storm")
        assert {job.reason for job in client.jobs()} == {"exit code 1; the retry limit is 0 (globalMaxRetries)"}
