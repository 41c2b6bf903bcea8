"""A damaged row, of whatever table, affects what it belongs to: every server starts, and everything else goes on."""

from __future__ import annotations

import re
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine, update

from holdfast.api.http.serving.app import create_app
from holdfast.api.http.serving.gates import Entrance
from holdfast.app.inprocess import in_process
from holdfast.domain.access import Principal
from holdfast.domain.job import Resources
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.placement.cordon import Pause
from holdfast.domain.sessions.model import SessionResult, SessionStatus, session_id
from holdfast.ports.engine import NodeInfo
from holdfast.storage.sql import declared, open_store, tables
from tests import databases
from tests.damage import (
    GARBAGE,
    SHARED,
    VICTIMS,
    add_session,
    check,
    damage,
    native,
    submit_each_kind,
    submit_job,
    submit_victims,
)
from tests.integration.conftest import Counting, NoLogs
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, group, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from holdfast.client import Client
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder
    from holdfast.storage.sql import SqlStore

FAILS_ONCE = re.compile(r"bad-(?!workloads)")


def plan(order: RunOrder) -> SimulatedRun:
    """What will be damaged has failed once, where that can be, and then runs for ever."""
    if order.job_name.startswith("bad-"):
        return exits(3) if order.attempt == 1 and FAILS_ONCE.match(order.job_name) else exits(0, after_s=1e9)
    return exits(5) if order.job_name.startswith("told") else exits(0, after_s=20.0)


