"""What nodes and the cluster have, to refuse what asks for something there is not, and to warn of limits on it."""

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
    """Say which resources and GPUs of a job nobody has; nothing of nodes is said while none has reported.

    Args:
        spec: The job.
        cluster: What the whole cluster has by name.
        nodes: Lists the nodes as last reported; called only for a job that asks for such things.
    """
    if not spec.resources.named and not spec.gpus.type:
        return []
    reported = nodes()
    if not _are_known(reported):
        return []
    problems = _unknown_names(spec.resources.named, "spec.resources", _names(reported, cluster))
    return problems + _unknown_type(spec.gpus.type, reported)


def unknown_ceilings(queue: Queue, cluster: Amounts, nodes: Sequence[Node]) -> list[Problem]:
    """Say which resources that a queue limits nobody has; nothing is said while no node has reported.

    Args:
        queue: The queue.
        cluster: What the whole cluster has by name.
        nodes: The nodes as last reported.
    """
    if not _are_known(nodes):
        return []
    names = _names(nodes, cluster)
    problems = _unknown_names(queue.max_running.named, "spec.maxRunning", names)
    return problems + _unknown_names(queue.per_user.max_running.named, "spec.perUser.maxRunning", names)


def _are_known(nodes: Sequence[Node]) -> bool:
    """Whether nodes are all there is: not where none has reported, or an engine has places of its own."""
    return bool(nodes) and not any(Capability.PLACEMENT in node.engine.capabilities for node in nodes)


def _names(nodes: Sequence[Node], cluster: Amounts) -> set[str]:
    return {name for node in nodes for name, _ in node.capacity.named} | {name for name, _ in cluster}


def _unknown_names(amounts: Amounts, path: str, names_known: set[str]) -> list[Problem]:
    return [
        Problem(
            f"{path}.{name}",
            f"nobody has any {name}",
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
    hint = closest(pattern, types) or "a pattern of the name of the model: 'A100*'"
    return [Problem("spec.resources.gpu.type", f"no node has a GPU of type {pattern!r}", tuple(types), hint)]
