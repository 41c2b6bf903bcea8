"""A new version beside programs that an old one started: it asks who holds them before it changes anything."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.e2e.test_databases import PATIENCE_S, Machine, wait_until

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow  # servers of several versions on one database

NEWER = (
    "from holdfast.engines.process.shim import records; records.PROTOCOL = 99; "
    "from holdfast.storage.sql import migrations; migrations.HEAD = '9999'; "
)
MAIN = "from holdfast.cli.main import main; main()"
COMMANDS = (["up", "--port", "0"], ["run", "--", "true"], ["get", "jobs"], ["db", "upgrade"])


def schema(database: Path) -> str:
    with closing(sqlite3.connect(database)) as connection:
        return str(connection.execute("SELECT version_num FROM alembic_version").fetchone()[0])


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_the_schema_stays_while_programs_are_held_by_a_version_that_needs_it(tmp_path: Path, words: list[str]) -> None:
    machine = Machine(tmp_path / "data")
    with machine.serving() as client:
        job = client.submit({"name": "long", "shell": "sleep 300"}).id
        wait_until(lambda: client.job(job).state == "Running")
    database = machine.data / "holdfast.db"
    newest = schema(database)
    newer = subprocess.run(
        [sys.executable, "-c", NEWER + MAIN, *words],
        env=machine.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (newer.returncode, "another version of Holdfast" in newer.stderr) == (1, True), newer
    assert "Traceback" not in newer.stderr
    assert schema(database) == newest
    with machine.serving() as client:
        client.cancel(job)
        wait_until(lambda: client.job(job).state == "Cancelled")
