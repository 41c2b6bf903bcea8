"""Records of attempts that are over, left in the way of a shim that begins anew, which reads all there are."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.server import Server, wait_until
from tests.e2e.test_databases import is_ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # a server that is killed with its shim, and started again


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.clean_up()


def told(server: Server, client: Client, job_id: str) -> dict[str, Any]:
    why = server.run("why", job_id)
    assert why.returncode == 0, why.stderr
    job = client.job(job_id)
    events = [one for one in map(repr, client.events()) if job_id in one]
    assert events
    return {"state": job.state, "attempts": [*map(repr, job.attempts)], "why": why.stdout, "events": events}


def test_records_of_an_attempt_that_is_over_put_back_beside_the_next_change_nothing(server: Server) -> None:
    gate = server.folder / "gate"
    first = f'until test -e "{gate}"; do sleep 0.02; done; exit 3'
    program = f'if test "$HOLDFAST_ATTEMPT" = 1; then {first}; fi; exec sleep 1000'
    retry = {"retryLimit": 5, "defaultAction": "Retry", "backoff": {"initialDelay": "0s"}}
    with server.start() as client:
        job_id = client.submit({"name": "stubborn", "shell": program, "retry": retry}).id
        running, ended = kept(server, job_id, gate)
        wait_until(lambda: client.job(job_id).state == "Running" and len(client.job(job_id).attempts) == 2, "another")
        before = told(server, client, job_id)
    program_before = server.programs()
    server.end()
    server.shim().kill()
    records = server.data / "runs" / "supervisors"
    (records / "7.record").write_bytes(running)
    (records / "8.record").write_bytes(ended)
    with server.start() as client:
        wait_until(lambda: is_ready(client), "a server that works")
        client.submit({"name": "after", "shell": "true"})  # what the new shim runs, it runs once it has read all
        wait_until(lambda: client.job("after").state == "Succeeded", "another job")
        assert told(server, client, job_id) == before
        assert server.programs() == program_before, "it goes on, and nothing else was begun"
        client.cancel(job_id)
        wait_until(lambda: client.job(job_id).state == "Cancelled", "the end")
        assert client.job(job_id).attempts[0].exit_code == 3


def kept(server: Server, job_id: str, gate: Path) -> tuple[bytes, bytes]:
    """Return the record of the first attempt while it runs, and once it has ended, which its server is yet to hear."""
    uid = f"{job_id}-1-0-1".encode()

    def record() -> bytes:
        texts = [
            one.read_bytes().partition(b"\0")[0] for one in (server.data / "runs" / "supervisors").glob("*.record")
        ]
        return next((text for text in texts if uid in text), b"")

    wait_until(lambda: server.programs() and record(), "a program with a record")
    running = record()
    assert server.process is not None
    server.process.send_signal(signal.SIGSTOP)
    try:
        gate.touch()
        wait_until(lambda: b'"exit":[3,' in record() and b'"outcome"' in record(), "an end that is written down")
        return running, record()
    finally:
        server.process.send_signal(signal.SIGCONT)
