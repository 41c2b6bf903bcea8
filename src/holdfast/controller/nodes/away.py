"""Nodes that are gone and may come back: their machine restarts, or the network is down for a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.placement.fit import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Node

MAY_COME_BACK_S = 600.0
"""A node that nobody has heard of for longer is gone for good."""


class Away:
    """Which nodes are gone and may come back; looked for once per tick, and only where any is gone."""

    def __init__(self, state: ControllerState) -> None:
        """Remember the state."""
        self._state = state
        self._found: tuple[float, Sequence[Place]] = (float("-inf"), ())

    def places(self, now: float) -> Sequence[Place]:
        """Return them; one from before this controller has its whole time from the start of that."""
        nodes, there = self._state.nodes, self._state.capacity.places
        if len(nodes) <= len(there):
            return ()
        if self._found[0] != now:
            gone = [node for key, node in nodes.items() if key not in there and self._may(node, now)]
            self._found = now, [*map(_place, gone)]
        return self._found[1]

    def _may(self, node: Node, now: float) -> bool:
        return now - self._state.since(node.seen_at) < MAY_COME_BACK_S


def _place(node: Node) -> Place:
    return Place((node.executor, node.name), node.capacity, node.labels, node.engine, node.devices, node.short)
