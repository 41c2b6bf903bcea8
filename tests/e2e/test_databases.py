"""Servers on PostgreSQL and on SQLite as operators meet them: one leader, upkeep, and a database that fails."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from holdfast.client import Client
from holdfast.errors import Unavailable
from tests import postgres
from tests.e2e import commands
from tests.e2e.commands import HOLDFAST
from tests.e2e.server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from tests.postgres import PostgresServer

pytestmark = pytest.mark.slow  # servers of PostgreSQL that go away and come back

PATIENCE_S = 30.0
LEASE_S = 15.0
PASSWORD = "pa55-w0rd"  # noqa: S105 - a test's own


@dataclass
class Said:
    """How one command ended."""

    code: int
    out: str
    err: str


@dataclass
class Machine:
    """A machine with a data directory and an environment."""

    data: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """Return what every command here is given."""
        return {**os.environ, "HOLDFAST_DATA": str(self.data), "HOLDFAST_CPUS": "8", **self.environ}

    def start(self, *words: str) -> subprocess.Popen[str] | commands.Piped:
        if Server.forks and commands.can_be_forked(self.environment()):
            return commands.Piped(words, self.environment())
        return subprocess.Popen(
            [*HOLDFAST, *words],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> Said:
        with self.start(*words) as process:
            try:
                out, err = process.communicate(timeout=PATIENCE_S)
            finally:
                process.kill()
            return Said(process.wait(), out, err)

    def address(self) -> dict[str, Any]:
        """Read what the server left for those who look for it."""
        found: dict[str, Any] = json.loads((self.data / "server.json").read_text())
        return found

    def server_pid(self) -> int:
        return int(self.address()["pid"])

    def programs(self) -> list[psutil.Process]:
        """Find living processes whose environment says that they came from a run here."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                mark = process.environ().get("HOLDFAST_TERMINATION_LOG", "")
                if mark.startswith(f"{self.data}/") and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return found

    @contextmanager
    def serving(self, *, end: signal.Signals = signal.SIGTERM) -> Iterator[Client]:
        """Run a server and a client of it; what the server says on the way is shown when the test fails."""
        with self.start("up", "--port", "0") as server:
            assert server.stderr is not None
            said = server.stderr.readline()
            if "nothing is started" in said:
                said = server.stderr.readline()
            assert "holdfast is up at" in said, said + server.stderr.read()
            address = self.address()
            try:
                with Client(address["url"], address["token"]) as client:
                    yield client
            finally:
                server.send_signal(end)
                try:
                    sys.stderr.write(server.communicate(timeout=PATIENCE_S)[1])
                finally:
                    server.kill()


def wait_until(done: Callable[[], bool], *, within_s: float = PATIENCE_S) -> None:
    deadline, pause = time.monotonic() + within_s, threading.Event()
    while not done():
        assert time.monotonic() < deadline, f"not so within {within_s} s"
        pause.wait(0.03)


def manifests(count: int, program: str = "true", **more: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - manifest fields
    return [{"name": f"n{number}", "shell": program, "resources": {"cpu": 0.1}, **more} for number in range(count)]


def all_succeeded(client: Client, count: int) -> bool:
    return [job.state for job in client.jobs()] == ["Succeeded"] * count


def is_ready(client: Client) -> bool:
    with suppress(Unavailable):
        return client.health().status == "ok"
    return False


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "data")


@pytest.fixture
def on_postgres(tmp_path: Path, postgres_url: str) -> Machine:
    with_password = postgres_url.replace("holdfast@", f"holdfast:{PASSWORD}@")
    return Machine(tmp_path / "data", {"HOLDFAST_DATABASE": with_password, "HOLDFAST_LEASE": f"{LEASE_S}s"})


def test_fifty_jobs_run_on_postgresql_and_a_killed_server_loses_none(on_postgres: Machine, tmp_path: Path) -> None:
    """Every program writes a line when it starts; half fail once; the server is killed while some run."""
    ledger = tmp_path / "ledger"
    program = f'echo "$HOLDFAST_JOB_NAME $HOLDFAST_ATTEMPT" >> {ledger}; sleep 0.2; exit $CODE'
    fails = [{**one, "shell": program.replace("$CODE", "$((HOLDFAST_ATTEMPT < 2))")} for one in manifests(25)]
    passes = [{**one, "name": f"p{place}"} for place, one in enumerate(manifests(25, program.replace("$CODE", "0")))]
    retry = {"retryLimit": 2, "defaultAction": "Retry", "backoff": {"initialDelay": "0s"}}
    with on_postgres.serving(end=signal.SIGKILL) as client:
        client.submit_bulk([{**one, "retry": retry} for one in (*fails, *passes)])
        wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) > 10)
    with on_postgres.serving() as client:
        wait_until(lambda: all_succeeded(client, 50))
    started = ledger.read_text().splitlines()
    expected = [f"n{number} {attempt}" for number in range(25) for attempt in (1, 2)]
    assert sorted(started) == sorted(expected + [f"p{number} 1" for number in range(25)])


