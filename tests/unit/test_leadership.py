"""A process keeps its lease by renewing it, survives a renewal that fails, and gives it back when it goes."""

from __future__ import annotations

import pytest

from holdfast.app.leadership import TTL_S, Leadership
from holdfast.errors import Unavailable
from holdfast.storage.memory import MemoryStore


class Hands:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time


class Moody(MemoryStore):
    """A store whose disk may be full."""

    full = False

    def lead(self, owner: str, ttl_s: float, now: float) -> int:
        if self.full:
            raise Unavailable
        return super().lead(owner, ttl_s, now)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def store() -> Moody:
    return Moody()


def test_a_process_that_goes_on_asking_never_loses_its_lease(store: Moody, clock: Hands) -> None:
    leadership = Leadership(store, "one", clock)
    epoch = leadership.epoch()
    for _ in range(100):
        clock.time += 1.0
        assert leadership.epoch() == epoch
        with pytest.raises(Unavailable, match="led by one"):
            store.lead("two", TTL_S, clock.now())


def test_a_process_that_is_silent_for_too_long_loses_it(store: Moody, clock: Hands) -> None:
    leadership = Leadership(store, "one", clock)
    leadership.epoch()
    clock.time += TTL_S
    assert store.lead("two", TTL_S, clock.now()) > 0
    leadership.lose()
    with pytest.raises(Unavailable, match="led by two"):
        leadership.epoch()


def test_a_renewal_that_fails_leaves_the_proof_to_the_next_commit(store: Moody, clock: Hands) -> None:
    leadership = Leadership(store, "one", clock)
    epoch = leadership.epoch()
    store.full = True
    for _ in range(20):
        clock.time += 1.0
        assert leadership.epoch() == epoch
    store.full = False
    clock.time += 5.0
    assert leadership.epoch() == epoch


def test_without_a_lease_a_full_disk_is_an_error(store: Moody, clock: Hands) -> None:
    store.full = True
    with pytest.raises(Unavailable):
        Leadership(store, "one", clock).epoch()


def test_a_process_that_goes_lets_others_in_at_once_and_takes_nothing_that_is_not_its_own(
    store: Moody, clock: Hands
) -> None:
    leadership = Leadership(store, "one", clock)
    first = leadership.epoch()
    leadership.step_down()
    assert store.lead("two", TTL_S, clock.now()) == first + 1
    leadership.step_down()
    late = Leadership(store, "three", clock)
    late.step_down()
    assert store.lead("two", TTL_S, clock.now()) == first + 1
