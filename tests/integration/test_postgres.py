"""What only PostgreSQL can suffer: schemas made elsewhere, sessions that are ended, writers that die on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from holdfast.domain.job import Attempt, Job, JobState
from holdfast.domain.record import evolve
from holdfast.errors import Conflict, InvalidSetting, Unavailable
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.storage.sql import engine, migrations, open_store, upkeep
from holdfast.storage.sql.declared import metadata
from holdfast.storage.sql.engine import Database
from tests import postgres

if TYPE_CHECKING:
    from tests.postgres import PostgresServer

WRITER = Path(__file__).with_name("storage_writer.py")
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def job(job_id: str) -> Job:
    return Job(job_id, "a", "default", 0, 100.0, "{}", queued_at=100.0, updated_at=100.0)


def test_the_steps_build_the_schema_of_the_code(postgres_url: str) -> None:
    with closing(Database(postgres_url)) as database, database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, metadata) == []


def test_upgrades_at_the_same_time_wait_for_each_other(postgres_server: PostgresServer) -> None:
    url = postgres_server.empty()
    with pytest.raises(Conflict, match="no schema yet"):
        open_store(url)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(migrations.upgrade, [url] * 4))
    migrations.check(url)


def test_who_leads_and_for_how_long_is_told_by_the_servers_clock(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        assert upkeep.leader(postgres_url, 0.0)[1] < 0
        store.lead("somebody", 60.0, 0.0)
        owner, left_s = upkeep.leader(postgres_url, 0.0)
    assert owner == "somebody"
    assert 30.0 < left_s <= 60.0


def test_a_store_outlives_the_end_of_its_sessions(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        store.submit(Submission([job("j1")]))
        for _ in range(3):
            with psycopg.connect(postgres_url, autocommit=True) as connection:
                connection.execute(END_OTHERS)
            assert store.job("j1").state is JobState.QUEUED
            store.commit(Changes({"j1": store.job("j1")}))


def test_a_session_ended_within_a_commit_is_unavailable_and_leaves_nothing(postgres_url: str) -> None:
    """Another session holds the row the commit needs, and ends the session that waits for it."""
    with closing(open_store(postgres_url)) as store, psycopg.connect(postgres_url) as other:
        store.submit(Submission([job("j1"), job("j2")]))
        found = store.jobs_by_id(["j1", "j2"])
        other.execute("SELECT * FROM jobs WHERE id = 'j2' FOR UPDATE")
        changes = Changes({each.id: evolve(each, state=JobState.HELD) for each in found})
        with ThreadPoolExecutor(1) as pool:
            committing = pool.submit(store.commit, changes)
            waiting = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            with psycopg.connect(postgres_url, autocommit=True) as watch:
                while watch.execute(waiting).fetchone() != (1,):
                    assert not committing.done()
            other.execute(END_OTHERS)
            with pytest.raises(Unavailable, match="safe to try again"):
                committing.result(30)
        other.rollback()
        assert {each.state for each in store.jobs(JobFilter())} == {JobState.QUEUED}
        store.commit(changes)
        assert {each.state for each in store.jobs(JobFilter())} == {JobState.HELD}


@pytest.mark.parametrize("wait_for", [1, 7])
def test_a_writer_killed_between_commits_leaves_whole_commits(postgres_url: str, wait_for: int) -> None:
    with subprocess.Popen([sys.executable, str(WRITER), postgres_url], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        confirmed = [int(writer.stdout.readline()) for _ in range(wait_for)][-1]
        os.kill(writer.pid, signal.SIGKILL)
    with closing(open_store(postgres_url)) as store:
        jobs = store.jobs(JobFilter())
        assert len({each.attempt for each in jobs}) == 1
        assert jobs[0].attempt >= confirmed
        assert [attempt.number for attempt in store.attempts(jobs[0].id)] == list(range(1, jobs[0].attempt + 1))


def test_a_commit_of_many_rows_of_every_kind_is_kept_whole(postgres_url: str) -> None:
    ids = [f"j{number:05}" for number in range(3000)]
    with closing(open_store(postgres_url)) as store:
        store.submit(Submission([evolve(job(job_id), spec=f'{{"n":"{job_id}\\\\,}}{{é"}}') for job_id in ids]))
        found = store.jobs_by_id(ids)
        assert [each.spec for each in found] == [f'{{"n":"{job_id}\\\\,}}{{é"}}' for job_id in ids]
        changed = [evolve(each, state=JobState.RUNNING, reason=f"'{each.id}' \\ NULL", retry_at=None) for each in found]
        attempts = {(each.id, 1): Attempt(each.id, 1, message='a "b" {c}') for each in found}
        store.commit(Changes({each.id: each for each in changed}, attempts))
        assert store.jobs_by_id(ids) == changed
        assert list(store.load().attempts) == list(attempts.values())


def test_a_database_server_looks_after_its_own_files(postgres_url: str, tmp_path: Path) -> None:
    health = upkeep.examine(postgres_url)
    assert (health.problems, health.revision, health.rows["jobs"]) == ([], migrations.HEAD, 0)
    assert health.size > 1_000_000
    with pytest.raises(Conflict) as raised:
        upkeep.back_up(postgres_url, tmp_path / "copy")
    command = (raised.value.hint or "").split(maxsplit=1)[1]
    binaries = postgres.find_binaries()
    assert binaries is not None
    subprocess.run(f"{binaries}/pg_dump {command}", shell=True, check=True)  # noqa: S602 - the hint is a shell's
    assert (tmp_path / "copy").stat().st_size > 1000


def test_without_the_driver_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidSetting) as raised:
        engine.Database("postgresql://h/x")
    assert "holdfast-scheduler[postgres]" in str(raised.value)


def test_a_submission_waits_for_locked_tables_no_longer_than_sqlite_does_and_says_why(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "_BUSY_S", 0.2)
    with closing(open_store(postgres_url)) as store, psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        for ask in (lambda: store.submit(Submission([job("a")])), lambda: store.job("a")):
            with pytest.raises(Unavailable, match="the database is locked by another session") as caught:
                ask()
            assert caught.value.hint == "nothing was changed; it is safe to try again"
        other.rollback()
        assert store.submit(Submission([job("a")])) == ("a",)


def test_a_statement_that_the_server_cancelled_is_told_as_that(postgres_url: str) -> None:
    impatient = f"{postgres_url}{'&' if '?' in postgres_url else '?'}options=-c%20statement_timeout%3D100"
    with closing(open_store(impatient)) as store, psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE jobs IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Unavailable, match="cancelled a statement: statement_timeout"):
            store.submit(Submission([job("a")]))
