"""What outlives what: servers, and the processes that hold programs, killed or stopped, and what each leaves behind."""

from __future__ import annotations

import json
import os
import signal
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.app.connect import connect
from holdfast.app.settings import Settings
from holdfast.engines.process.shim import processes
from tests.e2e.server import PATIENCE_S, Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast.client import Client

GATE = 'echo "up $$"; while ! test -s "$1"; do sleep 0.02; done; exit $(cat "$1")'
FAIL_ONCE = 'date +%s.%N; test "$HOLDFAST_ATTEMPT" -gt 1'
SEEN_S = 0.5
"""Within this time a supervisor has seen the end of its program; a server takes longer to start."""
TOLD = 'trap "echo told; TOLD=1" TERM; echo up; while ! test -e "$1"; do sleep 0.02; done; exit 5'


def submit(client: Client, script: str, *arguments: str, **spec: object) -> str:
    manifest = {"name": "survivor", "command": ["sh", "-c", script, "sh", *arguments], "resources": {"cpu": 0.25}}
    return client.submit({**manifest, **spec}).id


def backing_off(delay: str) -> Mapping[str, Any]:
    return {"retryLimit": 1, "defaultAction": "Retry", "backoff": {"initialDelay": delay}}


def until_logged(client: Client, job: str, text: str) -> str:
    """Wait for a word of the first attempt, and return all it said."""
    wait_until(lambda: text in client.logs(job, attempt=1).text, f"{text!r} in the log")
    return client.logs(job, attempt=1).text


def seconds(moment: object) -> float:
    return datetime.fromisoformat(str(moment)).timestamp()


# what a killed server leaves to its successor


def test_a_cancel_nobody_has_acted_on_is_carried_out_by_the_next_server(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "never"))
        until_logged(client, job, "up")
    server.end()
    with connect(settings=Settings(data=server.data)) as client:
        assert client.cancel(job, reason="not needed").state == "Running"
        assert server.programs()
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Cancelled")
    assert (view.reason, len(view.attempts)) == ("not needed", 1)
    assert not server.programs()


def test_a_cancel_acknowledged_just_before_the_kill_is_not_forgotten(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        jobs = [submit(client, GATE, str(tmp_path / "never"), name=f"gate-{number}") for number in range(4)]
        for job in jobs:
            until_logged(client, job, "up")
            client.cancel(job)
    server.end()
    with server.start() as client:
        for job in jobs:
            assert len(until(client, job, lambda view: view.state == "Cancelled").attempts) == 1
    assert not server.programs()


def test_a_program_keeps_its_grace_over_a_kill_of_the_server(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, TOLD, str(tmp_path / "go"), grace="50s")
        until_logged(client, job, "up")
        client.cancel(job)
        until_logged(client, job, "told")
    server.end()
    with server.start() as client:
        assert until(client, job, lambda view: view.state == "Running").attempts[0].phase
        (tmp_path / "go").touch()
        view = until(client, job, lambda view: view.state == "Cancelled")
        assert view.attempts[0].runs[0].exit_code == 5
        assert client.logs(job, attempt=1).text.count("told") == 1


def test_a_grace_ends_on_time_though_no_server_runs(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, TOLD, str(tmp_path / "never"), grace="1s")
        until_logged(client, job, "up")
        client.cancel(job)
        until_logged(client, job, "told")
    server.end()
    wait_until(lambda: not server.programs(), "the end of the grace")
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Cancelled")
    [run] = view.attempts[0].runs
    assert (run.signal, run.ended_by) == (signal.SIGKILL, "user")
    assert seconds(run.ended_at) - seconds(run.started_at) < PATIENCE_S


@pytest.mark.as_people_do  # a forked server starts within SEEN_S
def test_what_succeeds_though_no_server_runs_took_no_longer_for_that(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "go"))
        until_logged(client, job, "up")
    server.end()
    (tmp_path / "go").write_text("0\n")
    wait_until(lambda: not server.programs(), "its end")
    over = time.time()
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Succeeded")
    [attempt] = view.attempts
    assert view.ended_at == attempt.ended_at == attempt.runs[0].ended_at
    assert seconds(view.ended_at) <= over + SEEN_S


