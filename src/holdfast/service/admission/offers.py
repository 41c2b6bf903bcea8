"""What nodes and the cluster have, to refuse what asks for something there is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.dialects.native.resources import OFFERED
from holdfast.domain.containers import Capability
from holdfast.domain.devices import is_of_type
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.job import Amounts, Node
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
    if not reported or any(Capability.PLACEMENT in node.engine.capabilities for node in reported):
        return []
    known = {name for node in reported for name, _ in node.capacity.named} | {name for name, _ in cluster}
    problems = [
        Problem(
            f"spec.resources.{name}", f"nobody has any {name}", tuple(sorted(known)), closest(name, known) or OFFERED
        )
        for name, _ in spec.resources.named
        if name not in known
    ]
    return problems + _unknown_type(spec.gpus.type, reported)


def _unknown_type(pattern: str, nodes: Sequence[Node]) -> list[Problem]:
    devices = [device for node in nodes for device in node.devices]
    if not pattern or not devices or any(is_of_type(device, pattern) for device in devices):
        return []
    types = sorted({device.type for device in devices if device.type})
    hint = closest(pattern, types) or "a pattern of the name of the model: 'A100*'"
    return [Problem("spec.resources.gpu.type", f"no node has a GPU of type {pattern!r}", tuple(types), hint)]
