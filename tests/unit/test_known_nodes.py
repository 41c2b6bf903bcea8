"""Known nodes: when what is known of one is written, and whether its place has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Node, Resources
from holdfast.domain.placement.fit import Capacity
from holdfast.domain.placement.nodes import NODE_WRITTEN_EVERY_S, KnownNodes
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from holdfast.domain.placement.fit import PlaceKey

KEY = ("executor", "node")
NODE = Node("node", "executor", Resources(4000), seen_at=1000.0)


def test_a_node_that_does_not_change_is_written_only_now_and_then() -> None:
    known, capacity = KnownNodes(), Capacity()
    written_at = []
    for seen_at in (0.0, 1.0, NODE_WRITTEN_EVERY_S - 1.0, NODE_WRITTEN_EVERY_S, NODE_WRITTEN_EVERY_S + 1.0):
        written: dict[PlaceKey, Node] = {}
        known.report(evolve(NODE, seen_at=NODE.seen_at + seen_at), capacity, written)
        written_at += [seen_at] if written else []

    assert written_at == [0.0, NODE_WRITTEN_EVERY_S]


def test_a_node_that_has_changed_is_written_at_once() -> None:
    known, capacity = KnownNodes(), Capacity()
    known.report(NODE, capacity, {})
    smaller = evolve(NODE, capacity=Resources(2000))
    written: dict[PlaceKey, Node] = {}

    assert known.report(smaller, capacity, written)
    assert not known.report(smaller, capacity, {})
    assert (written, capacity.places[KEY].capacity) == ({KEY: smaller}, Resources(2000))


def test_what_is_changed_of_a_node_that_is_away_is_written_and_gives_it_no_place() -> None:
    known, capacity = KnownNodes(), Capacity()
    known.update({KEY: NODE})
    changed = evolve(NODE, capacity=Resources(2000))
    written: dict[PlaceKey, Node] = {}

    assert not known.change(changed, capacity, written)
    assert (written, known[KEY], capacity.places) == ({KEY: changed}, changed, {})