class World(SetLab):
    """A lab on a real database, with an API."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url, self.ids = url, Counting()
        self.use(*(NodeInfo(name, Resources(1_000_000, 1 << 40, 0)) for name in ("n0", "n1")))
        self.plan = plan

    @contextmanager
    def opened(self) -> Iterator[tuple[SqlStore, Client]]:
        """Begin with a new controller, as a server does that starts."""
        with closing(open_store(self.url)) as store:
            self.store = store  # type: ignore[assignment] # the real one, since only its rows can be damaged
            self.restart_controller()
            app = create_app(
                store=store, clock=self.clock, ids=self.ids, logs=NoLogs(), entrance=Entrance(Principal("tester"))
            )
            with in_process(app.state.backend, Principal("tester")) as client:
                yield store, client


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    if request.param == "sqlite":
        return World(f"sqlite:///{databases.migrated(tmp_path / 'holdfast.db')}")
    return World(request.getfixturevalue("postgres_url"))


def test_every_table_is_placed() -> None:
    known = {table.name for table in tables.metadata.sorted_tables}
    assert (VICTIMS.keys() | SHARED, VICTIMS.keys() & SHARED) == (known, set())


def test_damage_to_any_row_affects_what_it_belongs_to_and_nothing_else(world: World) -> None:
    with world.opened() as (_, client):
        good_job, (kube, array, job_set) = submit_job(client, "good", "x"), submit_each_kind(client, "good", "x")
        victims = submit_victims(client, "x")
        world.pass_s(4)
        client.cordon("n1")
        late = submit_job(client, "late", "x")  # the request to take it in is damaged, too
    damage(world.url, victims)
    for number in range(2):
        with world.opened() as (store, client):
            world.pass_s(30)
            assert world.tick().more is False
            check(client, victims, store.quarantined().keys())
            newest = submit_job(client, f"newest-{number}", "x")
            world.pass_s(30)
            assert {str(store.job(one).state) for one in (good_job, kube, late, newest)} == {"Succeeded"}
            assert (client.array(array).state, client.job_set(job_set).state) == ("Succeeded", "Completed")


@pytest.fixture
def small(tmp_path: Path) -> World:
    return World(f"sqlite:///{tmp_path}/holdfast.db")


def spoil(world: World, table: str, column: str, of: str) -> None:
    engine = create_engine(world.url)
    with engine.begin() as connection:
        whose = VICTIMS[table](of)
        assert connection.execute(update(tables.metadata.tables[table]).where(whose).values({column: GARBAGE})).rowcount
    engine.dispose()


def test_a_job_with_a_damaged_attempt_can_be_cancelled_but_not_released(small: World) -> None:
    with small.opened() as (_, client):
        bad = submit_job(client, "bad-workloads", "x")
        small.pass_s(3)
    spoil(small, "attempts", "status", bad)
    with small.opened() as (store, client):
        small.tick()
        client.release(bad)
        small.pass_s(3)
        assert store.quarantined()[bad].message.endswith("which only the start of a server takes in")
        assert len(small.orders) == 1
        client.cancel(bad)
        small.pass_s(3)
        assert (client.job(bad).state, store.quarantined()) == ("Cancelled", {})
    with small.opened() as (store, _):
        assert store.quarantined() == {}


@pytest.mark.parametrize(("table", "column"), [("sessions", "status"), ("kernels", "status")])
def test_a_session_that_cannot_be_read_ends_with_its_job(small: World, table: str, column: str) -> None:
    with small.opened() as (_, client):
        bad = submit_job(client, "bad-workloads", "x")
        small.pass_s(3)
    engine = create_engine(small.url)
    with engine.begin() as connection:
        add_session(connection, bad)
    engine.dispose()
    spoil(small, table, column, bad)
    with small.opened() as (store, client):
        small.tick()
        assert bad in store.quarantined()
        client.cancel(bad)
        small.pass_s(3)
        session = store.session(session_id(bad, 0))
        assert (session.status, session.result) == (SessionStatus.CANCELLED, SessionResult.CANCELLED)
        [kernel] = store.kernels_of([session.id])[session.id]
        assert kernel.status is RunStatus.CANCELLED


def test_a_set_begins_no_job_again_that_is_left_alone(small: World) -> None:
    with small.opened() as (store, client):
        job_set = client.create_job_set(manifest("bad-workloads", replicatedJobs=[group("w", 2)])).id
        small.pass_s(3)
        first, second = store.children_of(job_set)
    spoil(small, "attempts", "status", first.id)
    with small.opened() as (store, client):
        small.pass_s(10)
        assert store.quarantined()[job_set].message.endswith(f"its job {first.name} is quarantined")
        assert small.engine_runs() == [run.uid for run in store.runs(second.id)]


def test_all_is_paused_by_a_pause_that_cannot_be_read_until_somebody_lifts_it(small: World) -> None:
    with small.opened() as (store, client):
        store.put_pause(Pause(1.0, "restored"))
        engine = create_engine(small.url)
        with engine.begin() as connection:
            assert connection.execute(update(declared.settings).values(paused=GARBAGE)).rowcount == 1
        engine.dispose()
        job = submit_job(client, "good", "x")
        small.pass_s(3)
        assert client.job(job).reason == (
            "nothing is started until `holdfast db resume`: there is a pause whose reason cannot be read"
        )
        store.delete_pause()
        small.pass_s(30)
        assert client.job(job).state == "Succeeded"


def test_a_damaged_request_is_dropped_once(small: World, caplog: pytest.LogCaptureFixture) -> None:
    with small.opened() as (_, client):
        submit_job(client, "good", "x")
        engine = create_engine(small.url)
        with engine.begin() as connection:
            assert connection.execute(update(tables.requests).values(kind=GARBAGE)).rowcount == 1
        engine.dispose()
        for _ in range(3):
            small.tick()
        assert len([one for one in caplog.messages if "cannot be read and is dropped" in one]) == 1, caplog.messages


@pytest.mark.parametrize("table", ["jobs", "workloads"])
def test_what_waits_for_something_that_is_damaged_waits_on(small: World, table: str) -> None:
    with small.opened() as (_, client):
        job, job_set = submit_job(client, "bad-workloads", "x"), submit_each_kind(client, "bad-workloads", "x")[2]
        awaited, column = {"jobs": (job, "counters"), "workloads": (job_set, "state")}[table]
        waits = submit_job(client, "good", "x", dependsOn=[f"{awaited}:ok"])
        small.pass_s(3)
    spoil(small, table, column, awaited)
    with small.opened() as (_, client):
        small.pass_s(10)
        assert client.job(waits).state == "Waiting"


def test_a_damaged_event_is_told_once_by_the_log_and_hides_no_other(
    small: World, caplog: pytest.LogCaptureFixture
) -> None:
    with small.opened() as (store, client):
        jobs = [submit_job(client, name, "x") for name in ("good", "bad", "late")]
    spoil(small, "events", "data", jobs[1])
    with small.opened() as (store, client):
        for _ in range(3):
            assert {event.job_id for event in store.events(limit=100)} == {jobs[0], jobs[2]}
            list(client.events())
        assert len([one for one in caplog.messages if "cannot be read and is left out" in one]) == 1, caplog.messages


@pytest.mark.parametrize("damage", ["[1]", "1", "{"])
def test_a_notification_that_cannot_be_read_is_told_as_that_and_a_failure_that_cannot_is_counted(
    small: World, damage: str
) -> None:
    with small.opened() as (store, client):
        submit_victims(client, "x")
        small.pass_s(10)
        client.submit_array(native("Job", "told-array", command=["x"], array={"indices": "0-1"}, notify=["ops"]))
        small.pass_s(10)
    engine = create_engine(small.url)
    with engine.begin() as connection:
        assert connection.execute(update(tables.notifications).values(body=damage)).rowcount
        connection.execute(update(tables.attempts).values(failure=damage))
    engine.dispose()
    with small.opened() as (store, client):
        told = store.due_notifications(small.clock.now(), limit=10)
        assert {one.report.event for one in told} == {"unreadable"}
        array = client.array("told-array").id
        assert store.causes_of(array) == {"unknown": 2}