def test_a_job_set_on_postgresql_is_restarted_once_however_often_its_server_is_killed(
    on_postgres: Machine, tmp_path: Path
) -> None:
    """Every program writes down who it is; one fails at first, and the whole set is restarted for it."""
    ledger = tmp_path / "ledger"
    with on_postgres.serving(end=signal.SIGKILL) as client:
        client.create_job_set(_training(ledger, 0.7))
    for number in range(1, 5):
        with on_postgres.serving(end=signal.SIGKILL):
            wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) >= number)  # noqa: B023 - waited for here
    with on_postgres.serving() as client:
        wait_until(lambda: client.job_set("train").state == "Completed")
        assert client.job_set("train").restarts == 1
    _require_two_of_each(ledger)


def test_a_job_set_is_restarted_once_however_often_postgresql_itself_crashes(tmp_path: Path) -> None:
    """As above, with a server that stays, and whose database is killed and recovers."""
    ledger = tmp_path / "ledger"
    binaries = postgres.find_binaries()
    if binaries is None:
        pytest.skip(postgres.ABSENT)
    with postgres.running(binaries, durable=True) as database:
        machine = Machine(tmp_path / "data", {"HOLDFAST_DATABASE": database.migrated()})
        with machine.serving() as client:
            client.create_job_set(_training(ledger, 1.5))
            for count in (4, 5, 8):  # all have started, the restart begins, all have again
                wait_until(lambda: ledger.exists() and len(ledger.read_text().splitlines()) >= count)  # noqa: B023 - waited for here
                postgres.crash(database, binaries)
            wait_until(lambda: is_ready(client) and client.job_set("train").state == "Completed")
            assert client.job_set("train").restarts == 1
    _require_two_of_each(ledger)


def _training(ledger: Path, lasts_s: float) -> dict[str, Any]:
    """Make a job set whose programs write down who they are; one fails at first, and all are restarted for it."""
    program = f'echo "$HOLDFAST_JOB_NAME $HOLDFAST_ATTEMPT_UID" >> {ledger}; sleep {lasts_s}; '
    fails = program + 'exit "$((HOLDFAST_ATTEMPT < 2))"'
    jobs = [_replicated("first", 1, fails), _replicated("others", 3, program)]
    spec = {"failurePolicy": {"maxRestarts": 2}, "replicatedJobs": jobs}
    return {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train"}, "spec": spec}


def _require_two_of_each(ledger: Path) -> None:
    began = [line.split() for line in ledger.read_text().splitlines()]
    assert len({uid for _, uid in began}) == len(began), "nothing runs twice under one uid"
    names = ["train-first-0", *(f"train-others-{index}" for index in range(3))]
    assert sorted(name for name, _ in began) == sorted(2 * names)


def _replicated(name: str, replicas: int, program: str) -> dict[str, Any]:
    container = {"name": "main", "image": "none", "command": ["sh", "-c", program]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"name": name, "replicas": replicas, "template": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}}}


def test_the_password_of_the_database_is_shown_to_nobody(on_postgres: Machine) -> None:
    said = on_postgres.run("db", "check")
    assert said.code == 0
    assert "holdfast:***@" in said.out
    backup = on_postgres.run("db", "backup", str(on_postgres.data / "copy"))
    assert (backup.code, "pg_dump --format=custom" in backup.err) == (4, True)
    with on_postgres.serving() as client:
        job = client.submit({"name": "env", "shell": "env"}).id
        wait_until(lambda: all_succeeded(client, 1))
        log = client.logs(job).text
    nowhere = Machine(on_postgres.data, {"HOLDFAST_DATABASE": f"postgresql://u:{PASSWORD}@localhost:1/x"}).run("up")
    assert (nowhere.code, "cannot be reached" in nowhere.err) == (5, True)
    broken = Machine(on_postgres.data, {"HOLDFAST_DATABASE": f"postgresql://u:{PASSWORD}@h:port/x"}).run("up")
    assert (broken.code, "is not a database URL" in broken.err) == (2, True)
    for one in (said, backup, nowhere, broken):
        assert PASSWORD not in one.out + one.err
    assert PASSWORD not in log


