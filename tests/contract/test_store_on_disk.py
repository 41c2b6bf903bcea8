"""What only a store on a disk promises: coming back, several connections, and a disk that fails."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Act, AuditEntry, Caller, Subject
from holdfast.domain.job import Attempt, Job, JobState, Queue, Run
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.policy.model import RetryPolicy, RetrySettings
from holdfast.domain.record import evolve
from holdfast.errors import Conflict, Internal, InvalidRequest, InvalidSetting, Unavailable
from holdfast.ports.events import EVERYTHING
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.service.operations.events import EventLog
from holdfast.storage.sql import open_store, upkeep
from holdfast.storage.sql.engine import Database
from tests import databases
from tests.immutable import becoming_immutable

if TYPE_CHECKING:
    from holdfast.ports.store import Store

BY = Caller(Principal("me", roles=(Role.ADMIN,)), 0.0)


class Place(Protocol):
    url: str

    def open(self) -> Store: ...


def job(job_id: str) -> Job:
    return Job(job_id, "a", "default", 0, 100.0, "{}", queued_at=100.0, updated_at=100.0)


def test_what_was_stored_is_there_after_reopening(sqlite: Place) -> None:
    first = sqlite.open()
    first.submit(Submission([job("j1"), job("j2")], {"j1": {"a": "b"}}, "k", "f"))
    running = evolve(first.job("j1"), state=JobState.RUNNING, attempt=1)
    attempt = Attempt("j1", 1, AttemptStatus.RUNNING, dispatch=1)
    run = Run("j1-1-0-1", "j1", 1, 0, RunStatus.RUNNING)
    first.commit(Changes({"j1": running}, {attempt.key: attempt}, {run.uid: run}))
    first.put_entry(RetryPolicy("infra"))
    first.put_entry(Queue("gpu", retry_policies=("infra",)))
    first.put_settings(RetrySettings(3), "infra")
    snapshot, catalogue = first.load(), first.catalogue()
    first.close()
    again = sqlite.open()
    assert again.load() == snapshot
    assert again.catalogue() == catalogue
    assert len(again.requests(limit=10)) == 1
    assert again.submit(Submission([job("j3")], idempotency_key="k", fingerprint="f")) == ("j1", "j2")


def test_a_closed_store_opens_again_when_used(sqlite: Place) -> None:
    store = sqlite.open()
    store.close()
    assert store.count_by_state() == {}


def test_two_connections_see_the_same_and_each_others_commits(sqlite: Place) -> None:
    one, two = sqlite.open(), sqlite.open()
    one.submit(Submission([job("j1")]))
    two.commit(Changes({"j1": evolve(two.job("j1"), state=JobState.HELD)}))
    two.put_entry(RetryPolicy("infra"))
    assert one.job("j1").state is JobState.HELD
    assert one.catalogue_version() == two.catalogue_version()
    assert set(one.catalogue().policies) == {"infra"}


def test_a_reader_sees_only_what_is_committed(sqlite: Place) -> None:
    store = sqlite.open()
    store.submit(Submission([job("j1")]))
    with closing(sqlite3.connect(sqlite.url, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE jobs SET state = 'Held'")
        assert store.job("j1").state is JobState.QUEUED
        other.execute("COMMIT")
    assert store.job("j1").state is JobState.HELD


def test_a_locked_database_is_unavailable_and_nothing_is_changed(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.storage.sql.engine._SQLITE_PRAGMAS", ("PRAGMA busy_timeout=10",))
    store = sqlite.open()
    with closing(sqlite3.connect(sqlite.url, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Unavailable, match="locked") as raised:
            store.submit(Submission([job("j1")]))
        assert "safe to try again" in str(raised.value)
        other.execute("ROLLBACK")
    assert store.jobs(JobFilter()) == []
    store.submit(Submission([job("j1")]))


def test_a_full_disk_is_unavailable_and_nothing_accepted_is_lost(
    sqlite: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sqlite.open()
    store.submit(Submission([job("j1")]))
    store.close()
    monkeypatch.setattr("holdfast.storage.sql.engine._SQLITE_WRITER_PRAGMAS", ("PRAGMA max_page_count=60",))
    full = sqlite.open()
    with pytest.raises(Unavailable, match="full"):
        full.submit(Submission([job(f"x{number:060}") for number in range(5000)], idempotency_key="k"))
    before = full.job("j1")
    attempts = {("j1", number): Attempt("j1", number, message="x" * 4000) for number in range(1, 500)}
    with pytest.raises(Unavailable, match="full"):
        full.commit(Changes({"j1": evolve(before, state=JobState.HELD)}, attempts))
    assert full.jobs(JobFilter()) == [before]
    assert full.attempts("j1") == []
    full.close()
    monkeypatch.undo()
    roomy = sqlite.open()
    assert roomy.submit(Submission([job("j2")], idempotency_key="k")) == ("j2",)


@pytest.mark.parametrize("bad", [{"spec": "{\udcff}"}, {"name": "\udcff"}])
def test_text_that_is_not_unicode_is_refused_and_nothing_is_kept(sqlite: Place, bad: dict[str, str]) -> None:
    store = sqlite.open()
    with pytest.raises(InvalidRequest, match="not valid Unicode"):
        store.submit(Submission([job("j1"), evolve(job("j2"), **bad)]))  # type: ignore[arg-type] # fields by name
    assert store.jobs(JobFilter()) == []


def test_a_file_that_is_no_database_is_named_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / "holdfast.db"
    path.write_bytes(b"this was never a database, and is long enough to show it" * 100)
    with pytest.raises(Internal, match="damaged") as raised:
        open_store(path)
    assert "backup" in str(raised.value)


def test_damaged_events_and_audit_entries_are_passed_over_and_none_after_them_is_missed(sqlite: Place) -> None:
    store = sqlite.open()
    store.submit(Submission([job(f"j{number}") for number in range(9)]))
    for number in range(9):
        by = Caller(Principal("anna", roles=(Role.ADMIN,)), 1.0, "cli", str(number))
        store.record(AuditEntry(by, Act.CANCEL, Subject.JOB, "a", "refused", ""))
    with closing(sqlite3.connect(sqlite.url)) as connection, connection:
        connection.execute("UPDATE events SET data = '{' WHERE seq BETWEEN 2 AND 7")
        connection.execute("UPDATE audit SET act = '{' WHERE seq BETWEEN 2 AND 7")
    log, seen, after = EventLog(store), list[int](), 0
    while after < log.part(BY, EVERYTHING, after=after).last:
        part = log.part(BY, EVERYTHING, after=after, limit=2)
        seen += [event.seq for event in part.events]
        after = part.next_after
    assert seen == [1, 8, 9]
    assert [entry.seq for entry in store.audit(after=1, limit=2)] == [8, 9]


def test_the_check_of_a_database_names_the_entry_and_the_policy_that_cannot_be_read(sqlite: Place) -> None:
    store = sqlite.open()
    for entry in (Queue("gpu"), Queue("sound"), RetryPolicy("infra")):
        store.put_entry(entry)
    store.close()
    assert upkeep.examine(sqlite.url).problems == []
    with closing(sqlite3.connect(sqlite.url)) as database, database:
        database.execute("UPDATE entries SET body = '{' WHERE name = 'gpu'")
        database.execute("UPDATE policy_revisions SET body = '{'")
    problems = upkeep.examine(sqlite.url).problems
    assert sorted(problem.partition(": ")[0] for problem in problems) == ["queue gpu", "retry policy infra"]
    assert all("cannot be read" in problem for problem in problems)


def test_a_damaged_page_is_named_as_damaged(sqlite: Place) -> None:
    sqlite.open().close()
    pages_of_schema = Path(sqlite.url).stat().st_size // 4096
    store = sqlite.open()
    store.submit(Submission([job(f"j{number:06}") for number in range(5000)]))
    store.close()
    with Path(sqlite.url).open("r+b") as file:
        for page in range(pages_of_schema, pages_of_schema + 60):
            file.seek(page * 4096)
            file.write(b"\xff" * 4096)
    damaged = sqlite.open()
    with pytest.raises(Internal, match="damaged"):
        damaged.jobs(JobFilter())


def test_a_folder_that_is_missing_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        open_store(tmp_path / "nowhere" / "holdfast.db")


def test_a_new_database_is_private(sqlite: Place) -> None:
    store = sqlite.open()
    store.submit(Submission([job("j1")]))
    files = [path for path in Path(sqlite.url).parent.iterdir() if path.name.startswith("holdfast.db")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_a_database_that_was_removed_is_not_made_again_by_who_had_it_open(sqlite: Place) -> None:
    store = sqlite.open()
    store.close()
    Path(sqlite.url).unlink()
    with pytest.raises(Unavailable):
        store.submit(Submission([job("j1")]))
    assert not Path(sqlite.url).exists()


def test_a_database_of_a_newer_holdfast_is_refused(sqlite: Place) -> None:
    sqlite.open().close()
    with closing(sqlite3.connect(sqlite.url)) as other, other:
        other.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(Conflict, match="newer Holdfast"):
        sqlite.open()


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://", "sqlite:///:memory:", "://", "nonsense://x"])
def test_a_url_holdfast_does_not_speak_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting) as raised:
        open_store(url)
    assert "postgresql://" in raised.value.problems[0].allowed


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="cannot be reached"):
        open_store("postgresql://localhost:1/holdfast?connect_timeout=2")


def test_what_is_committed_is_on_the_disk_and_readers_write_nothing(sqlite: Place) -> None:
    sqlite.open().close()
    full, write_ahead = 2, "wal"
    with closing(Database(sqlite.url)) as database:
        for opened, writes in ((database.writing, True), (database.reading, False)):
            with opened() as connection:
                asked = ("synchronous", "journal_mode", "foreign_keys", "query_only")
                found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in asked]
            assert found == [full, write_ahead, 1, 0 if writes else 1]


USES_WHAT_IS_READ_ONLY = """
import pathlib, subprocess, sys
from holdfast.errors import Unavailable
from holdfast.storage.sql.engine import Database

