"""The places of this machine: its nodes, with labels for how runs are limited there."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Any

from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.ports.engine import NodeInfo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEMORY_LABEL = "holdfast.dev/memory"
"""Node label for how memory limits are enforced: ``cgroup-v2``, ``cgroup-v1`` or ``rss`` (watched)."""
PIDS_LABEL = "holdfast.dev/pids"
"""Node label for how the number of processes of a run is limited: ``cgroup-v2``, ``cgroup-v1`` or ``none``."""
CONTAINMENT_LABEL = "holdfast.dev/containment"
"""Node label for what a run cannot escape: ``cgroup-v2``, ``cgroup-v1``, or ``supervisor``, which can be killed."""
HOSTNAME_LABEL = "kubernetes.io/hostname"
"""Node label with the node's name, as in Kubernetes, for node selectors and exclusive topologies."""


def default_nodes(count: int = 1) -> tuple[NodeInfo, ...]:
    """Describe this machine as one node, or for trials as several nodes that each have all of it."""
    host = socket.gethostname().split(".")[0].lower() or "local"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    capacity = Resources(cpu_m=(os.cpu_count() or 1) * 1000, memory=memory)
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    return tuple(NodeInfo(name, capacity, {HOSTNAME_LABEL: name}) for name in names)


def labelled(nodes: Sequence[NodeInfo], hello: Mapping[str, Any]) -> tuple[NodeInfo, ...]:
    """Return nodes with labels from a shim's greeting."""
    ways = {
        MEMORY_LABEL: hello["memory"],
        PIDS_LABEL: hello.get("pids", "none"),
        CONTAINMENT_LABEL: hello.get("containment", "none"),
    }
    return tuple(evolve(node, labels={**node.labels, **ways}) for node in nodes)
