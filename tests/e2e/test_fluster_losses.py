"""What takes a place from a job of Fluster's costs its retries for preemptions alone; kills of ours cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.fluster_stage import Connected, FlusterServer, cluster, fluster, launch
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["fluster"]
RETRY = cluster.RetryConfig(max_retries_failure=0, initial_retry_delay_ms=10, max_retry_delay_ms=10)


def launched(door: Connected, name: str, begun: Path) -> None:
    """Launch a job whose first attempt goes on for ever, and whose second one succeeds; wait until it runs."""
    script = f'#!/bin/sh\ntest "$HOLDFAST_ATTEMPT" = 1 || exit 0\necho > {begun}\nexec sleep 1000\n'
    door("LaunchJob", launch(name, script, retry=RETRY))
    wait_until(begun.exists, "its program")


def preempted(server: FlusterServer) -> None:
    """Take the place of what runs by hand."""
    with server.client() as client:
        [node] = client.nodes()
    asked = server.run("preempt", node.name, "--reason", "a demo at ten")
    assert asked.returncode == 0, asked.stderr


def all_of_ours_lost(server: FlusterServer) -> None:
    """Kill server, executor and whatever holds programs, at a moment from which nobody knows how a program ended."""
    holders, programs = server.holders(), server.programs()
    server.end()
    for process in (*holders, *programs):
        process.kill()
    wait_until(lambda: not server.programs() and not server.holders(), "an end that nobody sees")
    for record in (server.data / "runs" / "supervisors").glob("*.record"):
        first, _, _ = record.read_bytes().partition(b"\n")
        record.write_bytes(first + b"\n\0")
    server.start().close()


LOSSES: dict[str, Callable[[FlusterServer], None]] = {"preempted": preempted, "all of ours lost": all_of_ours_lost}
"""How a job loses its place; that of another machine is one more."""


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_a_lost_place_is_a_retry_that_costs_no_failure(fluster: FlusterServer, tmp_path: Path, loss: str) -> None:
    launched(fluster.open(), "lost", tmp_path / "begun")
    LOSSES[loss](fluster)
    status = Connected(fluster).ended("lost")
    assert (status.state, status.exit_code) == (cluster.JOB_STATE_SUCCEEDED, 0), status
    assert (status.failure_count, status.preemption_count, status.current_attempt_id) == (0, 1, 1)
    [first] = status.attempts
    assert (first.attempt_id, first.state, first.is_worker_failure) == (0, cluster.JOB_STATE_WORKER_FAILED, True)


@pytest.mark.slow
@pytest.mark.parametrize("victims", ["server", "holdfast-shim", "holdfast-run", "holdfast-fork", "server and shim"])
def test_a_kill_of_one_of_ours_is_no_failure_and_no_preemption(
    fluster: FlusterServer, tmp_path: Path, victims: str
) -> None:
    door, go = fluster.open(), tmp_path / "go"
    script = f"#!/bin/sh\nuntil test -e {go}; do sleep 0.02; done\nexit 0\n"
    door("LaunchJob", launch("kept", script, retry=RETRY))
    wait_until(lambda: door.status("kept").state == cluster.JOB_STATE_RUNNING and fluster.programs(), "its program")
    killed = [] if victims == "server" else fluster.holders("holdfast-shim" if "shim" in victims else victims)
    if "server" in victims:
        fluster.end()
    for process in killed:
        process.kill()
    if "server" in victims:
        fluster.start().close()
    go.touch()
    status = Connected(fluster).ended("kept")
    assert (status.state, status.failure_count, status.preemption_count) == (cluster.JOB_STATE_SUCCEEDED, 0, 0), status
    assert not status.attempts


@pytest.mark.slow
def test_what_is_terminated_while_it_waits_for_its_retry_never_runs_again(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door, ran = fluster.open(), tmp_path / "ran"
    retry = cluster.RetryConfig(max_retries_failure=9, initial_retry_delay_ms=1_000, max_retry_delay_ms=1_000)
    door("LaunchJob", launch("waits", f"#!/bin/sh\necho ran >> {ran}\nexit 1\n", retry=retry))
    wait_until(lambda: door.status("waits").retry_available_at_ms, "a retry that it waits for")
    door("TerminateJob", cluster.Controller.TerminateJobRequest(job_id="waits"))
    fluster.end()
    fluster.start().close()
    door = Connected(fluster)
    due_ms = door.status("waits").attempts[0].finished_at_ms + 1_000
    later = launch("later", "#!/bin/sh\nsleep 1.2\n")
    door("LaunchJob", later)
    assert door.ended("later").finished_at_ms > due_ms
    status = door.status("waits")
    assert (status.state, status.failure_count, status.retry_available_at_ms) == (cluster.JOB_STATE_KILLED, 1, 0)
    assert ran.read_text() == "ran\n"


def test_denied_exit_codes_come_before_allowed_ones_and_what_is_on_neither_list_is_not_retried(
    fluster: FlusterServer, tmp_path: Path
) -> None:
    door = fluster.open()
    retry = cluster.RetryConfig(
        max_retries_failure=3,
        initial_retry_delay_ms=10,
        max_retry_delay_ms=10,
        retry_on_exit_codes=[7, 8],
        no_retry_on_exit_codes=[8],
    )
    for name, codes, counted in (("allowed", "7 7 0", 2), ("denied", "7 8", 2), ("neither", "7 9", 2)):
        tries = tmp_path / name
        script = f"#!/bin/sh\necho x >> {tries}; set -- {codes}; shift $(($(wc -l < {tries}) - 1)); exit $1\n"
        door("LaunchJob", launch(name, script, retry=retry))
        status = door.ended(name)
        ended = cluster.JOB_STATE_SUCCEEDED if name == "allowed" else cluster.JOB_STATE_FAILED
        assert (status.state, status.failure_count) == (ended, counted), status
        assert tries.read_text().count("x") == len(codes.split())


def test_retries_that_are_set_while_the_server_runs_are_those_of_the_next_launch(fluster: FlusterServer) -> None:
    door = fluster.open()

    def limits(name: str) -> tuple[int, int]:
        door("LaunchJob", launch(name, "#!/bin/sh\ntrue\n", cpu=1000))
        status = door.status(name)
        return status.max_retries_failure, status.max_retries_preemption

    before = limits("before")
    said = [f"--fluster=defaultMaxRetries{one}" for one in ("Failure=2", "Preemption=50")]
    assert fluster.run("update", "settings", *said).returncode == 0
    assert (limits("after"), before) == ((2, 50), (0, 100))
    wrong = ("defaultMaxRetriesFailure=-1", "defaultMaxRetriesPreemption=many", "defaultRetryDelay=soon", "retries=1")
    refused = fluster.run("update", "settings", *(f"--fluster={one}" for one in wrong))
    assert refused.returncode != 0
    assert all(one.partition("=")[0] in refused.stderr for one in wrong), refused.stderr
    assert limits("still") == (2, 50)