def test_an_empty_database_server_is_upgraded_and_brought_back_when_its_operator_says_so(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    machine = Machine(tmp_path / "data", {"HOLDFAST_DATABASE": postgres_server.empty()})
    refused = machine.run("up", "--port", "0")
    assert (refused.code, "holdfast db upgrade" in refused.err) == (4, True)
    checked = machine.run("db", "check")
    assert (checked.code, "not sound" in checked.out) == (1, True)
    assert "created with schema" in machine.run("db", "upgrade").out
    assert "already" in machine.run("db", "upgrade").out
    assert machine.run("db", "check").code == 0
    assert "brought back from schema" in machine.run("db", "downgrade").out
    assert "already" in machine.run("db", "downgrade").out
    assert "upgraded from schema" in machine.run("db", "upgrade").out


def test_a_second_server_on_the_database_is_refused_and_told_who_leads(on_postgres: Machine, tmp_path: Path) -> None:
    other = Machine(tmp_path / "other", on_postgres.environ)
    with on_postgres.serving(end=signal.SIGKILL):
        refused = other.run("up", "--port", "0")
        assert refused.code == 5
        assert f"data directory {on_postgres.data}" in refused.err
        assert re.search(r"ends by itself in \d+ s", refused.err)
    with on_postgres.serving() as back_at_once:
        wait_until(lambda: is_ready(back_at_once), within_s=LEASE_S / 2)
    with other.serving() as client:
        client.submit(manifests(1)[0])
        wait_until(lambda: all_succeeded(client, 1))


def test_a_locked_database_refuses_submissions_clearly_and_goes_on_when_free(machine: Machine) -> None:
    with machine.serving() as client:
        client.submit({"name": "first", "shell": "true"})
        wait_until(lambda: all_succeeded(client, 1))
        with closing(sqlite3.connect(machine.data / "holdfast.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(Unavailable, match="locked by another process") as raised:
                client.submit({"name": "refused", "shell": "true"})
            assert "nothing was changed" in str(raised.value)
            assert client.job("first").state == "Succeeded"
            other.execute("ROLLBACK")
        client.submit({"name": "second", "shell": "true"})
        wait_until(lambda: all_succeeded(client, 2))


def test_a_database_that_is_away_is_told_once_and_so_is_its_return(
    machine: Machine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    gate, programs = tmp_path / "gate", 5
    with machine.serving() as client:
        client.submit_bulk(manifests(programs, f"while [ ! -e {gate} ]; do sleep 0.05; done"))
        wait_until(lambda: {job.state for job in client.jobs()} == {"Running"})
        with closing(sqlite3.connect(machine.data / "holdfast.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            gate.touch()
            wait_until(lambda: not is_ready(client))
            for _ in range(2):
                with pytest.raises(Unavailable):
                    client.submit({"name": "refused", "shell": "true"})
            other.execute("ROLLBACK")
        wait_until(lambda: all_succeeded(client, programs))
    told = [line.split("[WARNING]", 1)[1] for line in capfd.readouterr().err.splitlines() if "[WARNING]" in line]
    assert len(told) == 2, told
    assert "waiting for the database" in told[0]
    assert "works again" in told[1]


def test_a_damaged_database_is_refused_and_a_backup_brings_its_jobs_back(machine: Machine) -> None:
    database, copy = machine.data / "holdfast.db", machine.data / "friday.db"
    with machine.serving() as client:
        client.submit_bulk(manifests(10))
        wait_until(lambda: all_succeeded(client, 10))
        assert machine.run("db", "backup", str(copy)).code == 0
        assert machine.run("db", "backup", str(copy)).code == 4
        held = machine.run("db", "restore", str(copy))
        assert (held.code, "is held by holdfast up" in held.err) == (5, True)
    pages = database.read_bytes()
    no_database, a_page_gone = b"nonsense" * 512, pages[:8192] + b"\xff" * 4096 + pages[12288:]
    for number, damaged in enumerate((no_database, a_page_gone), 1):
        database.write_bytes(damaged)
        refused = machine.run("up", "--port", "0")
        assert (refused.code, "is damaged" in refused.err, "holdfast db restore" in refused.err) == (1, True, True)
        restored = machine.run("db", "restore", "--resume", str(copy))
        assert (restored.code, f"holdfast.db.replaced-{number}" in restored.out) == (0, True)
    with machine.serving() as client:
        assert all_succeeded(client, 10)
        client.submit({"name": "more", "shell": "true"})
        wait_until(lambda: all_succeeded(client, 11))


def test_a_damaged_backup_is_refused_and_the_database_stays(machine: Machine) -> None:
    machine.run("run", "--", "true")
    bad = machine.data / "bad.db"
    bad.write_bytes(b"nonsense" * 512)
    said = machine.run("db", "restore", str(bad))
    assert (said.code, f"{bad} is damaged" in said.err) == (4, True)
    assert machine.run("db", "restore", str(machine.data / "missing.db")).code == 5
    assert machine.run("get", "jobs", "-o", "name").out.count("\n") == 1
    assert [path.name for path in machine.data.iterdir() if "replaced" in path.name] == []


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_old_jobs_are_forgotten_by_hand_and_by_the_server(request: pytest.FixtureRequest, kind: str) -> None:
    machine: Machine = request.getfixturevalue("machine" if kind == "sqlite" else "on_postgres")
    places = machine.data / "runs" / "jobs"
    with machine.serving() as client:
        client.submit_bulk(manifests(5))
        client.submit({"name": "stays", "shell": "sleep 60"})
        wait_until(lambda: [job.state for job in client.jobs()] == ["Succeeded"] * 5 + ["Running"])
        assert machine.run("db", "prune", "--older-than", "1h").out == "0 jobs deleted\n"
        assert machine.run("db", "prune", "--older-than", "0s", "--keep", "2", "--dry-run").out.startswith("3 jobs")
        assert machine.run("db", "prune", "--older-than", "0s", "--keep", "2").out == "3 jobs deleted\n"
        assert [job.name for job in client.jobs()] == ["n3", "n4", "stays"]
        assert len(list(places.iterdir())) == 3
    forgetful = Machine(machine.data, {**machine.environ, "HOLDFAST_RETENTION": "0s"})
    with forgetful.serving() as client:
        wait_until(lambda: [job.name for job in client.jobs()] == ["stays"])
        client.cancel("stays")
        wait_until(lambda: client.job("stays").state == "Cancelled")
    assert len(list(places.iterdir())) == 1


def test_each_machine_deletes_the_files_that_jobs_left_on_it_whoever_deletes_the_jobs(
    on_postgres: Machine, tmp_path: Path
) -> None:
    """Of one database and two data directories, of which one is away while the other deletes its jobs."""
    other = Machine(tmp_path / "other", on_postgres.environ)
    here, there = (machine.data / "runs" / "jobs" for machine in (on_postgres, other))
    with on_postgres.serving() as client:
        client.submit_bulk(manifests(3))
        wait_until(lambda: all_succeeded(client, 3))
        kept = client.submit({"name": "kept", "shell": "echo kept; touch $HOLDFAST_CHECKPOINT_DIR/it; sleep 1"}).id
        wait_until(lambda: client.job(kept).state == "Succeeded")
    with other.serving() as client:
        client.submit_bulk(manifests(2))
        wait_until(lambda: all_succeeded(client, 6))
        assert other.run("db", "prune", "--older-than", "0s", "--keep", "3").out == "3 jobs deleted\n"
        assert len(list(there.iterdir())) == 2
    assert len(list(here.iterdir())) == 4
    with on_postgres.serving() as client:
        wait_until(lambda: [path.name for path in here.iterdir()] == [kept])
        assert client.logs(kept).text == "kept\n"
        assert (here / kept / "checkpoints" / "it").exists()
        assert on_postgres.run("db", "prune", "--older-than", "0s").out == "3 jobs deleted\n"
        assert list(here.iterdir()) == []
    assert len(list(there.iterdir())) == 2
    with other.serving():
        wait_until(lambda: list(there.iterdir()) == [])


def test_a_copied_data_directory_with_its_database_has_the_files_of_its_jobs_to_delete(machine: Machine) -> None:
    with machine.serving() as client:
        client.submit({"name": "old", "shell": "true"})
        wait_until(lambda: all_succeeded(client, 1))
    copy = Machine(machine.data.with_name("copy"))
    shutil.copytree(machine.data, copy.data, ignore=shutil.ignore_patterns("*.sock"))
    shutil.rmtree(machine.data)
    with closing(sqlite3.connect(copy.data / "holdfast.db")) as database, database:
        database.execute("UPDATE jobs SET submitted_at = submitted_at - 9999, updated_at = updated_at - 9999")
        database.execute("UPDATE places SET came_at = came_at - 19999")
    with copy.serving():
        assert copy.run("db", "prune", "--older-than", "0s").out == "1 job deleted\n"
    assert list((copy.data / "runs" / "jobs").iterdir()) == []
