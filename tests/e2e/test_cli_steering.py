"""Steering one job, or many chosen by what is true of them, with a real server and real programs."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import HOLDFAST, PATIENCE_S, Server, until, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEEPS_A_LOG = 'echo "$HOLDFAST_ATTEMPT $X" >> "$HOLDFAST_CHECKPOINT_DIR/log"; test "$X" = right'


class Shell(Server):
    """A person's shell with a data directory of its own, and its server."""

    def at_terminal(self, answer: str, *words: str) -> tuple[int, str]:
        """Run a command at a terminal and type an answer; returns the exit code and what it asked."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*HOLDFAST, *words], env=self.environ, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        shown = b""
        while b"[y/N] " not in shown:
            shown += os.read(ours, 1024)
        os.write(ours, f"{answer}\n".encode())
        code = process.wait(PATIENCE_S)
        os.close(ours)
        return code, shown.decode()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.clean_up()


@pytest.mark.slow
def test_a_failed_job_is_retried_with_changes_once_whatever_is_killed(shell: Shell) -> None:
    with shell.start() as client:
        assert shell.run("run", "--name", "train", "--", "sh", "-c", KEEPS_A_LOG).returncode == 1
        [job] = client.jobs()
        asked = shell.run("retry", "train", "-e", "X=right", "--set", "memory=64Mi", "--reason", "wrong X")
        assert (asked.returncode, asked.stdout) == (0, f"{job.id} train retry requested\n")
        shell.end(signal.SIGKILL)
    waited = shell.run("wait", "train")
    assert (waited.returncode, "train: Succeeded" in waited.stderr) == (0, True), waited.stderr
    with shell.start() as client:
        view = until(client, job.id, lambda view: view.state == "Succeeded")
        assert (view.attempt, view.retries, view.resources.memory) == (2, 0, "64Mi")
        logs = list(shell.data.rglob("checkpoints/log"))
        assert [log.read_text() for log in logs] == ["1 \n2 right\n"], "its checkpoint folder is the same"
        [audited] = [one for one in client.audit() if one.action == "retry"]
        assert (audited.name, audited.detail) == (job.id, "wrong X")


def test_all_jobs_are_cancelled_or_preempted_by_one_request(shell: Shell) -> None:
    manifest = {"command": ["sleep", "1000"], "resources": {"cpu": "1m", "memory": "8Mi"}}
    with shell.start() as client:
        client.submit_bulk([{"name": f"sleeps{n}", **manifest} for n in range(20)])
        ids = [job.id for job in client.jobs()]
        wait_until(lambda: len(list(client.jobs(states=["Running"]))) >= 3, "some that run")
        running = [job.id for job in client.jobs(states=["Running"])]
        assert set(client.preempt_many(ids, reason="a demo")) >= set(running)
        cancelled = shell.run("cancel", "--all", "--yes", "--reason", "done")
        assert cancelled.returncode == 0, cancelled.stderr
        assert {line.split()[0] for line in cancelled.stdout.splitlines()} == {*ids}
        wait_until(lambda: {job.state for job in client.jobs()} == {"Cancelled"}, "all cancelled")
        assert {client.job(one).reason for one in ids} == {"done"}
        assert client.cancel_many(ids) == [], "what has ended is left alone"


def test_many_jobs_are_chosen_by_what_is_true_of_them(shell: Shell) -> None:
    with shell.start() as client:
        for index in range(3):
            assert (
                shell.run("run", "-d", "--name", f"fails{index}", "-l", "team=a", "--", "sh", "-c", "exit 3").returncode
                == 0
            )
        assert shell.run("run", "-d", "--name", "sleeps", "-l", "team=b", "--", "sleep", "1000").returncode == 0
        wait_until(lambda: len(list(client.jobs(states=["Failed"]))) == 3, "three failures")
        wait_until(lambda: len(list(client.jobs(states=["Running"]))) == 1, "one that runs")

        chosen = shell.run(
            "retry", "--cause", "kernel_nonzero_exit", "-l", "team=a", "--since", "1h", "--set", "deadline=1h"
        )
        assert chosen.returncode == 0, chosen.stderr
        assert "retry: 3 jobs: fails0, fails1, fails2" in chosen.stderr
        wait_until(lambda: [job.attempt for job in client.jobs(labels={"team": "a"})] == [2, 2, 2], "three attempts")

        code, shown = shell.at_terminal("n", "cancel", "-l", "team=b")
        assert (code, "cancel 1 job: sleeps? [y/N] " in shown) == (2, True)
        assert [job.state for job in client.jobs(labels={"team": "b"})] == ["Running"]
        assert shell.at_terminal("y", "cancel", "-l", "team=b")[0] == 0
        wait_until(lambda: [job.state for job in client.jobs(labels={"team": "b"})] == ["Cancelled"], "a cancelled job")

        nobody = shell.run("release", "--all")
        assert (nobody.returncode, "no job matches" in nobody.stderr) == (3, True)
        both = shell.run("hold", "sleeps", "--all")
        assert (both.returncode, "--all: selects jobs, but jobs are named already" in both.stderr) == (2, True)
