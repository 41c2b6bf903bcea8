"""The world is worth something for nodes that were tried, too: broken in named ways, the code is caught."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.controller import hopeless
from holdfast.domain.placement.fit import Place
from holdfast.domain.record import evolve
from holdfast.domain.workloads import judge
from tests.property.breaks import Break, assert_noticed
from tools.simulate.policies import UNTRIED_EVERY

if TYPE_CHECKING:
    from holdfast.domain.placement.fit import Shape


def a_retry_is_placed_anywhere(patch: pytest.MonkeyPatch) -> None:
    admits = Place.admits

    def careless(self: Place, shape: Shape) -> bool:
        return admits(self, evolve(shape, avoid_nodes=frozenset()))

    patch.setattr(Place, "admits", careless)


def only_the_last_node_is_remembered(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judge, "add_tried", lambda _, *nodes: tuple(dict.fromkeys(filter(None, nodes))))


def a_retry_waits_for_an_untried_node_that_will_never_be(patch: pytest.MonkeyPatch) -> None:
    for module in (judge, hopeless):
        patch.setattr(module, "nothing_untried", lambda *_: False)


BREAKS: dict[str, Break] = {
    "a retry is placed anywhere": (a_retry_is_placed_anywhere, {"tried-once"}, 4),
    "only the last node is remembered": (only_the_last_node_is_remembered, {"tried-once", "replay"}, 17),
    "a retry waits for an untried node that will never be": (
        a_retry_waits_for_an_untried_node_that_will_never_be,
        {"all-ends"},
        30,
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=UNTRIED_EVERY)
