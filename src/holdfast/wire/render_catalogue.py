"""Turns nodes, settings and their parts into wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.domain.spec import Resources
from holdfast.domain.units import format_duration, parse_duration
from holdfast.wire.base import timestamp
from holdfast.wire.catalogue import NodeView, SettingsView
from holdfast.wire.render_jobs import resources_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.job import Node, Run
    from holdfast.domain.policy.model import Backoff, RetrySettings


def node_views(nodes: Sequence[Node], running: Iterable[Run]) -> list[NodeView]:
    """Show nodes with what is in use on them."""
    used: dict[tuple[str, str], list[Resources]] = {}
    for run in running:
        used.setdefault((run.executor, run.node), []).append(run.request)
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
    )


def settings_view(settings: RetrySettings, default_policy: str | None) -> SettingsView:
    """Show the operator's settings as they may be sent back."""
    return SettingsView(
        globalMaxRetries=settings.global_max_retries,
        defaultBackoff=backoff_spec(settings.default_backoff),
        defaultPolicyName=default_policy,
    )


def backoff_spec(backoff: Backoff) -> dict[str, Any]:
    """Write a back-off as manifests do; durations are text where that is exact, else seconds."""
    return {
        "initialDelay": _exact_duration(backoff.initial_s),
        "maxDelay": None if backoff.max_s is None else _exact_duration(backoff.max_s),
        "multiplier": backoff.multiplier,
        "jitter": str(backoff.jitter),
        "jitterRatio": backoff.jitter_ratio,
    }


def _exact_duration(seconds: float) -> str | float:
    text = format_duration(seconds)
    return text if parse_duration(text) == seconds else seconds
