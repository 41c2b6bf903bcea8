"""Refuses requests for resources that no node has, and warns of limits on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.native.resources import OFFERED
from holdfast.domain.containers import Capability
from holdfast.domain.devices import is_of_type
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.job import Amounts, Node, Queue
    from holdfast.domain.workloads.spec import JobSpec


def unknown_resources(spec: JobSpec, cluster: Amounts, nodes: Callable[[], Sequence[Node]]) -> list[Problem]:
    """Report the resources and GPUs of a job that no node has. Reports nothing while no node has reported.

    Args:
        spec: The job.
        cluster: Resources of the cluster as a whole, by name.
        nodes: Lists the nodes as last reported; called only for a job that requests such resources.
    """
    if not spec.resources.named and not spec.gpus.type:
        return []
    reported = nodes()
    if not _are_known(reported):
        return []
    problems = _unknown_names(spec.resources.named, "spec.resources", _names(reported, cluster))
    return problems + _unknown_type(spec.gpus.type, reported)


def unknown_ceilings(queue: Queue, cluster: Amounts, nodes: Sequence[Node]) -> list[Problem]:
    """Report the resources limited by a queue that no node has. Reports nothing while no node has reported.

    Args:
        queue: The queue.
        cluster: Resources of the cluster as a whole, by name.
        nodes: The nodes as last reported.
    """
    if not _are_known(nodes):
        return []
    names = _names(nodes, cluster)
    problems = _unknown_names(queue.max_running.named, "spec.maxRunning", names)
    return problems + _unknown_names(queue.per_user.max_running.named, "spec.perUser.maxRunning", names)


def _are_known(nodes: Sequence[Node]) -> bool:
    """Whether the nodes offer all there is: not before one has reported, nor where an engine places runs itself."""
    return bool(nodes) and not any(Capability.PLACEMENT in node.engine.capabilities for node in nodes)


def _names(nodes: Sequence[Node], cluster: Amounts) -> set[str]:
    return {name for node in nodes for name, _ in node.capacity.named} | {name for name, _ in cluster}


def _unknown_names(amounts: Amounts, path: str, names_known: set[str]) -> list[Problem]:
    return [
        Problem(
            f"{path}.{name}",
            f"no node has any {name}",
            tuple(sorted(names_known)),
            closest(name, names_known) or OFFERED,
        )
        for name, _ in amounts
        if name not in names_known
    ]


def _unknown_type(pattern: str, nodes: Sequence[Node]) -> list[Problem]:
    devices = [device for node in nodes for device in node.devices]
    if not pattern or not devices or any(is_of_type(device, pattern) for device in devices):
        return []
    types = sorted({device.type for device in devices if device.type})
    hint = closest(pattern, types) or "use a pattern of the model's name: 'A100*'"
    return [Problem("spec.resources.gpu.type", f"no node has a GPU of type {pattern!r}", tuple(types), hint)]
