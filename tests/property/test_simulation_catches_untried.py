"""The world is worth something for nodes that were tried, too: broken in named ways, the code is caught."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.controller import hopeless
from holdfast.domain.placement.fit import Place
from holdfast.domain.record import evolve
from holdfast.domain.workloads import judge
from tools.simulate.policies import FIRST_UNTRIED, UNTRIED_EVERY
from tools.simulate.run import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.placement.fit import Shape

SEEDS = 40


def a_retry_is_placed_anywhere(patch: pytest.MonkeyPatch) -> None:
    admits = Place.admits

    def careless(self: Place, shape: Shape) -> bool:
        return admits(self, evolve(shape, avoid_nodes=frozenset()))

    patch.setattr(Place, "admits", careless)


def only_the_last_node_is_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judge, "and_tried", lambda _, *nodes: tuple(dict.fromkeys(filter(None, nodes))))


def a_retry_waits_for_an_untried_node_that_will_never_be(patch: pytest.MonkeyPatch) -> None:
    for module in (judge, hopeless):
        patch.setattr(module, "nothing_untried", lambda *_: False)


BREAKS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], set[str]]] = {
    "a retry is placed anywhere": (a_retry_is_placed_anywhere, {"tried-once"}),
    "only the last node is remembered": (only_the_last_node_is_remembered, {"tried-once", "replay"}),
    "a retry waits for an untried node that will never be": (
        a_retry_waits_for_an_untried_node_that_will_never_be,
        {"all-ends"},
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    break_it, expected = BREAKS[name]
    break_it(monkeypatch)
    for seed in range(FIRST_UNTRIED, FIRST_UNTRIED + SEEDS * UNTRIED_EVERY, UNTRIED_EVERY):
        report = simulate(seed)
        if report.broken:
            assert report.broken in expected, report.message
            return
    pytest.fail(f"{SEEDS} seeds saw nothing wrong")


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SEEDS, SEEDS + 60, 20))
def test_it_holds_in_many_such_worlds(first: int) -> None:
    for number in range(first, first + 20):
        report = simulate(FIRST_UNTRIED + number * UNTRIED_EVERY)
        assert not report.broken, report.message
