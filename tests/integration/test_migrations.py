"""Databases come to the schema the code needs, and survive the death of their writer."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from holdfast.errors import Conflict
from holdfast.ports.store import JobFilter
from holdfast.storage.sql import migrations, open_store
from holdfast.storage.sql.declared import metadata
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.migrations import steps

STORED = Path(__file__).parents[1] / "data" / "stored"
WRITER = Path(__file__).with_name("storage_writer.py")


def objects(path: Path) -> set[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        return set(connection.execute("SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


def test_an_empty_database_gets_the_schema_of_the_code(path: Path) -> None:
    migrations.upgrade(path)
    database = Database(path)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
    database.close()


def test_upgrading_twice_changes_nothing(path: Path) -> None:
    migrations.upgrade(path)
    before = objects(path)
    migrations.upgrade(path)
    assert objects(path) == before


def test_upgrades_at_the_same_time_wait_for_each_other(path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrations.upgrade, [path] * 4))
    migrations.check(path)


def test_who_opens_a_new_database_at_the_same_moment_waits_for_the_others(tmp_path: Path) -> None:
    def opened(path: Path) -> None:
        database = Database(path)
        with database.writing() as connection:
            assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        database.close()

    with ThreadPoolExecutor(4) as pool:
        for number in range(20):
            list(pool.map(opened, [tmp_path / f"{number}.db"] * 4))


def test_an_empty_database_is_refused_by_the_check_and_filled_by_the_upgrade(path: Path) -> None:
    with pytest.raises(Conflict, match="no schema yet"):
        migrations.check(path)
    migrations.upgrade(path)
    migrations.check(path)


def test_a_newer_database_is_left_alone(path: Path) -> None:
    migrations.upgrade(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = objects(path)
    with pytest.raises(Conflict, match="9999"):
        migrations.upgrade(path)
    assert objects(path) == before


def test_the_newest_step_is_the_one_the_code_asks_for() -> None:
    assert ScriptDirectory.from_config(steps.configuration()).get_heads() == [migrations.HEAD]


def test_opening_a_current_database_does_not_load_alembic(path: Path) -> None:
    migrations.upgrade(path)
    program = (
        "import sys; from holdfast.storage.sql import open_store; open_store(sys.argv[1]).close();"
        "sys.exit('alembic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == 0


@pytest.mark.parametrize("wait_for", [1, 7, 20])
def test_a_writer_killed_between_commits_leaves_whole_commits(path: Path, wait_for: int) -> None:
    """Each commit of the writer moves a job and adds an attempt, a run and a row of history together."""
    with subprocess.Popen([sys.executable, str(WRITER), str(path)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        confirmed = [int(writer.stdout.readline()) for _ in range(wait_for)][-1]
        os.kill(writer.pid, signal.SIGKILL)
        confirmed = max([confirmed, *(int(line) for line in writer.stdout.read().split(b"\n")[:-1])])
    store = open_store(path)
    for job in store.jobs(JobFilter()):
        assert job.attempt >= confirmed
        numbers = list(range(1, job.attempt + 1))
        assert [attempt.number for attempt in store.attempts(job.id)] == numbers
        assert [run.attempt for run in store.runs(job.id)] == numbers
        assert [row.attempt for row in store.history(job.id)] == numbers
    assert len({job.attempt for job in store.jobs(JobFilter())}) == 1
    store.close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
