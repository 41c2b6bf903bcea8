"""A data directory that becomes read-only under a server: it says so, goes on, and nothing runs a second time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, wait_until
from tests.immutable import becoming_immutable

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.slow  # a controller that waits for its database looks at it seldom

PROGRAMS = 8


def test_a_data_directory_that_is_read_only_for_a_while_ends_nobody_and_nothing_runs_twice(
    server: Server, tmp_path: Path
) -> None:
    """All of it: also the database and the index of its log, which is mapped into the server's memory."""
    ledger, go = tmp_path / "ledger", tmp_path / "go"
    program = f"echo $HOLDFAST_ATTEMPT_UID >> {ledger}; while ! test -e {go}; do sleep 0.1; done; exit 0"
    usual = {"shell": program, "workingDir": "/", "resources": {"cpu": 0.25}}
    with server.start() as client:
        client.submit_bulk([{"name": f"n{number}", **usual} for number in range(PROGRAMS)])
        wait_until(lambda: [job.state for job in client.jobs()] == ["Running"] * PROGRAMS, "all run")
        holders = {process.pid for process in server.holders()}
        with becoming_immutable(server.data) as data:
            data.freeze()
            go.touch()
            wait_until(lambda: not server.programs(), "all programs have ended")
            wait_until(lambda: "the database is read-only" in server.log.read_text(), "the server says why it waits")
            assert server.process is not None
            assert server.process.poll() is None
            assert holders <= {process.pid for process in server.holders()}
            data.thaw()
            wait_until(lambda: [job.state for job in client.jobs()] == ["Succeeded"] * PROGRAMS, "all have succeeded")
    began = ledger.read_text().split()
    assert len(began) == len(set(began)) == PROGRAMS
    assert server.end(15) == 0
