"""What every store promises about its one writer."""

from __future__ import annotations

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Protocol

import psycopg
import pytest

from holdfast.domain.access import Principal
from holdfast.domain.job import Job, JobState
from holdfast.domain.record import evolve
from holdfast.errors import Conflict, NotLeader, Refused, Unavailable
from holdfast.ports.store import Changes, RunsAs, Submission
from holdfast.storage.sql import open_store

if TYPE_CHECKING:
    from holdfast.ports.store import Store

TTL_S = 15.0
NOON = 1000.0


class Place(Protocol):
    def open(self) -> Store: ...


def submitted(store: Store) -> Job:
    store.submit(Submission([Job("j1", "a", "default", 0, 100.0, "{}")]))
    return store.job("j1")


def after_it_ran_out(store: Store, owner: str) -> int:
    """Take a lease as soon as it is free by the store's own time, with a real clock."""
    deadline, pause = time.monotonic() + 30, threading.Event()
    while time.monotonic() < deadline:
        with suppress(NotLeader):
            return store.lead(owner, TTL_S, time.time())
        pause.wait(0.02)
    pytest.fail("the lease never ran out")


def test_a_leader_that_stays_keeps_its_epoch(store: Store) -> None:
    epoch = store.lead("one", 0.01, time.time())
    assert store.lead("one", TTL_S, time.time()) == epoch
    assert store.lead("one", TTL_S, time.time() + 1000) == epoch


def test_another_is_refused_while_the_lease_runs_and_told_who_leads(store: Store) -> None:
    store.lead("holdfast up on host a", 1.0, time.time())
    store.lead("holdfast up on host a", TTL_S, time.time())
    with pytest.raises(NotLeader, match="led by holdfast up on host a") as raised:
        store.lead("two", TTL_S, time.time())
    assert re.search(r"in 1[0-5] s", str(raised.value))


def test_a_lease_that_ran_out_or_was_given_back_is_taken_with_a_larger_epoch(store: Store) -> None:
    first = store.lead("one", 0.3, time.time())
    second = after_it_ran_out(store, "two")
    store.lead("two", 0.0, time.time())
    third = store.lead("one", TTL_S, time.time())
    assert first < second < third


def test_an_heir_is_let_in_at_once_with_a_larger_epoch_and_the_dead_cannot_write(store: Store) -> None:
    job = submitted(store)
    first = store.lead("host a, process 1", TTL_S, time.time())
    with pytest.raises(NotLeader):
        store.lead("host b, process 1", TTL_S, time.time(), heir_of="host b,")
    second = store.lead("host a, process 2", TTL_S, time.time(), heir_of="host a,")
    assert second > first
    with pytest.raises(Conflict):
        store.commit(Changes({"j1": evolve(job, state=JobState.HELD)}, epoch=first))
    with pytest.raises(NotLeader):
        store.lead("host a, process 1", TTL_S, time.time())


