"""The nodes that executors have reported, and when each is due to be written to the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Node
from holdfast.domain.placement.fit import Place, PlaceKey

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.placement.fit import Capacity

NODE_WRITTEN_EVERY_S = 30.0
"""How stale the last-seen time of a live node may be in the store."""


class KnownNodes(dict[PlaceKey, Node]):
    """Every node that was ever reported, as last reported."""

    def __init__(self) -> None:
        super().__init__()
        self.engines: dict[str, EngineInfo] = {}
        """The engine of each executor, as last reported."""
        self._written_at: dict[PlaceKey, float] = {}

    def report(self, node: Node, capacity: Capacity, written: MutableMapping[PlaceKey, Node]) -> bool:
        """Record a node that was reported; returns whether its place has changed.

        An unchanged node is written only every ``NODE_WRITTEN_EVERY_S``.
        """
        key = (node.executor, node.name)
        self[key] = node
        self.engines[node.executor] = node.engine
        changed = capacity.set_place(Place(key, node.capacity, node.labels, node.engine, node.devices, node.short))
        if changed or node.seen_at - self._written_at.get(key, 0.0) >= NODE_WRITTEN_EVERY_S:
            self._written_at[key] = node.seen_at
            written[key] = node
        return changed

    def change(self, node: Node, capacity: Capacity, written: MutableMapping[PlaceKey, Node]) -> bool:
        """Record a change the controller made to a node; returns whether its place, if it has one, has changed."""
        key = (node.executor, node.name)
        if key in capacity.places:
            return self.report(node, capacity, written)
        self[key] = written[key] = node
        return False
