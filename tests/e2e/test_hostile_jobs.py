"""Hostile programs as jobs of a real server: what becomes of them, and that nobody else notices."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.wire.jobs import JobView

pytestmark = pytest.mark.slow  # programs that do their worst to the machine

MEBI = 1 << 20
FLOOD = (
    "import os, sys\nfor _ in range(300): os.write(1, b'x' * (1 << 20))\nprint('\\nthe end', flush=True)\nsys.exit(3)"
)
BOMB = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})


def submit(client: Client, *command: str, **spec: object) -> str:
    return client.submit(
        {"name": "hostile", "command": list(command), "resources": {"cpu": 0.25}, "grace": "1s", **spec}
    ).id


def run(client: Client, *command: str, **spec: object) -> JobView:
    return until(client, submit(client, *command, **spec), lambda view: view.state in ENDED)


@pytest.fixture
def hardened(tmp_path: Path) -> Iterator[Server]:
    """A server with small limits."""
    server = Server(tmp_path, HOLDFAST_LOG_LIMIT="4Mi", HOLDFAST_PIDS_LIMIT="50")
    yield server
    server.clean_up()


def test_the_end_of_a_capped_log_is_read_from_where_it_begins(hardened: Server) -> None:
    with hardened.start() as client:
        view = run(client, sys.executable, "-c", FLOOD)
        assert (view.state, view.attempts[0].exit_code) == ("Failed", 3)
        assert view.attempts[0].runs[0].log_tail[-1] == "the end"
        first = client.logs(view.id, offset=0)
        assert first.offset >= 290 * MEBI
        assert first.next_offset == first.offset + len(first.text)
        assert set(first.text) == {"x"}
        assert client.logs(view.id, tail=1).text == "the end\n"
        read = first
        while not read.finished:
            read = client.logs(view.id, offset=read.next_offset)
        assert read.next_offset == 300 * MEBI + len("\nthe end\n")
        assert run(client, "true").state == "Succeeded"


def test_a_fork_bomb_is_cancelled_like_any_other_job_while_others_run(hardened: Server) -> None:
    with hardened.start() as client:
        if all(node.labels["holdfast.dev/pids"] == "none" for node in client.nodes()):
            pytest.skip("no control group can be made on this machine: processes cannot be limited")
        bomb = submit(client, sys.executable, "-S", "-c", BOMB)
        wait_until(lambda: len(hardened.programs()) > 20, "the bomb")
        assert run(client, "true").state == "Succeeded"
        assert len(hardened.programs()) <= 50
        client.cancel(bomb)
        assert until(client, bomb, lambda view: view.state in ENDED).state == "Cancelled"
        wait_until(lambda: not hardened.programs(), "the end of all its processes")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/", "Permission denied"),
        ("/etc/passwd", "Permission denied"),
        ("no-such-program", "No such file or directory"),
    ],
)
def test_what_is_no_program_is_explained_and_charged_to_the_infrastructure(
    server: Server, command: str, said: str
) -> None:
    with server.start() as client:
        view = run(client, command, retry={"retryLimit": 9, "rules": []})
    assert view.state == "Failed"
    assert command in view.reason
    assert said in view.reason
    assert {condition for attempt in view.attempts for condition in attempt.conditions} == {"LaunchFailed"}


def test_a_disk_filled_by_one_program_is_its_failure_and_another_goes_on(server: Server) -> None:
    """The program writes to a device that is always full: what every program on a full disk is told."""
    with server.start() as client:
        view = run(client, "sh", "-c", "dd if=/dev/zero of=/dev/full bs=1M count=1")
        other = run(client, "sh", "-c", "echo fine > result")
        why = client.why(view.id)
    assert (view.state, other.state) == ("Failed", "Succeeded")
    assert any("No space left on device" in line for line in view.attempts[0].runs[0].log_tail)
    assert why.summary


@pytest.fixture
def cramped(server: Server) -> Iterator[Server]:
    """A server whose runs have a disk of eight megabytes to themselves."""
    runs = server.data / "runs"
    runs.mkdir(parents=True)
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", runs], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("file systems cannot be mounted here: a disk cannot be filled without harm")
    yield server
    server.clean_up()
    subprocess.run(["umount", "--lazy", runs], check=True)


def test_a_work_directory_that_fills_the_disk_is_named_and_recovery_needs_no_restart(cramped: Server) -> None:
    with cramped.start() as client:
        filler = run(client, "sh", "-c", "head -c 20000000 /dev/zero > big; exit 5")
        victim = run(client, "sh", "-c", "echo hello")
        assert [view.attempts[0].exit_code for view in (filler, victim)] == [5, 1]
        for view in (filler, victim):
            assert view.attempts[0].message.endswith("is full")
            assert str(cramped.data / "runs") in view.attempts[0].message
        [big] = cramped.data.glob("runs/jobs/*/*/work/big")
        big.unlink()
        assert run(client, "sh", "-c", "echo hello").state == "Succeeded"


def test_garbage_does_not_reach_the_terminal_of_who_asks_why(server: Server) -> None:
    script = r"printf '\033[2J\377\007evil\n' | tee $HOLDFAST_TERMINATION_LOG; exit 1"
    with server.start() as client:
        job = run(client, "sh", "-c", script).id
        assert client.logs(job).text == "\x1b[2J\N{REPLACEMENT CHARACTER}\x07evil\n"
    for words in (["why", job], ["describe", job], ["get", "jobs"]):
        said = server.run(*words)
        assert said.returncode == 0
        assert not set(said.stdout + said.stderr) & set("\x1b\x07"), words
    document = server.run("get", "job", job, "-o", "json").stdout
    assert json.loads(document)["attempts"][0]["runs"][0]["containers"][0]["message"].startswith("\x1b[2J")
    assert "\x1b[2J" in server.run("logs", job).stdout


def test_what_somebody_submits_or_gives_as_a_reason_steers_no_terminal(server: Server) -> None:
    steering = "\x1b]0;evil\x07 \x9b2J \x1b[31m \u202eevil"
    with server.start() as client:
        name = submit(client, "sh", "-c", "sleep 1000", steering, annotations={"note": steering}, env={"A": steering})
        held = submit(client, "sleep", "1000", resources={"cpu": 10_000})
        client.hold(held, reason=steering)
        client.cancel(name, reason=steering)
        until(client, name, lambda view: view.state in ENDED)
    looks = [("get", "jobs", "-o", "wide"), ("events",), ("top",), ("get", "audit")]
    looks += [(verb, *noun, job) for job in (name, held) for verb, *noun in (("why",), ("describe", "job"))]
    for words in looks:
        said = server.run(*words)
        assert not set(said.stdout + said.stderr) & set("\x1b\x07\x9b\u202e"), words
    assert "evil" in server.run("describe", "job", name).stdout


def test_a_log_replaced_by_a_pipe_stops_nobody_who_reads_it(server: Server) -> None:
    script = 'log=${HOLDFAST_TERMINATION_LOG%termination}log; rm "$log"; mkfifo "$log"; exit 1'
    with server.start() as client:
        view = run(client, "sh", "-c", script)
        read = client.logs(view.id)
    assert (view.state, read.text, read.finished) == ("Failed", "", True)