def test_a_challenger_whose_clock_is_ahead_does_not_get_a_live_lease_of_a_shared_database(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        epoch = store.lead("one", TTL_S, time.time() - 3600)
        for ahead_s in (20.0, 1e6):
            with pytest.raises(NotLeader):
                store.lead("two", TTL_S, time.time() + ahead_s)
        assert store.lead("one", TTL_S, time.time() + 3600) == epoch


@pytest.mark.slow
def test_a_takeover_waits_no_longer_than_a_moment_for_a_session_that_hangs(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store, psycopg.connect(postgres_url) as hanging:
        hanging.execute("SELECT epoch FROM leadership FOR SHARE")
        with pytest.raises(Unavailable, match="locked by another session"):
            store.lead("one", TTL_S, time.time())
        hanging.rollback()
        assert store.lead("one", TTL_S, time.time()) > 0


def test_a_deposed_writer_changes_nothing(store: Store) -> None:
    job = submitted(store)
    held = Changes({"j1": evolve(job, state=JobState.HELD)}, handled=[1], epoch=store.lead("one", TTL_S, NOON))
    leads = store.lead("two", TTL_S, NOON, heir_of="one")
    with pytest.raises(Conflict, match="another controller leads"):
        store.commit(held)
    assert store.job("j1") == job
    assert len(store.requests(limit=9)) == 1
    store.commit(evolve(held, epoch=leads))
    assert store.job("j1").state is JobState.HELD


def test_who_owns_the_store_alone_commits_without_an_epoch(store: Store) -> None:
    job = submitted(store)
    store.lead("one", TTL_S, NOON)
    store.commit(Changes({"j1": evolve(job, state=JobState.HELD)}))
    assert store.job("j1").state is JobState.HELD


def test_of_many_at_once_one_leads(place: Place) -> None:
    stores = [place.open() for _ in range(8)]
    gate = threading.Barrier(len(stores))

    def stand(number: int) -> int | None:
        gate.wait()
        try:
            return stores[number].lead(f"server {number}", TTL_S, NOON)
        except Unavailable:
            return None

    with ThreadPoolExecutor(len(stores)) as pool:
        epochs = list(pool.map(stand, range(len(stores))))
    assert len([epoch for epoch in epochs if epoch is not None]) == 1


def test_no_commit_of_the_old_leader_comes_after_the_takeover(place: Place) -> None:
    """The old one commits as fast as it can; what the new one reads after taking over never changes again."""
    old, new = place.open(), place.open()
    job = submitted(old)
    epoch = old.lead("old", TTL_S, NOON)
    busy = threading.Event()

    def write() -> int:
        for number in range(1, 100_000):
            try:
                old.commit(Changes({"j1": evolve(job, attempt=number)}, epoch=epoch))
            except Conflict:
                return number - 1
            if number == 20:
                busy.set()
        pytest.fail("the old leader was never stopped")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        assert busy.wait(30)
        new.lead("new", TTL_S, NOON, heir_of="old")
        seen = new.job("j1").attempt
        assert writing.result() == seen
    assert new.job("j1").attempt == seen


ROOT, TOOR, ANN = Principal("root", uid=0), Principal("toor", uid=0), Principal("ann", uid=1001)
EACH = RunsAs()


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.SUCCEEDED])
def test_what_was_to_run_as_its_submitter_lets_nobody_lead_who_runs_it_as_one_account(
    store: Store, state: JobState
) -> None:
    epoch = store.lead("one", 0.0, NOON, runs_as=EACH)
    job = Job("j1", "a", "default", 0, 100.0, "{}", submitted_by="ann", submitter_uid=1001)
    store.submit(Submission([job]))
    store.commit(Changes({"j1": evolve(store.job("j1"), state=state)}, epoch=epoch))
    for other in (ROOT, evolve(ANN, uid=1002), evolve(ANN, name="bob")):
        with pytest.raises(
            Refused, match=rf"belongs to accounts of its own \(ann\), and would run as {other.name}"
        ) as raised:
            store.lead("two", TTL_S, NOON, runs_as=RunsAs(other))
        assert "--run-as submitter" in str(raised.value.hint)
    assert store.lead("one", 0.0, NOON) == epoch, "nobody led in between"
    assert store.lead("three", 0.0, NOON, runs_as=EACH) > epoch
    assert store.lead("four", TTL_S, NOON, runs_as=RunsAs(ANN)) > epoch, "all of it is that account's"


def test_work_that_was_to_run_as_one_account_goes_on_so_whoever_asked_for_it(store: Store) -> None:
    store.lead("one", 0.0, NOON, runs_as=EACH)
    epoch = store.lead("two", 0.0, NOON, runs_as=RunsAs(ROOT))
    store.submit(Submission([Job("j1", "a", "default", 0, 100.0, "{}", submitted_by="ann", submitter_uid=1001)]))
    assert store.lead("three", 0.0, NOON, runs_as=RunsAs(ROOT)) > epoch
    assert store.lead("four", TTL_S, NOON, runs_as=RunsAs(TOOR)) > epoch
