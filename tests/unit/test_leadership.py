"""A process keeps its lease by renewing it, survives a renewal that fails, and gives it back when it goes."""

from __future__ import annotations

import pytest

from holdfast.app.leadership import ALONE, Leadership, shared
from holdfast.domain.access import Principal
from holdfast.domain.job import Job
from holdfast.errors import NotLeader, Refused, Unavailable
from holdfast.ports.store import RunsAs, Submission
from tools.memory_store import MemoryStore

TERMS = shared(30.0)
STOP_AFTER_S = TERMS.programs_s or 0.0


class Hands:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def steady(self) -> float:
        return self.time - 500.0


class Moody(MemoryStore):
    """A store whose disk may be full."""

    full = False

    def lead(
        self,
        owner: str,
        ttl_s: float,
        now: float,
        *,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> int:
        if self.full:
            raise Unavailable
        return super().lead(owner, ttl_s, now, heir_of=heir_of, place=place, runs_as=runs_as)


@pytest.fixture
def clock() -> Hands:
    return Hands()


@pytest.fixture
def store() -> Moody:
    return Moody()


@pytest.fixture
def leadership(store: Moody, clock: Hands) -> Leadership:
    """A lease that was taken, on a database that others reach."""
    made = Leadership(store, "one", clock, terms=TERMS)
    made.take()
    return made


def pass_s(leadership: Leadership, clock: Hands, seconds: int) -> None:
    """Let time pass, and the lease be kept as its loop does."""
    due = clock.time
    for _ in range(seconds * 2):
        clock.time += 0.5
        if clock.time >= due:
            due = clock.time + leadership.keep()


def test_a_process_that_goes_on_asking_never_loses_its_lease(
    leadership: Leadership, store: Moody, clock: Hands
) -> None:
    epoch = leadership.epoch()
    for _ in range(20):
        pass_s(leadership, clock, 5)
        assert leadership.epoch() == epoch
        assert (leadership.trouble(), leadership.refusal()) == (None, None)
        with pytest.raises(NotLeader, match="led by one"):
            store.lead("two", TERMS.ttl_s, clock.now())


def test_each_process_has_an_epoch_of_its_own_and_the_next_of_a_place_is_let_in_at_once(
    store: Moody, clock: Hands
) -> None:
    first = Leadership(store, "here, process 1", clock, terms=TERMS, heir_of="here")
    second = Leadership(store, "here, process 2", clock, terms=TERMS, heir_of="here")
    elsewhere = Leadership(store, "there, process 1", clock, terms=TERMS, heir_of="there")
    assert first.take() < second.take()
    for late in (elsewhere, first):
        with pytest.raises(NotLeader):
            late.take()


def test_a_renewal_that_is_refused_is_known_at_once(leadership: Leadership, store: Moody, clock: Hands) -> None:
    store.lead("two", TERMS.ttl_s, clock.now(), heir_of="one")
    pass_s(leadership, clock, 1)
    assert "led by two" in str(leadership.trouble())
    assert leadership.is_over()
    assert isinstance(leadership.refusal(), NotLeader)
    with pytest.raises(NotLeader, match="led by two"):
        leadership.epoch()
    store.lead("two", 0.0, clock.now())
    pass_s(leadership, clock, 1)
    assert (leadership.trouble(), leadership.refusal(), leadership.is_over()) == (None, None, False)


def test_a_commit_that_is_refused_ends_it_until_it_is_taken_again(leadership: Leadership, clock: Hands) -> None:
    leadership.lose("another controller leads")
    assert leadership.is_over()
    with pytest.raises(NotLeader, match="another controller leads"):
        leadership.epoch()
    pass_s(leadership, clock, 1)
    assert not leadership.is_over()


def test_programs_are_lost_well_before_others_may_lead(leadership: Leadership, store: Moody, clock: Hands) -> None:
    epoch = leadership.epoch()
    store.full = True
    lost_at = None
    for second in range(1, round(TERMS.ttl_s)):
        pass_s(leadership, clock, 1)
        with pytest.raises(NotLeader):
            MemoryStore.lead(store, "two", TERMS.ttl_s, clock.now())
        if leadership.is_over():
            lost_at = lost_at or second
            assert "not renewed" in str(leadership.refusal()) or leadership.trouble()
        else:
            assert leadership.epoch() == epoch
    assert lost_at is not None
    assert STOP_AFTER_S - 1 <= lost_at <= STOP_AFTER_S + 1
    with pytest.raises(Unavailable):
        leadership.epoch()
    store.full = False
    pass_s(leadership, clock, 1)
    assert leadership.epoch() == epoch


def test_a_process_that_was_frozen_knows_when_it_wakes_that_others_may_lead(
    leadership: Leadership, clock: Hands
) -> None:
    clock.time += TERMS.ttl_s
    assert leadership.is_over()
    with pytest.raises(Unavailable):
        leadership.epoch()


def test_on_a_file_of_this_machine_a_full_disk_costs_no_program_its_life(store: Moody, clock: Hands) -> None:
    leadership = Leadership(store, "one", clock, terms=ALONE, heir_of="")
    epoch = leadership.take()
    store.full = True
    pass_s(leadership, clock, 3600)
    assert leadership.epoch() == epoch
    assert not leadership.is_over()
    assert leadership.trouble() is not None
    assert leadership.refusal() is None


def test_without_a_lease_a_full_disk_is_an_error(store: Moody, clock: Hands) -> None:
    store.full = True
    with pytest.raises(Unavailable):
        Leadership(store, "one", clock).take()


def test_a_process_that_goes_lets_others_in_at_once_and_takes_nothing_that_is_not_its_own(
    leadership: Leadership, store: Moody, clock: Hands
) -> None:
    first = leadership.epoch()
    leadership.step_down()
    assert store.lead("two", TERMS.ttl_s, clock.now()) == first + 1
    leadership.step_down()
    late = Leadership(store, "three", clock)
    late.step_down()
    assert store.lead("two", TERMS.ttl_s, clock.now()) == first + 1


def test_who_may_not_run_the_work_that_came_meanwhile_leads_no_more_and_says_why(store: Moody, clock: Hands) -> None:
    alone = RunsAs(Principal("root", uid=0))
    first = Leadership(store, "here", clock, terms=TERMS, runs_as=alone)
    first.take()
    clock.time += 60.0
    Leadership(store, "there", clock, terms=TERMS, runs_as=RunsAs()).take()
    store.submit(Submission([Job("j1", "a", "default", 0, 100.0, "{}", submitted_by="ann", submitter_uid=1001)]))
    clock.time += 60.0
    with pytest.raises(Refused, match="would run as root"):
        first.take()
    assert first.keep() > 0
    assert "would run as root" in str(first.trouble())
    assert first.refusal() is not None
    with pytest.raises(Unavailable, match="would run as root"):
        first.epoch()