database = Database(pathlib.Path(sys.argv[1], "holdfast.db"))
with database.writing() as connection:
    connection.exec_driver_sql("CREATE TABLE word (letters)")
subprocess.run(["chattr", "+i", sys.argv[1] + "/holdfast.db-shm"], check=True)
for use in (database.writing, database.reading):
    try:
        with use() as connection:
            connection.exec_driver_sql("SELECT * FROM word")
    except Unavailable as error:
        print(error.message)
try:
    database.data_version()
except Unavailable as error:
    print(error.message)
subprocess.run(["chattr", "-i", sys.argv[1] + "/holdfast.db-shm"], check=True)
with database.writing() as connection:
    connection.exec_driver_sql("INSERT INTO word VALUES ('a')")
"""


def test_a_file_that_sqlite_maps_and_nobody_may_write_refuses_work_and_does_not_end_the_process(tmp_path: Path) -> None:
    with becoming_immutable(tmp_path):
        command = [sys.executable, "-c", USES_WHAT_IS_READ_ONLY, str(tmp_path)]
        used = subprocess.run(command, capture_output=True, text=True, check=False)
    assert used.returncode == 0, used.stderr
    message = f"the database is read-only ({tmp_path}/holdfast.db-shm cannot be written)"
    assert used.stdout.splitlines() == [message] * 3


def test_a_database_that_was_replaced_is_not_written_by_who_had_the_former_one_open(
    sqlite: Place, tmp_path: Path
) -> None:
    place, copy = tmp_path / "holdfast.db", tmp_path / "copy.db"
    store = sqlite.open()
    store.submit(Submission([job("before")]))
    upkeep.back_up(place, copy)
    store.submit(Submission([job("after")]))
    content = copy.read_bytes()
    copy.replace(place)
    with pytest.raises(Unavailable, match="was removed or replaced while it is in use") as caught:
        store.submit(Submission([job("lost")]))
    assert "holdfast db restore" in (caught.value.hint or "")
    store.close()
    assert place.read_bytes() == content


@pytest.mark.parametrize("gone", [False, True])
def test_a_restore_takes_nothing_from_the_wal_file_of_the_database_before(tmp_path: Path, *, gone: bool) -> None:
    backup, killed, place = (tmp_path / name for name in ("backup.db", "killed.db", "holdfast.db"))
    with closing(open_store(databases.migrated(backup))) as store:
        store.put_settings(RetrySettings(22), None)
    with closing(open_store(databases.migrated(killed))) as store:
        store.put_settings(RetrySettings(11), None)
        for name in ("", "-wal", "-shm"):
            shutil.copy(f"{killed}{name}", f"{place}{name}")
    if gone:
        place.unlink()
    upkeep.restore(place, backup, pause=None, caller=BY)
    assert (tmp_path / "holdfast.db.replaced-1-wal").exists()
    with closing(open_store(place)) as store:
        assert store.catalogue().settings.global_max_retries == 22
