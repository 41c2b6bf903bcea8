"""What can be asked of something whose own row cannot be read: each answer is what is left, or says what is damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, func, update

from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import Conflict, HoldfastError, Internal, NotFound
from holdfast.storage.sql import tables
from holdfast.wire.problems import UnreadableView
from tests.damage import GARBAGE, VICTIMS, Damage, every_damage, native, submit_each_kind, submit_job
from tests.integration.test_damaged_rows import World, world

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from holdfast.client import Client

__all__ = ["world"]
Call = Callable[["Client", str], object]
OWN_ROWS = ("jobs", "specs", "workloads")
OF_JOBS: Mapping[str, Call] = {
    "get": lambda client, key: client.job(key),
    "attempts": lambda client, key: client.attempts(key),
    "decisions": lambda client, key: client.decisions(key),
    "history": lambda client, key: client.history(key),
    "why": lambda client, key: client.why(key),
    "events": lambda client, key: list(client.events(job=key)),
    "hold": lambda client, key: client.hold(key),
    "release": lambda client, key: client.release(key),
    "retry": lambda client, key: client.retry(key),
    "cancel": lambda client, key: client.cancel(key),
}
OF_ARRAYS: Mapping[str, Call] = {
    "get": lambda client, key: client.array(key),
    "task": lambda client, key: client.array_task(key, 0),
    "why": lambda client, key: client.array_why(key),
    "hold": lambda client, key: client.hold_array(key),
    "release": lambda client, key: client.release_array(key),
    "cancel": lambda client, key: client.cancel_array(key),
    "delete": lambda client, key: client.delete_array(key),
}
OF_SETS: Mapping[str, Call] = {
    "get": lambda client, key: client.job_set(key),
    "jobs": lambda client, key: list(client.job_set_jobs(key)),
    "log": lambda client, key: list(client.job_set_log(key)),
    "end of the log": lambda client, key: client.last_job_set_log(key),
    "why": lambda client, key: client.job_set_why(key),
    "suspend": lambda client, key: client.suspend_job_set(key),
    "resume": lambda client, key: client.resume_job_set(key),
    "restart": lambda client, key: client.restart_job_set(key),
    "delete": lambda client, key: client.delete_job_set(key),
}
LISTS: Mapping[str, Callable[[Client], Any]] = {
    "jobs": lambda client: list(client.jobs()),
    "full jobs": lambda client: list(client.full_jobs()),
    "outcomes": lambda client: list(client.job_outcomes()),
    "tasks": lambda client: list(client.jobs(tasks=True)),
    "arrays": lambda client: list(client.arrays()),
    "job sets": lambda client: list(client.job_sets()),
    "events": lambda client: list(client.events()),
    "audit": lambda client: list(client.audit()),
    "summary": lambda client: client.summary(),
    "overview": lambda client: client.overview(),
}


def victims(client: Client) -> Iterator[tuple[Damage, str, str]]:
    """Submit a job, a Kubernetes Job, an array and a job set for every text of their own rows: kind and id of each."""
    for each in every_damage():
        if each.table in OWN_ROWS:
            kube, array, job_set = submit_each_kind(client, each.name, "x")
            yield from ((each, "kube", kube), (each, "set", job_set))
            if each.table == "workloads":
                yield each, "array", array
            else:
                yield each, "job", submit_job(client, f"{each.name}-job", "x")


def spoil(url: str, found: Sequence[tuple[Damage, str, str]], children: Mapping[str, str], *, cut: bool) -> None:
    """Damage each in its own way: with what is no JSON, or by losing the second half of what was there."""
    engine = create_engine(url)
    with engine.begin() as connection:
        for each, kind, key in found:
            row = children[key] if kind == "set" and each.table != "workloads" else key
            table = tables.metadata.tables[each.table]
            column = table.c[each.column]
            value = func.substr(column, 1, func.length(column).op("/")(2)) if cut else GARBAGE
            connection.execute(update(table).where(VICTIMS[each.table](row)).values({each.column: value}))
    engine.dispose()


def answer(client: Client, call: Call, key: str) -> str:
    """Say what is wrong with an answer; nothing if it is one, or an error that says what to do."""
    try:
        call(client, key)
    except (Conflict, NotFound):
        return ""
    except Internal as error:
        return "" if error.message != Internal().message and error.hint else f"Internal: {error}"
    except HoldfastError as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("cut", [False, True])
def test_whatever_is_asked_of_what_cannot_be_read_is_answered_and_no_list_lacks_the_others(
    world: World, caplog: pytest.LogCaptureFixture, *, cut: bool
) -> None:
    with world.opened() as (store, client):
        good = submit_job(client, "good", "x"), *submit_each_kind(client, "good", "x")
        found = list(victims(client))
        world.pass_s(4)
        children = {key: store.children_of(key)[0].id for _, kind, key in found if kind == "set"}
    spoil(world.url, found, children, cut=cut)
    calls = {"job": OF_JOBS, "kube": OF_JOBS, "array": OF_ARRAYS, "set": OF_SETS}
    with world.opened() as (store, client):
        for moment in ("at the start", "later"):
            caplog.clear()
            wrong = {}
            for each, kind, key in found:
                for name, call in calls[kind].items():
                    if said := answer(client, call, key):
                        wrong[f"{each.table}.{each.column}", kind, name] = said
            assert wrong == {}, moment
            listed = {name: call(client) for name, call in LISTS.items()}
            ids = {one.id for name in ("full jobs", "arrays", "job sets") for one in listed[name]}
            assert ids >= set(good)
            assert client.states([key for _, kind, key in found if kind in {"job", "kube"}])
            assert [one for one in caplog.records if one.exc_info and one.name.startswith("holdfast.api")] == []
            world.pass_s(30)
        ended = {job.id for job in client.jobs() if JobState(job.state) in JOB_TERMINAL}
        left = {(each.column, kind) for each, kind, key in found if key in store.quarantined() and key not in ended}
        assert left == {("kind", "set"), ("kind", "array")}  # which may be a newer Holdfast's
        assert {one.name for one in client.job_sets()} == {"good-set"}


def test_a_page_of_which_something_cannot_be_read_is_not_the_last_one(world: World) -> None:
    with world.opened() as (_, client):
        arrays = [submit_each_kind(client, name, "x")[1] for name in ("a", "bad-workloads", "c", "d")]
        sets = {each.id for each in client.job_sets() if each.name != "bad-workloads-set"}
        bad = next(each.id for each in client.job_sets() if each.id not in sets)
        state = Damage("workloads", "state")
        spoil(world.url, [(state, "array", arrays.pop(1)), (state, "set", bad)], {}, cut=False)
    with world.opened() as (store, client):
        assert [one.id for one in store.workloads(Array, limit=2)] == arrays[:2]
        assert [one.id for one in client.arrays()] == arrays
        assert {one.workload.id for one in store.all_asked_of(JobSet, limit=3)} == sets


def test_what_was_made_of_something_deleted_that_cannot_be_read_has_ended(world: World) -> None:
    with world.opened() as (store, client):
        _, array, job_set = submit_each_kind(client, "bad-workloads", "x")
        world.pass_s(4)
        assert len(world.engine_runs()) == 4
        state = Damage("workloads", "state")
        spoil(world.url, [(state, "array", array), (state, "set", job_set)], {}, cut=False)
    with world.opened() as (store, client):
        world.pass_s(3)
        assert store.quarantined().keys() >= {array, job_set}
        client.delete_array(array)
        client.delete_job_set(job_set)
        world.pass_s(10)
        assert store.quarantined() == {}
        states = {job.name: job.state for job in client.jobs(tasks=True)}
        assert states.pop("bad-workloads-kube") == "Running"
        assert set(states.values()) == {"Cancelled"}
        assert len(states) == 3
        assert len(world.engine_runs()) == 1
        types = {event.type for event in client.events()}
        assert types >= {"dev.holdfast.array.deleted.v1", "dev.holdfast.jobset.deleted.v1"}


@pytest.mark.parametrize("columns", [("set_id",), ("replicated_job",), ("set_id", "replicated_job")])
def test_what_is_of_a_workload_by_damage_alone_is_told_of_and_can_be_cancelled(
    world: World, columns: tuple[str, ...]
) -> None:
    """Of a job set that is not there nobody would start or stop anything, and a task may lose its array."""
    with world.opened() as (store, client):
        made = [submit_job(client, "bad-workloads-job", "x"), submit_job(client, "bad-workloads-held", "x")]
        made.append(client.submit(native("Job", "bad-workloads-gang", command=["x"], gang=2)).id)
        kube, array, job_set = submit_each_kind(client, "bad-workloads", "x")
        world.pass_s(4)
        [child] = [one.id for one in store.children_of(job_set)]
        made += [kube, child, *(one.id for one in store.children_of(array))]
        client.hold(made[1])
        world.pass_s(2)
        good = submit_job(client, "good", "x")
    engine = create_engine(world.url)
    with engine.begin() as connection:
        damaged = update(tables.jobs).where(tables.jobs.c.id.in_(made))
        connection.execute(damaged.values({**dict.fromkeys(columns, GARBAGE), "job_index": 3}))
    engine.dispose()
    with world.opened() as (store, client):
        world.pass_s(5)
        if len(columns) > 1:
            assert store.quarantined().keys() >= {*made}
        assert "not there or has no such job" in client.why(child).headline
        with pytest.raises(Conflict, match="it cannot be held"):
            client.hold(child)
        assert {client.cancel(one).id for one in made} == {*made}
        world.pass_s(10)
        assert {client.job(one).state for one in made} == {"Cancelled"}
        assert store.quarantined().keys().isdisjoint(made)
        assert [uid for uid in world.engine_runs() if not uid.startswith(good)] == []
        client.delete_job_set(job_set)
        client.delete_array(array)
        world.pass_s(30)
        assert (client.job(good).state, store.quarantined()) == ("Succeeded", {})
        assert (list(client.arrays()), list(client.job_sets())) == ([], [])


def unread(client: Client, **where: Any) -> list[tuple[str, str]]:  # noqa: ANN401 - filters of any kind
    """Return the ids and names of what lists of arrays and job sets leave out, and of what they show."""
    left = list[UnreadableView]()
    shown = [one.name for one in client.arrays(unreadable=left.append, **where)]
    shown += [one.name for one in client.job_sets(unreadable=left.append, **where)]
    assert all("cannot be read" in one.message for one in left)
    return [*((one.id, one.name) for one in left), *(("", name) for name in shown)]


@pytest.mark.parametrize("column", ["state", "spec"])
def test_lists_of_arrays_and_job_sets_tell_of_those_that_cannot_be_read(world: World, column: str) -> None:
    good = [("", f"{name}-{kind}") for kind in ("array", "set") for name in "ac"]
    with world.opened() as (_, client):
        made = {name: submit_each_kind(client, name, "x") for name in ("a", "bad-workloads", "c")}
        _, array, job_set = made["bad-workloads"]
        damaged = Damage("workloads", column)
        spoil(world.url, [(damaged, "array", array), (damaged, "set", job_set)], {}, cut=False)
    with world.opened() as (_, client):
        bad = [(array, "bad-workloads-array"), (job_set, "bad-workloads-set")]
        assert unread(client) == [*bad, *good]
        assert unread(client, limit=1) == good[::2]
        assert unread(client, user="somebody else") == []
        client.delete_array("bad-workloads-array")
        client.delete_job_set("bad-workloads-set")
        world.pass_s(5)
        assert unread(client) == good


def test_an_array_that_is_left_alone_says_so_and_goes_on_once_what_it_lacked_is_there_and_it_is_released(
    world: World,
) -> None:
    of_array = tables.jobs.c.name.startswith("good-array-")
    with world.opened() as (_, client):
        array = submit_each_kind(client, "good", "x")[1]
        world.pass_s(4)
    engine = create_engine(world.url)
    with engine.begin() as connection:
        assert connection.execute(update(tables.jobs).where(of_array).values(set_id=None)).rowcount == 2
    with world.opened() as (_, client):
        world.pass_s(30)
        [view] = [one for one in client.arrays() if one.id == array]
        assert (view.state, view.reason.splitlines()[0], view.eta_s) == (
            "Running",
            "quarantined: Holdfast failed while reconciling it: Internal: of its 2 tasks 2 cannot be found or read",
            None,
        )
        assert client.array(array).reason == view.reason
        assert view.reason in client.array_why(array).headline
        client.release_array(array)
        world.pass_s(3)
        assert client.array(array).reason == view.reason
        with engine.begin() as connection:
            connection.execute(update(tables.jobs).where(of_array).values(set_id=array))
    engine.dispose()
    with world.opened() as (store, client):
        world.pass_s(3)
        assert (client.array(array).state, client.array(array).reason) == ("Succeeded", "2 of 2 tasks succeeded")
        assert store.quarantined() == {}
