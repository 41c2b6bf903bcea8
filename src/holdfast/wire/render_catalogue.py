"""Renders nodes and their GPUs as wire models; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.containers import Capability
from holdfast.domain.devices import WHOLE_M
from holdfast.domain.job import Resources
from holdfast.domain.units import format_memory
from holdfast.wire.base import timestamp
from holdfast.wire.catalogue import DeviceUser, DeviceView, NodeView
from holdfast.wire.render_jobs import resources_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.devices import Device
    from holdfast.domain.job import Node, Run
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.domain.shortage import Short


def node_views(nodes: Sequence[Node], running: Iterable[Run], cordons: Mapping[str, Cordon]) -> list[NodeView]:
    """Render nodes with what is in use on them, and whether they get work."""
    used: dict[tuple[str, str], list[Resources]] = {}
    whole = {node.executor: node.name for node in nodes if Capability.PLACEMENT in node.engine.capabilities}
    for run in running:
        used.setdefault((run.executor, whole.get(run.executor, run.node)), []).append(run.request)
    ordered = sorted(nodes, key=lambda node: (node.executor, node.name))
    return [_node_view(node, used.get((node.executor, node.name), []), cordons.get(node.name)) for node in ordered]


def _node_view(node: Node, used: Sequence[Resources], cordon: Cordon | None) -> NodeView:
    return NodeView(
        name=node.name,
        executor=node.executor,
        capacity=resources_view(node.capacity),
        used=resources_view(sum(used, Resources(0))),
        runs=len(used),
        labels=dict(node.labels),
        seen_at=timestamp(node.seen_at),
        engine=node.engine.name,
        capabilities=sorted(node.engine.capabilities),
        state=_node_state(cordon, node.short, empty=not used),
        reason=_node_reason(node.short) if cordon is None else cordon.reason,
    )


def _node_state(cordon: Cordon | None, short: Short | None, *, empty: bool) -> str:
    if cordon is None:
        return "Ready" if short is None else "Short"
    if not cordon.drain:
        return "Cordoned"
    return "Drained" if empty else "Draining"


def _node_reason(short: Short | None) -> str:
    return "" if short is None else f"{short.of.words} since {timestamp(short.since)}: {short.message}"


def device_views(nodes: Sequence[Node], running: Iterable[Run], names: Mapping[str, str]) -> list[DeviceView]:
    """Render the GPUs of nodes with their users; ``names`` are those of jobs, by id."""
    users: dict[tuple[str, str, str], list[DeviceUser]] = {}
    for run in running:
        share = (run.request.share_m or WHOLE_M) / WHOLE_M
        for device in run.devices:
            user = DeviceUser(job=run.job_id, name=names.get(run.job_id, run.job_id), uid=run.uid, share=share)
            users.setdefault((run.executor, run.node, device), []).append(user)
    ordered = sorted(nodes, key=lambda node: (node.executor, node.name))
    return [
        _device_view(node, device, users.get((node.executor, node.name, device.id), []))
        for node in ordered
        for device in node.devices
    ]


def _device_view(node: Node, device: Device, users: list[DeviceUser]) -> DeviceView:
    used = round(sum(user.share for user in users), 3)
    state = "Free" if not users else "InUse" if used >= 1 else "Shared"
    if device.trouble:
        state = "Cordoned" if device.cordon is not None else "Unhealthy" if device.health else "Foreign"
    return DeviceView(
        id=device.id,
        node=node.name,
        executor=node.executor,
        index=device.index,
        type=device.type,
        memory=format_memory(device.memory),
        maker=device.maker,
        state=state,
        reason=device.trouble,
        cordoned_at=None if device.cordon is None else timestamp(device.cordon.at),
        used=used,
        runs=users,
    )
