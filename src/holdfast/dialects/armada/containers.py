"""Spreads a job's grown memory over the containers of its pod, the way Armada's scheduler does."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import MemoryGrowth


@dataclass(frozen=True, slots=True)
class ContainerMemory:
    """One container's memory request."""

    name: str
    memory: int | None
    """Bytes; ``None`` asks for none and is left alone."""
    init: bool = False


def grow_containers(containers: Sequence[ContainerMemory], growth: MemoryGrowth) -> list[ContainerMemory]:
    """Grow every container that asks for memory, rounding down.

    A factor applies to each. A static amount is shared among the main containers in proportion to their
    memory; each init container gets all of it, because init containers run alone.
    """
    total = sum(container.memory or 0 for container in containers if not container.init)
    return [_grown(container, growth, total) for container in containers]


def _grown(container: ContainerMemory, growth: MemoryGrowth, total: int) -> ContainerMemory:
    if not container.memory:
        return container
    memory = container.memory
    if growth.factor is not None:
        grown = int(memory * Fraction(str(growth.factor)))
    else:
        share = 1 if container.init else Fraction(memory, total)
        grown = memory + int((growth.static or 0) * share)
    limit = max(memory, growth.max) if growth.max is not None else grown
    return ContainerMemory(container.name, min(grown, limit), container.init)
