"""Databases come to the schema the code needs, and survive the death of their writer."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Boolean, LargeBinary, MetaData, Table, column, delete, insert, table, text

from holdfast.compiled.codec import dump_set_spec, dump_spec
from holdfast.domain.failure import Cause, Failure
from holdfast.domain.job import Ceiling, ChildOf
from holdfast.domain.lifecycle import EntityKind, HistoryRow, Outcome
from holdfast.domain.policy.model import Action, Decision, DecisionCode
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec, ArrayState, Indexes, Origin, spans
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import Event, JobSet, SetLogEntry
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Changes, JobFilter, Submission
from holdfast.storage.sql import codec, migrations, open_store, tables
from holdfast.storage.sql.declared import metadata
from holdfast.storage.sql.engine import Database
from holdfast.storage.sql.migrations import steps
from tests.contract.test_store_jobsets import DECISION, POD_JOB, STATE

if TYPE_CHECKING:
    from sqlalchemy import Connection

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


def test_the_steps_build_exactly_what_the_tables_say(path: Path, tmp_path: Path) -> None:
    """Alembic's comparison does not see checks, partial indexes and table options; the SQL itself does."""
    migrations.upgrade(path)
    other = Database(tmp_path / "direct.db")
    with other.writing() as connection:
        metadata.create_all(connection)
    other.close()
    made, direct = objects(path), objects(tmp_path / "direct.db")
    version_table = {each for each in made if "alembic_version" in each[1]}
    assert {_columns(sql) for _, sql in made - version_table} == {_columns(sql) for _, sql in direct}


def _columns(sql: str) -> tuple[str, ...]:
    """A statement's parts, whatever order its constraints were written in."""
    parts = (part.strip(" ,()\t") for part in re.split(r",\s(?![^(]*\))|\n", sql))
    return tuple(sorted(part for part in parts if part))


