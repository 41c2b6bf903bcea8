"""Turns nodes into wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.containers import Capability
from holdfast.domain.job import Resources
from holdfast.wire.base import timestamp
from holdfast.wire.catalogue import NodeView
from holdfast.wire.render_jobs import resources_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.job import Node, Run


def node_views(nodes: Sequence[Node], running: Iterable[Run]) -> list[NodeView]:
    """Show nodes with what is in use on them."""
    used: dict[tuple[str, str], list[Resources]] = {}
    whole = {node.executor: node.name for node in nodes if Capability.PLACEMENT in node.engine.capabilities}
    for run in running:
        used.setdefault((run.executor, whole.get(run.executor, run.node)), []).append(run.request)
    ordered = sorted(nodes, key=lambda node: (node.executor, node.name))
    return [_node_view(node, used.get((node.executor, node.name), [])) for node in ordered]


def _node_view(node: Node, used: Sequence[Resources]) -> NodeView:
    return NodeView(
        name=node.name,
        executor=node.executor,
        capacity=resources_view(node.capacity),
        used=resources_view(sum(used, Resources(0, 0, 0))),
        runs=len(used),
        labels=dict(node.labels),
        seen_at=timestamp(node.seen_at),
        engine=node.engine.name,
        capabilities=sorted(node.engine.capabilities),
    )
