"""What a queue takes in: tables, and that no minute ever has more submissions than its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.job import Queue, UserLimits
from holdfast.domain.placement.intake import WINDOW_S, Incoming, Load, exceeded_limits, recent_submissions

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_000.0


@pytest.mark.parametrize(
    ("most", "waiting", "jobs", "refused"),
    [(3, 0, 3, False), (3, 0, 4, True), (3, 2, 1, False), (3, 3, 1, True), (0, 0, 1, True), (None, 10**9, 1, False)],
)
def test_jobs_wait_up_to_the_limit(most: int | None, waiting: int, jobs: int, refused: bool) -> None:  # noqa: FBT001 - a table
    for queue, user in ((Queue("q", max_queued=most), None), (Queue("q", per_user=UserLimits(max_queued=most)), "ann")):
        found = exceeded_limits(queue, user, Load(waiting), Incoming(jobs, 1), NOW)
        assert bool(found) is refused
        assert all(one.again_in_s is None for one in found)


@pytest.mark.parametrize(
    ("taken", "submissions", "again_in_s"),
    [
        ([], 3, None),
        ([(NOW - 10, 2)], 1, None),
        ([(NOW - 10, 3)], 1, 50.0),
        ([(NOW - 50, 1), (NOW - 10, 2)], 1, 10.0),
        ([(NOW - 50, 1), (NOW - 10, 2)], 2, 50.0),
        ([(NOW - WINDOW_S, 3)], 3, None),
        ([(NOW + 5, 3)], 1, 65.0),
        ([(NOW + 3600, 3)], 3, None),
    ],
)
def test_a_minute_has_room_again_when_enough_of_it_has_passed(
    taken: list[tuple[float, int]], submissions: int, again_in_s: float | None
) -> None:
    found = exceeded_limits(Queue("q", submissions_per_minute=3), None, Load(0, taken), Incoming(1, submissions), NOW)
    assert [one.again_in_s for one in found] == ([] if again_in_s is None else [again_in_s])


def test_more_at_once_than_a_minute_may_have_never_has_room() -> None:
    (found,) = exceeded_limits(Queue("q", submissions_per_minute=3), None, Load(), Incoming(4, 4), NOW)
    assert (found.again_in_s, found.most) == (None, 3)
    assert found.message == (
        "queue q accepts 3 submissions a minute: 0 were accepted in the last minute, and this adds 4"
    )


def test_both_limits_are_told_together_and_whose_they_are() -> None:
    queue = Queue("q", per_user=UserLimits(max_queued=1, submissions_per_minute=1))
    found = exceeded_limits(queue, "ann", Load(1, [(NOW, 1)]), Incoming(2, 1), NOW)
    assert [(one.field, one.message) for one in found] == [
        ("perUser.maxQueued", "queue q lets at most 1 jobs of ann wait: 1 wait, and this adds 2"),
        (
            "perUser.submissionsPerMinute",
            "queue q accepts 1 submissions of ann a minute: 1 were accepted in the last minute, and this adds 1",
        ),
    ]


@given(
    st.integers(0, 5),
    st.lists(st.tuples(st.floats(0.0, 40.0), st.integers(1, 4)), max_size=30),
)
def test_no_minute_has_more_submissions_than_the_limit_and_who_waits_as_told_gets_in(
    most: int, steps: Sequence[tuple[float, int]]
) -> None:
    queue, now, taken = Queue("q", submissions_per_minute=most), 0.0, list[tuple[float, int]]()
    for later, count in steps:
        now += later
        found = exceeded_limits(queue, None, Load(0, taken), Incoming(count, count), now)
        if found and found[0].again_in_s is not None:
            now += found[0].again_in_s + 1e-6
            found = exceeded_limits(queue, None, Load(0, taken), Incoming(count, count), now)
            assert not found
        if not found:
            taken.append((now, count))
        assert sum(count for at, count in taken if now - WINDOW_S < at <= now) <= most


@given(st.lists(st.tuples(st.floats(-1e5, 1e5), st.integers(1, 4)), max_size=20), st.floats(-1e5, 1e5))
def test_a_clock_that_is_set_back_keeps_nobody_out_for_longer_than_two_minutes(
    taken: list[tuple[float, int]], now: float
) -> None:
    assert not recent_submissions(recent_submissions(taken, now), now + 2 * WINDOW_S)
