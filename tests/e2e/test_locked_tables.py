"""A table on PostgreSQL that another session has locked: the server waits, says so and since when, and goes on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from holdfast.errors import Unavailable
from tests.e2e.test_databases import LEASE_S, Machine, all_succeeded, is_ready, manifests, wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client

pytestmark = pytest.mark.slow  # a lock is waited for five seconds at a time

PROGRAMS = 5
SAID = r"the database is locked by another session.*, since 20\d\d-"


def said_by(client: Client) -> str:
    """Return why a server is not ready; nothing if it is."""
    try:
        client.health()
    except Unavailable as error:
        return str(error)
    return ""


@pytest.mark.parametrize("table", ["jobs", "requests", "leadership", "settings", "runs"])
def test_a_server_waits_for_a_locked_table_says_since_when_and_loses_nothing(
    tmp_path: Path, postgres_url: str, capfd: pytest.CaptureFixture[str], table: str
) -> None:
    machine = Machine(tmp_path / "data", {"HOLDFAST_DATABASE": postgres_url, "HOLDFAST_LEASE": f"{LEASE_S}s"})
    gate, ledger = tmp_path / "gate", tmp_path / "ledger"
    with machine.serving() as client:
        program = f'while [ ! -e {gate} ]; do sleep 0.05; done; echo "$HOLDFAST_JOB_NAME" >> {ledger}'
        client.submit_bulk(manifests(PROGRAMS, program))
        wait_until(lambda: {job.state for job in client.jobs()} == {"Running"})
        with psycopg.connect(postgres_url) as other:
            other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            gate.touch()
            wait_until(
                lambda: bool(re.search(r"the database is locked by another session.*, since 20\d\d-", said_by(client)))
            )
            wait_until(lambda: ledger.exists() and len(ledger.read_text().split()) == PROGRAMS)
            other.rollback()
        wait_until(lambda: is_ready(client))
        client.submit({"name": "later", "shell": "true"})
        wait_until(lambda: all_succeeded(client, PROGRAMS + 1))
        assert [job.attempt for job in client.jobs()] == [1] * (PROGRAMS + 1)
    assert sorted(ledger.read_text().split()) == [f"n{number}" for number in range(PROGRAMS)]
    told = [line for line in capfd.readouterr().err.splitlines() if "[WARNING]" in line]
    assert len(told) == 2, told
    assert re.search("waiting for the database: the database is locked by another session", told[0])
    assert "works again" in told[1]
