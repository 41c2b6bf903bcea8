"""A server that keeps to a configuration file of Armada's: edits count, a broken one changes nothing and is told."""

from __future__ import annotations

import os
import signal
import threading
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


@pytest.mark.slow
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


def test_a_reload_tells_what_was_taken_up_or_why_nothing_was(server: Server, file: Path) -> None:
    with server.start() as client:
        again = server.run("armada", "config", "reload")
        unknown = "defaultPolicyName: retry policy 'stubborn' does not exist; hint: create the retry policy first"
        assert (again.returncode, again.stderr) == (0, f"warning: {file}: {unknown}\n")
        assert f"warn  catalogue       settings: {unknown}" in server.run("doctor").stdout
        assert again.stdout.splitlines() == [
            f"{file} is in force; it has not changed",
            "Retry policies apply; at most 1000 retries of a job",
            "Default retry policy: stubborn",
            "Error categories: none",
        ]
        broken = AS_EVER.replace("1000", "many").replace("enabled: true", "enabled: perhaps")
        file.write_text(broken)
        refused = server.run("armada", "config", "reload")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"error: {file} is not a valid configuration; the settings in force stay as they are\n" in refused.stderr
        assert "scheduling.retryPolicy.globalMaxRetries" in refused.stderr
        assert "scheduling.retryPolicy.enabled" in refused.stderr
        assert cap(client) == 1000
        category = "application: {errorCategories: {categories: [{name: cuda, rules: [{onExitCodes: "
        file.write_text(f"{AS_EVER.replace('1000', '5')}{category}{{operator: In, values: [3]}}}}]}}]}}}}")
        assert server.run("armada", "config", "reload").stdout.splitlines()[-1] == "Error categories: cuda"
        assert cap(client) == 5, "it is in force once the command has ended"


def test_a_server_without_a_file_refuses_to_reload_and_says_how_to_have_one(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        server.start().close()
        refused = server.run("armada", "config", "reload")
        assert refused.returncode == 4
        hint = "  hint: start it with HOLDFAST_ARMADA_CONFIG=FILE"
        assert refused.stderr == f"error: this server has no configuration file\n{hint}\n"
    finally:
        server.clean_up()


def test_sighup_has_a_file_read_whose_change_nobody_can_see_from_outside(server: Server, file: Path) -> None:
    with server.start() as client:
        before = file.stat()
        with file.open("r+") as opened:
            opened.write(AS_EVER.replace("1000", "2000"))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert (file.stat().st_mtime_ns, file.stat().st_size, file.stat().st_ino) == (
            before.st_mtime_ns,
            before.st_size,
            before.st_ino,
        )
        assert cap(client) == 1000
        assert server.process is not None
        server.process.send_signal(signal.SIGHUP)
        wait_until(lambda: cap(client) == 2000, "the file, read again", within_s=5.0)


@pytest.mark.slow  # many starts
def test_a_server_that_is_killed_while_it_takes_up_a_file_has_the_old_or_the_new_and_then_the_new(
    server: Server, file: Path
) -> None:
    server.start().close()
    for number in range(5):
        file.write_text(AS_EVER.replace("1000", str(number)))
        threading.Event().wait(0.08 * number)
        server.end()
        with server.start() as client:
            assert cap(client) == number
            assert server.run("doctor").returncode == 0


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
        client.policies.create({**head, "spec": {**FOR_EVER, "backoff": backoff}})
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
