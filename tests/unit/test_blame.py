"""What losses of places say against a job: which of them count, and how strong that is."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.policy.blame import CHANCE, Loss, add_loss, find_suspicion, make_loss
from holdfast.domain.policy.decide import delay_s

if TYPE_CHECKING:
    from collections.abc import Sequence

NODE = frozenset({"a"})


def lost(at: float, nodes: frozenset[str] = NODE, /, **ran: float) -> Loss:
    return make_loss("e", at, ran, nodes)


def remembered(*each: Loss) -> tuple[Loss, ...]:
    nothing: tuple[Loss, ...] = ()
    return reduce(add_loss, each, nothing)


THREE = (lost(100, j=1, x=50), lost(200, j=1, y=90), lost(300, j=1, x=90))
"""At each of them ``j`` had come a moment before, and somebody else long before."""


def test_a_job_that_came_just_before_every_loss_is_suspect_and_the_others_are_not() -> None:
    found = find_suspicion(THREE, "j")
    assert found is not None
    assert (found.others, found.rivals, found.nodes) == ((1, 1, 1), 0, ("a",))
    assert (found.ran_s, found.watched_s) == (2.0, 180.0)
    assert found.chance == pytest.approx((2 / 180) ** 2)
    assert found.is_to_blame
    assert (find_suspicion(THREE, "x"), find_suspicion(THREE, "y")) == (None, None)


def test_two_losses_are_no_reason_for_suspicion() -> None:
    assert find_suspicion(THREE[:2], "j") is None


def test_a_loss_of_the_place_without_the_job_clears_it() -> None:
    assert find_suspicion([*THREE, lost(400, x=5), *(lost(at, j=1, x=50) for at in (500, 600))], "j") is None


def test_what_other_places_lost_meanwhile_clears_nobody() -> None:
    elsewhere = lost(250, frozenset({"b"}), z=9, y=9)
    found = find_suspicion([*THREE[:2], elsewhere, THREE[2]], "j")
    assert found is not None
    assert len(found.others) == 3


def test_a_job_that_goes_from_node_to_node_takes_its_losses_along() -> None:
    nodes = [frozenset({name}) for name in "abc"]
    found = find_suspicion([lost(at, node, j=1, x=50) for at, node in zip((100, 200, 300), nodes, strict=True)], "j")
    assert found is not None
    assert found.nodes == ("a", "b", "c")
    assert "losses of nodes a, b and c" in found.in_words()


def test_losses_that_took_nobody_else_are_no_reason_alone_but_count_with_others() -> None:
    alone = [lost(at, j=1) for at in (100, 200, 300, 400)]
    assert find_suspicion(alone, "j") is None
    found = find_suspicion([*THREE, lost(400, j=1)], "j")
    assert found is not None
    assert found.others == (1, 1, 1, 0)


def test_jobs_that_were_always_together_are_told_apart_by_nobody() -> None:
    found = find_suspicion([lost(at, j=1, k=1, x=80) for at in (100, 200, 300, 400)], "j")
    assert found is not None
    assert found.rivals == 2
    assert not found.is_to_blame


@pytest.mark.parametrize("ran_s", [90.0, 3600.0])
def test_a_job_that_was_there_most_of_the_time_may_have_been_there_by_chance(ran_s: float) -> None:
    found = find_suspicion([lost(at * 100.0, j=ran_s, x=95) for at in range(1, 9)], "j")
    assert found is not None
    assert found.chance > CHANCE
    assert not found.is_to_blame


def test_time_in_which_nobody_was_seen_to_be_there_says_nothing() -> None:
    """Between the losses the place may have been lost a hundred times, for all anybody knows."""
    found = find_suspicion([lost(at * 1000.0, j=1, x=1) for at in range(1, 9)], "j")
    assert found is not None
    assert found.chance == 1.0


def test_suspects_stay_away_for_longer_than_they_ran_and_do_not_come_back_together() -> None:
    found = find_suspicion([lost(at, j=20, x=50) for at in (100, 200, 300)], "j")
    assert found is not None
    away = [delay_s(found.absence, 3, seed=f"job-{i}") for i in range(100)]
    assert 80.0 <= min(away) < max(away) <= 160.0
    assert len(set(away)) > 90


def test_nobody_stays_away_for_longer_than_an_hour() -> None:
    found = find_suspicion([lost(at * 1e6, j=9e5, x=9e5) for at in (1, 2, 3)], "j")
    assert found is not None
    assert 1800.0 <= delay_s(found.absence, 3, seed="j") <= 3600.0


def test_parts_of_one_loss_are_one() -> None:
    first, second = lost(100, j=5, x=50), make_loss("e", 101.5, {"y": 20.0, "j": 6.0}, frozenset({"b"}))
    [both] = remembered(first, second)
    assert dict(both.jobs) == {"j": 6.0, "x": 50.0, "y": 20.0}
    assert (both.at, both.job_count, sorted(both.nodes)) == (100, 3, ["a", "b"])
    assert len(remembered(first, lost(110, y=20))) == 2


def test_a_job_that_came_back_and_was_lost_again_at_once_was_lost_twice() -> None:
    assert len(remembered(lost(100, j=5, x=50), lost(103, j=1, x=1))) == 2


def test_no_more_is_remembered_than_is_looked_at() -> None:
    many = {f"job-{number:04}": float(number) for number in range(1000)}
    one = make_loss("e", 5000, many, NODE)
    assert (len(one.jobs), one.job_count, one.longest_s) == (256, 1000, 999.0)
    assert max(one.jobs.values()) == 255.0
    assert len(remembered(*(lost(at * 100, j=1, x=50) for at in range(100)))) == 12


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((5, 7, 4), "the last 3 losses of node a, which took 5, 7 and 4 other jobs with it"),
        ((9, 9, 9, 5, 7, 4, 3), "the last 7 losses of node a, which lately took 9, 5, 7, 4 and 3 other jobs with it"),
    ],
)
def test_a_suspicion_is_said_with_its_numbers(numbers: Sequence[int], words: str) -> None:
    each = [lost(at * 100.0, j=1, **{f"o{i}": 50.0 for i in range(n)}) for at, n in enumerate(numbers, 1)]
    found = find_suspicion(each, "j")
    assert found is not None
    assert found.in_words() == f"was running at each of {words}"
    assert found.evidence().startswith("although it ran for only ")


def test_a_place_without_a_name_is_its_executor() -> None:
    found = find_suspicion(
        [make_loss("cloud", at, {"j": 1.0, "x": 50.0}, frozenset({""})) for at in (100, 200, 300)], "j"
    )
    assert found is not None
    assert "losses of executor cloud" in found.in_words()