@pytest.mark.slow
@pytest.mark.as_people_do  # as above
def test_a_total_deadline_is_kept_though_no_server_runs(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "never"), totalDeadline="6s", retry=backing_off("0s"))
        until_logged(client, job, "up")
    server.end()
    wait_until(lambda: not server.programs(), "the end of a program nobody told to stop")
    kept_by_itself = time.time()
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Failed")
    [attempt] = view.attempts
    [run] = attempt.runs
    assert seconds(run.ended_at) <= kept_by_itself + SEEN_S
    assert seconds(run.ended_at) - seconds(view.submitted_at) >= 5.0
    assert view.ended_at == attempt.ended_at == run.ended_at
    assert (run.ended_by, attempt.cause) == ("deadline", "execution_timeout")
    assert "total deadline of 6s is over" in view.reason


def test_a_back_off_that_ran_out_while_no_server_ran_is_over_at_once(server: Server) -> None:
    with server.start() as client:
        job = submit(client, FAIL_ONCE, retry=backing_off("1s"))
        due = seconds(until(client, job, lambda view: view.state == "BackOff").retry_at)
    server.end()
    wait_until(lambda: time.time() > due, "the due time")
    with server.start() as client:
        served = time.time()
        view = until(client, job, lambda view: view.state == "Succeeded")
        began = float(client.logs(job, attempt=2).text)
    assert due <= began <= served + 5
    assert len(view.attempts) == 2


def test_a_back_off_is_due_when_it_was_whoever_waits_for_it(server: Server) -> None:
    with server.start() as client:
        job = submit(client, FAIL_ONCE, retry=backing_off("1h"))
        before = until(client, job, lambda view: view.state == "BackOff")
    server.end()
    with server.start() as client:
        after = client.job(job)
        assert (after.state, after.retry_at, after.counters) == ("BackOff", before.retry_at, before.counters)
        client.cancel(job)
        assert until(client, job, lambda view: view.state == "Cancelled").attempt == 1


def test_a_held_job_stays_held_and_may_be_released_while_no_server_runs(server: Server) -> None:
    with server.start() as client:
        job = submit(client, FAIL_ONCE, retry={"rules": [{"name": "ask", "action": "Hold", "reason": "look at it"}]})
        until(client, job, lambda view: view.state == "Held")
    server.end()
    with server.start() as client:
        assert (client.job(job).state, client.job(job).reason) == ("Held", "look at it")
    server.end()
    with connect(settings=Settings(data=server.data)) as client:
        client.release(job)
    with server.start() as client:
        assert until(client, job, lambda view: view.state == "Succeeded").attempt == 2


# stopping, and taking over


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_runs_go_on_when_their_server_ends_and_the_next_one_learns_their_exit_codes(
    server: Server, tmp_path: Path, number: int
) -> None:
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "go"))
        said = until_logged(client, job, "\n")
    code = server.end(number)
    assert code in ({-number} if number == signal.SIGKILL else {0, 130, 143, -number})
    assert said.startswith("up ")
    assert int(said.removeprefix("up ")) in {process.pid for process in server.programs()}
    with server.start() as client:
        (tmp_path / "go").write_text("7\n")
        view = until(client, job, lambda view: view.state == "Failed")
        assert [attempt.exit_code for attempt in view.attempts] == [7]
        assert client.logs(job).text == said


def test_a_second_server_is_told_who_holds_the_directory_and_how(server: Server) -> None:
    server.start().close()
    assert server.process is not None
    said = server.run("up", "--port", "0")
    assert said.returncode == 5
    assert f"{server.data} is held by holdfast up, process {server.process.pid}" in said.stderr
    assert "HOLDFAST_DATA" in said.stderr
    server.end()
    server.start().close()


@pytest.mark.slow
@pytest.mark.parametrize("claimed", ["its own", "a living process's"])
def test_the_address_of_a_killed_server_is_not_trusted(server: Server, claimed: str) -> None:
    server.start().close()
    server.end()
    left = server.data / "server.json"
    if claimed != "its own":
        left.write_text(json.dumps({**json.loads(left.read_text()), "pid": os.getpid()}))
    listed = server.run("get", "queues", "-o", "name")
    assert (listed.returncode, listed.stdout) == (0, "queue/default\n")
    submitted = server.run("run", "--detach", "--name", "later", "--", "true")
    assert submitted.returncode == 0
    assert "no server is running" in submitted.stderr
    with server.start() as client:
        until(client, "later", lambda view: view.state == "Succeeded")


