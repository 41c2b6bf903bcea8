"""A database of the schema where the steps begin opens as it is; older ones are refused, and stay as they are."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from holdfast.compiled.codec import set_spec_of
from holdfast.domain.access import Principal
from holdfast.domain.audit import Caller
from holdfast.domain.lifecycle import EntityKind, HistoryRow, Outcome
from holdfast.domain.sessions.model import SessionSpec, history_id
from holdfast.domain.sessions.records import first_kernels, first_session
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.jobset.model import JobSetSpec
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict
from holdfast.ports.sessions import EVERYTHING, PageRequest
from holdfast.ports.store import Changes, JobFilter
from holdfast.storage.sql import migrations, open_store, upkeep
from holdfast.storage.sql.engine import Database
from tests.integration.dying_upgrade import contents
from tests.reading import steps_of
from tests.schemas import described, fill
from tests.unit.conftest import Lab

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BY = Caller(Principal("tester"), 0.0)
STATES = {
    "good": "Succeeded", "bad": "Failed", "sweep": "Succeeded", "pair": "Succeeded", "pods": "Succeeded",
    "long": "Running", "after": "Waiting", "held": "Held",
}  # fmt: skip


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """Makes databases with nothing in them; returns the URL of each."""
    server = request.getfixturevalue("postgres_server") if request.param == "postgresql" else None
    return lambda name: f"sqlite:///{tmp_path / name}.db" if server is None else server.empty()


def schema(url: str) -> set[tuple[object, ...]]:
    with closing(Database(url)) as database, database.reading() as connection:
        return described(connection)


def stamp(url: str, revision: str) -> None:
    with closing(Database(url)) as database, database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :to"), {"to": revision})


def test_a_database_that_went_through_all_steps_is_like_one_that_is_made_new(empty: Callable[[str], str]) -> None:
    old, new = empty("old"), empty("new")
    fill(old)
    for url in (old, new):
        migrations.upgrade(url)
    assert len(schema(new)) > 50
    assert schema(old) == schema(new)
    assert {*contents(old)} == {*contents(new)}
    assert contents(new)["leadership"][-1] == "(1, 0, '', 0.0, False)", "rows that are there from the beginning"


def test_a_database_of_the_schema_where_steps_begin_opens_with_all_it_had(empty: Callable[[str], str]) -> None:
    url = empty("old")
    fill(url)
    before = contents(url)
    migrations.upgrade(url)
    if migrations.HEAD == migrations.BASE:
        assert contents(url) == before
    with closing(open_store(url)) as store:
        jobs = {job.name: job for job in store.jobs(JobFilter())}
        assert {name: str(jobs[name].state) for name in STATES if name != "sweep"} == {
            name: state for name, state in STATES.items() if name != "sweep"
        }
        assert [attempt.number for attempt in store.attempts(jobs["bad"].id)] == [1, 2, 3, 4]
        assert len(store.runs(jobs["pair"].id)) == 2
        assert store.history(jobs["bad"].id)
        (train,), (sweep,) = store.workloads(JobSet), store.workloads(Array)
        assert (train.state.terminal, sweep.state.status) == ("Failed", "Succeeded")
        assert isinstance(set_spec_of(train), JobSetSpec)
        assert store.set_log(train.id)
        catalogue = store.catalogue()
        assert (catalogue.unreadable, {*catalogue.policies}, {*catalogue.queues}) == ({}, {"infra"}, {"default", "gpu"})
        assert len(store.events(limit=1000)) == len(before["events"]) - sum(
            not line.startswith("(") for line in before["events"]
        )
        lab = Lab()
        lab.store = store  # type: ignore[assignment] # one store is as good as another
        lab.restart_controller()
        lab.tick()
        assert store.load().quarantined == {}
        assert str(store.job(jobs["after"].id).state) == "Waiting"
    assert upkeep.examine(url).problems == []


@pytest.mark.parametrize("revision", ["0001", f"{int(migrations.BASE) - 1:04d}"])
def test_an_older_database_is_refused_and_stays_as_it_is(empty: Callable[[str], str], revision: str) -> None:
    url = empty("old")
    fill(url)
    stamp(url, revision)
    before = contents(url)
    asked: list[str] = []
    for open_it in (
        lambda: migrations.upgrade(url, before_upgrade=lambda: asked.append("asked")),
        lambda: migrations.check(url),
        lambda: open_store(url),
    ):
        with pytest.raises(Conflict, match=f"an older Holdfast made it: it has schema {revision}") as refused:
            open_it()
        assert "let the Holdfast that made it finish its work" in (refused.value.hint or "")
    (problem,) = upkeep.examine(url).problems
    assert "an older Holdfast made it" in problem
    assert (contents(url), asked) == (before, [])


def test_a_backup_that_is_too_old_is_not_restored_and_nothing_changes(tmp_path: Path) -> None:
    place, backup = tmp_path / "holdfast.db", tmp_path / "old.db"
    for path in (place, backup):
        fill(f"sqlite:///{path}")
    stamp(f"sqlite:///{backup}", "0001")
    before = contents(f"sqlite:///{place}")
    with pytest.raises(Conflict, match="an older Holdfast made it"):
        upkeep.restore(place, backup, pause=None, caller=BY)
    assert contents(f"sqlite:///{place}") == before
    assert [path.name for path in tmp_path.glob("holdfast.db*replaced*")] == []


def test_steps_on_top_are_run_once_in_order(empty: Callable[[str], str], tmp_path: Path) -> None:
    url = empty("old")
    fill(url)
    program = (
        "import sys; from pathlib import Path; from tests.schemas import go_on; go_on(Path(sys.argv[2]), 2)\n"
        "from holdfast.storage.sql import migrations\n"
        "for _ in range(2): migrations.upgrade(sys.argv[1])\n"
        "print(migrations.current(sys.argv[1]))"
    )
    folder = tmp_path / "steps"
    folder.mkdir()
    ran = subprocess.run([sys.executable, "-c", program, url, str(folder)], capture_output=True, text=True, check=False)
    newest = int(migrations.HEAD)
    assert ran.stdout.split() == [f"{newest + 2:04d}"], ran.stderr
    assert contents(url)["entries"][4:6] == [f"of_{newest + 1:04d} TEXT", f"of_{newest + 2:04d} TEXT"]
    with pytest.raises(Conflict, match="a newer Holdfast made it"):
        open_store(url)


def test_the_newest_step_is_undone_and_done_again_with_data_in_place(empty: Callable[[str], str]) -> None:
    """RK-003."""
    url, old = empty("new"), empty("old")
    for place in (url, old):
        fill(place)
    before = contents(url)
    migrations.upgrade(url)
    with closing(open_store(url)) as store:
        job = next(job for job in store.jobs(JobFilter()) if job.name == "good")
        session = first_session(job, SessionSpec(), name="kept")
        (kernel,) = first_kernels(session)
        name = history_id(job.id, 0)
        step = HistoryRow(EntityKind.SESSION, name, 0, "x", "PENDING", "SCHEDULED", Outcome.SUCCESS, 1.0, 1.0)
        changes = Changes(history={step.key: step})
        changes.sessions[session.id], changes.kernels[kernel.id] = session, kernel
        store.commit(changes)
        assert (store.session(session.id), steps_of(store, EntityKind.SESSION, name)) == (session, [step])
    for _ in range(2):
        migrations.downgrade(url)
        assert migrations.current(url) == migrations.PREVIOUS
        assert (schema(url), contents(url)) == (schema(old), before)
    for _ in range(2):
        migrations.upgrade(url)
    with closing(open_store(url)) as store:
        assert store.search_sessions(EVERYTHING, PageRequest()).items == []
        assert store.job(job.id).name == "good"
    assert upkeep.examine(url).problems == []
