"""What every store promises about its one writer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import pytest

from holdfast.domain.job import Job, JobState
from holdfast.errors import Conflict, Unavailable
from holdfast.ports.store import Changes, Submission

if TYPE_CHECKING:
    from holdfast.ports.store import Store

TTL_S = 15.0
NOON = 1000.0


class Place(Protocol):
    def open(self) -> Store: ...


def submitted(store: Store) -> Job:
    store.submit(Submission([Job("j1", "a", "default", 0, 100.0, "{}")]))
    return store.job("j1")


def test_a_leader_that_stays_keeps_its_epoch(store: Store) -> None:
    epoch = store.lead("one", TTL_S, NOON)
    assert store.lead("one", TTL_S, NOON + 10) == epoch
    assert store.lead("one", TTL_S, NOON + 1000) == epoch


def test_another_is_refused_while_the_lease_runs_and_told_who_leads(store: Store) -> None:
    store.lead("holdfast up on host a", TTL_S, NOON)
    store.lead("holdfast up on host a", TTL_S, NOON + 10)
    with pytest.raises(Unavailable, match="led by holdfast up on host a") as raised:
        store.lead("two", TTL_S, NOON + TTL_S)
    assert "in 10 s" in str(raised.value)


def test_a_lease_that_ran_out_or_was_given_back_is_taken_with_a_larger_epoch(store: Store) -> None:
    first = store.lead("one", TTL_S, NOON)
    second = store.lead("two", TTL_S, NOON + TTL_S)
    store.lead("two", 0.0, NOON + TTL_S)
    third = store.lead("one", TTL_S, NOON + TTL_S)
    assert first < second < third


def test_a_deposed_writer_changes_nothing(store: Store) -> None:
    job = submitted(store)
    held = Changes({"j1": replace(job, state=JobState.HELD)}, handled=[1], epoch=store.lead("one", TTL_S, NOON))
    leads = store.lead("two", TTL_S, NOON + TTL_S)
    with pytest.raises(Conflict, match="another controller leads"):
        store.commit(held)
    assert store.job("j1") == job
    assert len(store.requests(limit=9)) == 1
    store.commit(replace(held, epoch=leads))
    assert store.job("j1").state is JobState.HELD


def test_who_owns_the_store_alone_commits_without_an_epoch(store: Store) -> None:
    job = submitted(store)
    store.lead("one", TTL_S, NOON)
    store.commit(Changes({"j1": replace(job, state=JobState.HELD)}))
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
                old.commit(Changes({"j1": replace(job, attempt=number)}, epoch=epoch))
            except Conflict:
                return number - 1
            if number == 20:
                busy.set()
        pytest.fail("the old leader was never stopped")

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        assert busy.wait(30)
        new.lead("new", TTL_S, NOON + TTL_S)
        seen = new.job("j1").attempt
        assert writing.result() == seen
    assert new.job("j1").attempt == seen
