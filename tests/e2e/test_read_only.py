"""A data directory that becomes read-only under a server: it says so, goes on, and nothing runs a second time."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.e2e.server import Server, wait_until
from tests.immutable import becoming_immutable

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # a controller that waits for its database looks at it seldom

PROGRAMS = 8
WAITS = "waiting for the database: "


def test_a_data_directory_that_is_read_only_for_a_while_ends_nobody_and_nothing_runs_twice(
    server: Server, tmp_path: Path
) -> None:
    """All of it: also the database and the index of its log, which is mapped into the server's memory."""
    ledger, go = tmp_path / "ledger", tmp_path / "go"
    program = f"echo $HOLDFAST_ATTEMPT_UID >> {ledger}; while ! test -e {go}; do sleep 0.1; done; exit 0"
    usual = {"shell": program, "workingDir": "/", "resources": {"cpu": 0.25}}
    ledger.touch()
    with server.start() as client:
        client.submit_bulk([{"name": f"n{number}", **usual} for number in range(PROGRAMS)])
        wait_until(lambda: [job.state for job in client.jobs()] == ["Running"] * PROGRAMS, "all run")
        # Before a program begins, its process looks like another one that holds programs.
        wait_until(lambda: len(ledger.read_text().split()) == PROGRAMS, "all have begun")
        holders = {process.pid for process in server.holders()}
        with becoming_immutable(server.data) as data:
            data.freeze()
            go.touch()
            wait_until(lambda: not server.programs(), "all programs have ended")
            wait_until(lambda: _has_ended(server) or WAITS in server.log.read_text(), "the server says why it waits")
            assert holders <= {process.pid for process in server.holders()}
            data.thaw()
            if _has_ended(server):  # in the middle of a transaction, as docs/operations.md warns
                assert server.end(0) == -signal.SIGBUS
                with server.start() as again:
                    _all_succeed(again)
            else:
                _all_succeed(client)
    began = ledger.read_text().split()
    assert len(began) == len(set(began)) == PROGRAMS
    assert server.end(signal.SIGTERM) == 0


def _has_ended(server: Server) -> bool:
    assert server.process is not None
    return server.process.poll() is not None


def _all_succeed(client: Client) -> None:
    wait_until(lambda: [job.state for job in client.jobs()] == ["Succeeded"] * PROGRAMS, "all have succeeded")
