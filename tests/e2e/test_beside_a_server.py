"""What runs beside a server on its database file costs it nothing, and what takes its log away makes it stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from holdfast.cli.commands.operate.db import ACTIONS
from holdfast.errors import Unavailable
from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.client import Client

HELD = 5
READS = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM jobs').fetchone()"
CHECKPOINTS = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()"


def locks(server: Server) -> set[str]:
    """Return which files of its database the server holds POSIX locks on."""
    assert server.process is not None
    lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    pid = str(server.process.pid)
    inodes = {line[5].rpartition(":")[2] for line in lines if line[1] == "POSIX" and line[4] == pid}
    return {path.name for path in server.data.glob("holdfast.db*") if str(path.stat().st_ino) in inodes}


def actions(server: Server, folder: Path) -> dict[str, Callable[[], None]]:
    """Return whatever may run beside a server, by what it is."""
    copy = folder / "copy.db"
    other = Server(folder / "other", HOLDFAST_DATABASE=f"sqlite:///{server.data}/holdfast.db")
    verbs = {
        "upgrade": ([], 0),
        "downgrade": ([], HELD),
        "check": ([], 0),
        "prune": (["--older-than", "30d"], 0),
        "backup": ([str(copy)], 0),
        "restore": ([str(copy)], HELD),
        "pause": ([], 0),
        "resume": ([], 0),
    }
    assert [*verbs] == [*ACTIONS], "each verb is tried, with what it needs"

    def command(machine: Server, code: int, *words: str) -> Callable[[], None]:
        def run() -> None:
            ended = machine.run(*words)
            assert ended.returncode == code, ended.stderr

        return run

    def program(text: str) -> Callable[[], None]:
        def run() -> None:
            subprocess.run([sys.executable, "-c", text, server.data / "holdfast.db"], check=True)

        return run

    return {
        "a foreign reader": program(READS),
        "a foreign checkpoint": program(CHECKPOINTS),
        "doctor": command(server, 0, "doctor"),
        "a second server": command(server, HELD, "up", "--port", "0"),
        "a list from another data directory": command(other, 0, "get", "jobs"),
        "a server of another data directory": command(other, HELD, "up", "--port", "0"),
        **{f"db {verb}": command(server, code, "db", verb, *words) for verb, (words, code) in verbs.items()},
    }


def names(client: Client) -> set[str]:
    return {job.name for job in client.jobs()}


def test_whatever_runs_beside_a_server_no_job_is_lost_when_it_is_killed(server: Server, tmp_path: Path) -> None:
    tried = ["before"]
    with server.start() as client:
        client.submit({"name": "before", "shell": "true"})
        held = locks(server)
        assert {"holdfast.db", "holdfast.db-shm"} <= held
        for number, (what, run) in enumerate(actions(server, tmp_path).items()):
            run()
            assert locks(server) == held, f"{what} drops locks of the server"
            tried.append(f"after-{number}")
            client.submit({"name": tried[-1], "shell": "true"})
    server.end(signal.SIGKILL)
    with server.start() as again:
        assert names(again) == {*tried}


@pytest.mark.parametrize("name", ["holdfast.db-wal", "holdfast.db-shm"])
def test_a_server_whose_log_is_removed_takes_nothing_in_says_so_and_saves_what_it_had(
    server: Server, name: str
) -> None:
    with server.start() as client:
        client.submit({"name": "before", "shell": "true"})
        (server.data / name).unlink()
        message = f"{server.data / name} was removed or replaced while it is in use"
        with pytest.raises(Unavailable, match="was removed or replaced") as refused:
            client.submit({"name": "lost", "shell": "true"})
        assert message in refused.value.message
        assert "holdfast down" in str(refused.value.hint)
        ready = httpx.get(f"{server.address()['url']}/readyz")
        assert (ready.status_code, message in ready.text) == (503, True)
        wait_until(lambda: f"waiting for the database: {message}" in server.log.read_text(), "a line in the log")
    assert server.end(signal.SIGTERM) == 0
    with server.start() as again:
        assert names(again) == {"before"}