OLD_JOB = {
    "id": "old", "name": "n", "queue": "default", "priority": 0, "submitted_at": 1.0, "spec": b"1", "gang": 1,
    "cpu_m": 1, "memory": 1, "gpu": 1, "state": "Queued", "reason": "", "attempt": 0, "queued_at": 1.0,
    "updated_at": 1.0, "counters": "{}", "retries": 0, "cancel_requested": False,
}  # fmt: skip
OLD_REQUEST = {"kind": "submit", "job_ids": '["old"]', "created_at": 1.0, "actor": "", "reason": ""}
OLD_SPEC = '{"command":["true"],"name":"n","queue":"default","resources":{"cpu":1,"gpu":0,"memory":0}}'
OLD_ROWS = (("specs", {"digest": b"1", "body": OLD_SPEC}), ("jobs", OLD_JOB), ("requests", OLD_REQUEST))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_database_from_before_job_sets_keeps_its_jobs_and_takes_job_sets(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0003")
        for name, row in OLD_ROWS:
            connection.execute(insert(table(name, *map(column, row))).values(row))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    (old,) = store.load().jobs
    assert (old.id, old.child) == ("old", None)
    assert [(each.targets, each.payload) for each in store.requests(limit=10)] == [(("old",), "")]
    child = evolve(old, id="new", child=ChildOf("s", "workers", 0))
    store.submit(Submission([child], owner=JobSet(id="s", name="s", created_at=1.0, manifest="{}")))
    assert [each.child for each in store.jobs(JobFilter())] == [None, child.child]
    assert list(store.load().of(JobSet).values()) == [store.workload(JobSet, "s")]
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_job_sets_from_before_versions_begin_with_one(kind: str, path: Path, request: pytest.FixtureRequest) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    manifest = '{"apiVersion":"jobset.x-k8s.io/v1alpha2","kind":"JobSet","metadata":{"name":"s"},"spec":{}}'
    spec = dump_set_spec(JobSetSpec(name="s"))
    old = JobSet(id="s", name="s", created_at=1.0, manifest=manifest, spec=spec, generation=3)
    row = {
        "id": "s", "name": "s", "created_at": 1.0, "manifest": manifest, "lenient": False, "generation": 3,
        "updated_at": 0.0, "deleting": False, "state": "{}",
    }  # fmt: skip
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0004")
        connection.execute(insert(table("job_sets", *map(column, row))).values(row))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    store.append(Request(RequestKind.RESTART, ("s",), 1.0), version=1)
    assert store.workload(JobSet, "s") == evolve(old, version=2, queue="default")
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_limits_of_queues_keep_their_meaning(kind: str, path: Path, request: pytest.FixtureRequest) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    limits = {"some": {"cpu": "2000m", "memory": 0, "gpu": 0}, "none": {"cpu": "0m", "memory": 0, "gpu": 0}}
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0005")
        for name, limit in limits.items():
            body = json.dumps({"metadata": {"name": name}, "spec": {"weight": 1.0, "maxRunning": limit}})
            connection.execute(insert(table("queues", column("name"), column("body"))).values(name=name, body=body))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    queues = store.catalogue().queues
    assert (queues["some"].max_running, queues["none"].max_running) == (Ceiling(cpu_m=2000), Ceiling())
    store.close()


OLD_STEP = {
    "job_id": "old", "phase": "Start", "from_status": "PENDING", "to_status": "ERROR", "outcome": "GIVE_UP",
    "created_at": 1.0, "updated_at": 2.0, "error_code": "e", "message": "m", "attempts": 3,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_the_history_of_attempts_moves_into_the_one_history(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    places = [(10, 0), (2, 1), (2, 0)]
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0005")
        for name, row in OLD_ROWS:
            connection.execute(insert(table(name, *map(column, row))).values(row))
        for attempt, seq in places:
            step: dict[str, object] = {**OLD_STEP, "attempt": attempt, "seq": seq}
            connection.execute(insert(table("history", *map(column, step))).values(step))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    found = store.history("old")
    assert [(row.attempt, row.seq) for row in found] == sorted(places)
    assert found[2] == HistoryRow(
        EntityKind.ATTEMPT, "old/10", 0, "Start", "PENDING", "ERROR", Outcome.GIVE_UP, 1.0, 2.0, "e", "m", 3
    )
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_runs_from_before_decisions_of_their_own_have_none_and_take_one(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    run = {
        "uid": "old-1-0-1", "job_id": "old", "attempt": 1, "dispatch": 1, "rank": 0, "status": "ERROR",
        "status_since": 1.0, "executor": "e", "node": "n", "cpu_m": 1, "memory": 1, "gpu": 1, "progress": "half",
    }  # fmt: skip
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0010")
        for name, row in (*OLD_ROWS, ("runs", run)):
            connection.execute(insert(table(name, *map(column, row))).values(row))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    (old,) = store.runs("old")
    assert (old.progress, old.failure, old.decision) == ("half", None, None)
    failure = Failure(Cause.OOM_KILLED, frozenset({"OOMKilled"}), failed_at=2.0)
    decided = evolve(old, failure=failure, decision=Decision(Action.RETRY, DecisionCode.RETRY, "again"))
    store.commit(Changes(runs={old.uid: decided}))
    assert store.runs("old") == [decided]
    store.close()


def fill_as_of_0011(connection: Connection) -> None:
    """Bring an empty database to the schema of then, with one job set and its jobs."""
    command.upgrade(steps.configuration(connection), "0011")
    for name, rows in json.loads((STORED / "schema-0011.json").read_text()).items():
        shape = Table(name, MetaData(), autoload_with=connection)
        for row in rows:
            values = {key: _typed(shape.c[key].type, value) for key, value in row.items()}
            connection.execute(insert(shape).values(values))
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT setval(pg_get_serial_sequence('set_log', 'seq'), 2)"))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_job_sets_and_jobs_made_of_pods_move_into_one_table_as_they_are(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    database = Database(url)
    with database.writing() as connection:
        fill_as_of_0011(connection)
        log = table("set_log", *map(column, ("set_id", "at", "kind", "body")))
        connection.execute(insert(log).values(set_id="s1", at=1.0, kind="event", body="{}"))
        connection.execute(delete(log).where(column("body") == "{}"))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    row = JobSet(
        "s1", name="s1", created_at=90.0, manifest='{"new":1}', spec='{"version":1,"spec":{"name":"s1"}}', lenient=True,
        generation=2, updated_at=95.5, deleting=True, state=evolve(STATE, streaks={}), version=2,
        queue="default",
    )  # fmt: skip
    snapshot = store.load()
    assert store.workload(JobSet, "s1") == row
    fresh = KubeJobRecord("s1-1", "s1", created_at=100.0)
    assert snapshot.workloads == {"s1": row, "s1-0": POD_JOB, "s1-1": fresh}
    told = store.set_log("s1")
    assert [entry.what for entry in told] == [DECISION, Event("Warning", "Exceeded", "broken \udcff ☃")]
    store.commit(Changes(set_log=[SetLogEntry(set_id="s1", at=9.0, what=DECISION)]))
    assert store.set_log("s1")[-1].seq > told[-1].seq + 1
    store.commit(Changes(forgotten={"s1": None}))
    assert store.set_log("s1") == []
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_what_was_asked_of_sets_is_kept_and_those_that_have_ended_say_when_they_are_forgotten(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    database = Database(url)
    asked = ("set_submit", "cancel", "set_update", "set_suspend", "hold", "set_resume", "set_restart", "set_delete")
    specs = {"kept": '"ttl_s":30.0', "going": '"ttl_s":30.0', "old": '"name":"old"', "odd": 'not "ttl_s":'}
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0013")
        names = ("kind", "job_ids", "created_at", "actor", "reason")
        for verb in asked:
            row = dict(zip(names, (verb, '["kept"]', 1.0, "", ""), strict=True))
            connection.execute(insert(table("requests", *map(column, row))).values(row))
        for name, spec in specs.items():
            ended = "" if name == "going" else '"terminal":"Failed","ended_at":100.0'
            row = {
                "id": name, "kind": "jobset", "name": name, "generation": 1, "manifest": "", "deleting": False,
                "spec": f'{{"version":1,"spec":{{{spec}}}}}', "version": 1, "created_at": 1.0, "updated_at": 1.0,
                "state": f'{{"version":1,"state":{{{ended}}}}}',
            }  # fmt: skip
            connection.execute(insert(table("workloads", *map(column, row))).values(row))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    assert [one.kind for one in store.requests(limit=9)] == [
        *("submit", "cancel", "update", "hold", "hold", "release", "restart", "delete")
    ]
    assert {row.name: row.expires_at for row in store.workloads(JobSet)} == {
        "going": None, "kept": 130.0, "odd": None, "old": None,
    }  # fmt: skip
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_of_arrays_that_run_a_task_again_at_once_the_first_goes_on(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    spec = ArraySpec(JobSpec("sweep", ("true",)), (Indexes(0, 9),))
    sweep, origins = Array("sweep", name="sweep", created_at=1.0), (Origin("sweep", "sweep"),)
    reruns = {
        "over": ((1, 2), origins, ArrayState(status="Failed")),
        "first": ((1, 2, 3), origins, ArrayState()),
        "again": ((2,), (Origin("over", "over"), *origins), ArrayState()),
        "second": ((3, 4), origins, ArrayState()),
        "other": ((4, 5), origins, ArrayState()),
    }
    rows = [sweep] + [
        Array(
            name,
            name=name,
            created_at=float(at),
            state=state,
            origins=of,
            spec=dump_spec(evolve(spec, only=spans(only))),
        )
        for at, (name, (only, of, state)) in enumerate(reruns.items(), 2)
    ]
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0022")
        names, later = tables.workloads.columns.keys(), (*tables.JOB_SUBMITTER, *tables.JOB_GROUP, "queue")
        for row in (
            *map(codec.workload_row, rows),
            ("odd", "array", None, "odd", 1, "{", "", False, None, 1, 1.0, 1.0, "", None, None, "", "{"),
        ):
            values = {name: value for name, value in zip(names, row, strict=True) if name not in later}
            connection.execute(insert(table("workloads", *map(column, values))).values(values))
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    assert [(one.kind, one.targets, one.cancel_reason) for one in store.requests(limit=9)] == [
        (RequestKind.CANCEL, (name,), "array first, which was submitted first, runs the same tasks again")
        for name in ("again", "second")
    ]
    assert store.reran("sweep") == {1: "first", 2: "again", 3: "first", 4: "second", 5: "other"}
    store.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_files_of_jobs_that_were_deleted_before_places_were_known_are_discarded_anywhere(
    kind: str, path: Path, request: pytest.FixtureRequest
) -> None:
    url = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_server").empty()
    database = Database(url)
    with database.writing() as connection:
        command.upgrade(steps.configuration(connection), "0026")
        connection.execute(insert(table("discards", column("job_id"))), [{"job_id": "j1"}, {"job_id": "j2"}])
    database.close()
    migrations.upgrade(url)
    store = open_store(url)
    assert store.files_to_discard("here", limit=9) == ["j1", "j2"]
    store.close()


def _typed(type_: object, value: object) -> object:
    if isinstance(type_, Boolean):
        return bool(value)
    return bytes.fromhex(str(value)) if isinstance(type_, LargeBinary) else value


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


def test_an_older_database_is_refused_by_the_check_and_mended_by_the_upgrade(path: Path) -> None:
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