# what holds the programs


@pytest.mark.parametrize("victims", ["holdfast-shim", "holdfast-run", "holdfast-fork"])
def test_whatever_holds_programs_is_killed_and_nothing_is_lost(server: Server, tmp_path: Path, victims: str) -> None:
    with server.start() as client:
        jobs = [submit(client, GATE, str(tmp_path / "go")) for _ in range(3)]
        said = [until_logged(client, job, "\n") for job in jobs]
        for process in server.holders(victims):
            process.kill()
        later = submit(client, "echo later")
        until(client, later, lambda view: view.state == "Succeeded")
        (tmp_path / "go").write_text("7\n")
        for job, text in zip(jobs, said, strict=True):
            view = until(client, job, lambda view: view.state == "Failed")
            assert [attempt.exit_code for attempt in view.attempts] == [7]
            assert client.logs(job).text == text


def test_server_and_shim_killed_together_lose_nothing(server: Server, tmp_path: Path) -> None:
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "go"))
        said = until_logged(client, job, "\n")
    shim = server.shim()
    server.end()
    shim.kill()
    (tmp_path / "go").write_text("7\n")
    with server.start() as client:
        view = until(client, job, lambda view: view.state == "Failed")
        assert [attempt.exit_code for attempt in view.attempts] == [7]
        assert client.logs(job).text == said


ONCE = 'echo ran >> "$1.ran"; while ! test -e "$1.go"; do sleep 0.02; done'


@pytest.mark.parametrize(("says", "ends_as"), [("Hold", "Held"), ("Fail", "Failed"), ("Retry", "Succeeded")])
def test_what_must_not_run_twice_is_asked_about_when_nobody_knows_how_it_ended(
    server: Server, tmp_path: Path, says: str, ends_as: str
) -> None:
    """Its supervisor's record is what a kill leaves between the start of a program and the line that says so."""
    with server.start() as client:
        job = submit(client, ONCE, str(tmp_path / "job"), onUnknownEnd=says)
        wait_until((tmp_path / "job.ran").exists, "a program that runs")
        wait_until(server.programs, "a program that can be seen")
    holders = server.holders()
    server.end()
    for process in holders:
        process.kill()
    (tmp_path / "job.go").touch()
    wait_until(lambda: not server.programs() and not server.holders(), "an end that nobody sees")
    for record in (server.data / "runs" / "supervisors").glob("*.record"):
        first, _, _ = record.read_bytes().partition(b"\n")
        record.write_bytes(first + b"\n\0")
    with server.start() as client:
        view = until(client, job, lambda view: view.state == ends_as)
        assert (tmp_path / "job.ran").read_text() == "ran\n" * (2 if says == "Retry" else 1)
        assert len(view.attempts) == (2 if says == "Retry" else 1)
        assert view.attempts[0].conditions == ["EndUnknown", "ExecutorLost"]
        told = server.run("why", job).stdout if says != "Retry" else server.run("why", job, "--attempt", "1").stdout
        assert "may have run" in told
        assert "never" not in told
        assert "before its program started" not in told
        assert (f"onUnknownEnd of the job is {says}" in told) is (says != "Retry")


def test_all_of_us_killed_together_never_have_two_of_a_program(server: Server, tmp_path: Path) -> None:
    """Where the kernel tells how a process ended that is nobody's child they go on; elsewhere they are retried."""
    with server.start() as client:
        job = submit(client, GATE, str(tmp_path / "go"))
        until_logged(client, job, "\n")
    holders = server.holders()
    server.end()
    for process in holders:
        process.kill()
    with server.start() as client:
        (tmp_path / "go").write_text("0\n")
        view = until(client, job, lambda view: view.state == "Succeeded")
    if processes.can_be_waited_for(os.getpid()):
        assert len(view.attempts) == 1
    else:
        assert [attempt.conditions for attempt in view.attempts] == [["EndUnknown", "ExecutorLost"], []]
    assert not server.programs()
