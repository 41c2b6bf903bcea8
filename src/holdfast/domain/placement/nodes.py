"""Which nodes there are and were, and when what is known of one is due to be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import Node
from holdfast.domain.placement.fit import Place, PlaceKey

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.placement.fit import Capacity

NODE_WRITTEN_EVERY_S = 30.0
"""How stale the last-seen time of a live node may be where people read it."""


class KnownNodes(dict[PlaceKey, Node]):
    """Every node that was ever reported, as it was last."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()
        self.engines: dict[str, EngineInfo] = {}
        """What each executor runs things with, as it last said."""
        self._written_at: dict[PlaceKey, float] = {}

    def report(self, node: Node, capacity: Capacity, written: MutableMapping[PlaceKey, Node]) -> bool:
        """Take in a node that is there; returns whether its place has changed.

        One that has not changed is written only now and then.
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
        """Take in what was changed of a node here; returns whether its place, if it has one, has changed."""
        key = (node.executor, node.name)
        if key in capacity.places:
            return self.report(node, capacity, written)
        self[key] = written[key] = node
        return False
