"""Which run is evicted by a machine that runs out of memory or disk: the tables, and what holds whatever they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialects.native.thresholds import read_reclaim, read_thresholds, reclaiming
from holdfast.domain.placement.pressure import (
    LOOKS_AFTER,
    PAUSE,
    Candidate,
    Lack,
    LastEviction,
    Level,
    Pressure,
    Threshold,
    choose_victim,
    judge,
)
from holdfast.domain.shortage import Shortage

if TYPE_CHECKING:
    from collections.abc import Mapping

MI = 1 << 20
MEMORY, DISK, INODES = Shortage.MEMORY, Shortage.DISK, Shortage.INODES
LACKS = Lack(MEMORY, available=400 * MI, total=16_384 * MI, floor=800 * MI)


def candidate(uid: str, requested: int = 0, priority: int = 0, started_at: float = 0.0) -> Candidate:
    return Candidate(uid, uid, priority, {MEMORY: requested * MI}, started_at, "n1")


def using(*lacks: Lack, look: int = 9, **used: int) -> Pressure:
    return Pressure(look, lacks or (LACKS,), {uid: {MEMORY: size * MI} for uid, size in used.items()})


@pytest.mark.parametrize(
    ("runs", "used", "victim"),
    [
        ([candidate("a", 100), candidate("b", 100)], {"a": 50, "b": 150}, "b"),
        ([candidate("a", 1000), candidate("b", 10, priority=9)], {"a": 900, "b": 20}, "b"),
        ([candidate("a", 10, priority=1), candidate("b", 10)], {"a": 900, "b": 20}, "b"),
        ([candidate("a", 10), candidate("b", 500)], {"a": 200, "b": 600}, "a"),
        ([candidate("a", 300), candidate("b", 200)], {"a": 250, "b": 190}, "b"),
        ([candidate("a", 10, started_at=5.0), candidate("b", 10, started_at=7.0)], {"a": 90, "b": 90}, "b"),
        ([candidate("b"), candidate("a")], {"a": 90, "b": 90}, "a"),
        ([candidate("a"), candidate("b")], {"a": 3, "b": 90}, "b"),
        ([candidate("a")], {"a": 3}, None),
        ([candidate("a"), candidate("b", 10)], {"b": 9}, "b"),
        ([], {"gone": 900}, None),
    ],
    ids=[
        "over its request first",
        "over its request before priority",
        "the lowest priority of those over it",
        "what is most over it",
        "of those within it the nearest to it",
        "the latest to start",
        "by name at last",
        "not what uses next to nothing",
        "not even alone",
        "not what uses nothing",
        "nothing that has ended",
    ],
)
def test_the_run_that_is_evicted(runs: list[Candidate], used: Mapping[str, int], victim: str | None) -> None:
    chosen = choose_victim(using(**used), runs)
    assert (chosen.victim.uid if chosen else None) == victim


def test_the_reason_says_what_was_lacking_how_much_was_left_and_what_the_run_used() -> None:
    chosen = choose_victim(using(a=900), [candidate("a", 100)])
    assert chosen is not None
    told = "node n1 was low on memory: 400Mi of 16Gi available, and the minimum is 800Mi; it used 900Mi and had "
    assert chosen.reason == told + "requested 100Mi"
    files = Lack(INODES, 3, 1000, 50, where="/scratch")
    pressure = Pressure(9, (files,), {"a": {INODES: 77}})
    chosen = choose_victim(pressure, [candidate("a")])
    assert chosen is not None
    told = "node n1 was low on inodes: 3 of 1000 available in /scratch, and the minimum is 50; it used 77 and had "
    assert chosen.reason == told + "requested nothing"


def test_a_soft_threshold_evicts_nothing_before_its_time_and_gives_what_it_evicts_its_grace() -> None:
    soft = Lack(MEMORY, 400 * MI, 16_384 * MI, 800 * MI, hard=False, due=False)
    assert choose_victim(using(soft, a=900), [candidate("a")]) is None
    chosen = choose_victim(using(Lack(MEMORY, 400 * MI, 16_384 * MI, 800 * MI, hard=False), a=900), [candidate("a")])
    assert chosen is not None
    assert not chosen.hard


def test_where_nobody_uses_what_is_lacking_most_the_next_lack_is_looked_at() -> None:
    disk = Lack(DISK, 1, 100, 50)
    pressure = Pressure(9, (LACKS, disk), {"a": {DISK: 40}})
    chosen = choose_victim(pressure, [candidate("a")])
    assert chosen is not None
    assert "low on disk" in chosen.reason


LEVELS = [Level(MEMORY, 900 * MI, 16_384 * MI), Level(DISK, 5, 100), Level(DISK, 50, 100, "/scratch")]


@pytest.mark.parametrize(
    ("text", "lacking"),
    [
        ("memory=900Mi", []),
        ("memory=901Mi", ["memory"]),
        ("memory=5%", []),
        ("memory=6%", ["memory"]),
        ("disk=5", []),
        ("disk=5%,memory=6%", ["memory"]),
        ("disk=6%,memory=6%", ["memory", "disk"]),
        ("memory=7%:1m,disk=6%", ["disk"]),
        ("memory=7%:1m,memory=6%,disk=60", ["memory", "disk"]),
        ("inodes=5", []),
    ],
)
def test_the_thresholds_that_are_passed(text: str, lacking: list[str]) -> None:
    lacks, since = judge(read_thresholds(text), LEVELS, {}, now=100.0)
    assert [str(lack.of) for lack in lacks if lack.due] == lacking
    assert set(since.values()) <= {100.0}


def test_the_emptier_of_two_disks_counts() -> None:
    (lack,) = judge(read_thresholds("disk=60"), LEVELS, {}, now=0.0).lacks
    assert (lack.available, lack.where) == (5, "")


def test_a_soft_threshold_is_due_once_it_has_been_passed_without_a_pause_for_its_time() -> None:
    (soft,) = read_thresholds("memory=10%:2m")
    low, well = [Level(MEMORY, 9, 100)], [Level(MEMORY, 10, 100)]
    since: Mapping[Threshold, float] = {}
    due = []
    for now, levels in ((0.0, low), (60.0, well), (61.0, low), (180.0, low), (181.0, low)):
        lacks, since = judge([soft], levels, since, now)
        due.append([lack.due for lack in lacks])
    assert due == [[False], [], [False], [False], [True]]


def test_what_was_lacking_lacks_until_the_reclaim_is_there_too() -> None:
    thresholds = reclaiming(read_thresholds("memory=10"), read_reclaim("memory=5,disk=1Gi"))
    since: Mapping[Threshold, float] = {}
    lacking = []
    for now, available in enumerate((12, 9, 14, 15, 12)):
        lacks, since = judge(thresholds, [Level(MEMORY, available, 100)], since, float(now))
        lacking.append(bool(lacks))
    assert lacking == [False, True, True, False, False]


def test_one_is_evicted_at_a_time_and_the_next_only_after_it_is_gone_and_ever_later() -> None:
    last = LastEviction(look=3)
    assert not last.allows(using(look=3 + LOOKS_AFTER - 1), 100.0)
    assert last.allows(using(look=3 + LOOKS_AFTER), 100.0)
    last = last.after_eviction(using(look=5), 100.0).after_measurement(using(look=6), 101.0, going=True)
    assert not last.allows(using(look=99), 999.0)
    last = last.after_measurement(using(look=100), 200.0, going=False)
    assert not last.allows(using(look=100 + LOOKS_AFTER), 200.0 + PAUSE.initial_s - 0.1)
    assert not last.allows(using(look=100), 200.0 + PAUSE.initial_s)
    assert last.allows(using(look=100 + LOOKS_AFTER), 200.0 + PAUSE.initial_s)
    again = last.after_eviction(using(look=103), 206.0).after_measurement(using(look=104), 210.0, going=False)
    assert not again.allows(using(look=200), 210.0 + 2 * PAUSE.initial_s - 0.1)
    assert again.allows(using(look=200), 210.0 + 2 * PAUSE.initial_s)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory", "'memory' is not NAME=AMOUNT"),
        ("memory=", "'memory=' is not NAME=AMOUNT"),
        ("cpu=5%", "'cpu' is none of memory, disk, inodes"),
        ("memory=0", "0 is always available"),
        ("memory=0%", "percentages are between 0% and 100%"),
        ("memory=100%", "percentages are between 0% and 100%"),
        ("memory=5%,memory=2Gi", "memory is given twice without a time"),
        ("memory=5%:1m,memory=2Gi:2m", "memory is given twice with a time"),
        ("memory=5%:0", "a time of 0 is none"),
        ("memory=5%:soon", "'soon' is not a duration"),
        ("disk=much", "'much' is not a memory size"),
    ],
)
def test_thresholds_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_thresholds(text)


@pytest.mark.parametrize(("text", "said"), [("swap=1Gi", "'swap' is none of"), ("disk=1Gi,disk=2Gi", "given twice")])
def test_a_reclaim_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_reclaim(text)


RUNS = st.lists(
    st.tuples(st.integers(0, 900), st.integers(0, 900), st.integers(-3, 3), st.floats(0, 9)), min_size=1, max_size=9
)


@given(RUNS)
def test_no_other_run_is_over_its_request_with_a_lower_priority_or_uses_more_with_the_same(
    rows: list[tuple[int, int, int, float]],
) -> None:
    runs = [candidate(f"r{n}", asked, priority, at) for n, (_, asked, priority, at) in enumerate(rows)]
    used = {run.uid: row[0] for run, row in zip(runs, rows, strict=True)}
    chosen = choose_victim(using(**used), runs)
    worth = [run for run in runs if used[run.uid] >= 4]  # a hundredth of the 400 Mi that are missing
    if chosen is None:
        assert not worth
        return
    assert chosen.victim in worth
    over = {run.uid: used[run.uid] * MI - run.requested[MEMORY] for run in worth}
    mine = chosen.victim
    for other in worth:
        if over[mine.uid] <= 0:
            assert over[other.uid] <= 0
        if (over[mine.uid] > 0) == (over[other.uid] > 0):
            assert (mine.priority, -over[mine.uid]) <= (other.priority, -over[other.uid])
    assert choose_victim(using(**used), list(reversed(runs))) == chosen


@given(st.lists(st.tuples(st.booleans(), st.floats(0.1, 30)), max_size=60))
def test_never_is_a_second_one_chosen_while_the_first_is_there_or_for_a_look_from_before_its_end(
    steps: list[tuple[bool, float]],
) -> None:
    now, last, going, ended_look = 0.0, LastEviction(), False, 0
    for look, (ends, passed) in enumerate(steps, 1):
        now += passed
        if going and ends:
            going, ended_look = False, look
        pressure = using(look=look)
        last = last.after_measurement(pressure, now, going=going)
        if last.allows(pressure, now):
            assert not going
            assert look >= ended_look + LOOKS_AFTER
            last, going = last.after_eviction(pressure, now), True
