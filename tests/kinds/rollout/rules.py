"""What follows from how the jobs of a rollout look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.controller.workloads.owners import OwnerRules
from holdfast.domain.workloads.base import Result
from holdfast.domain.workloads.children import CreateChild, DeleteChild
from tests.kinds.rollout.model import Rollout, RolloutState, spec_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.workloads.children import Child, Order
    from tests.kinds.rollout.model import RolloutSpec

SETTLES_S = 5.0


def reconcile(
    spec: RolloutSpec, row: Rollout, children: Sequence[Child], now: float
) -> Result[RolloutState, Order, object, object]:
    """Start the newest generation, and stop the older ones when all of it has been ready for a while."""
    if spec.replicas < 0:
        message = "a rollout was rolled back beyond nothing"
        raise RuntimeError(message)
    newest = {child.name: child for child in children if child.generation == row.generation}
    wanted = [f"{row.name}-{row.generation}-{index}" for index in range(spec.replicas)]
    orders: list[Order] = [
        CreateChild(name, "replica", index, spec=spec.template)
        for index, name in enumerate(wanted)
        if name not in newest
    ]
    up_since, wake_at = None, None
    if spec.suspended:
        going = [child for child in children if child.deleting_since is None]
        return Result(state=RolloutState(), orders=tuple(DeleteChild(child.name) for child in going))
    if all(name in newest and newest[name].ready_pods for name in wanted):
        up_since = row.state.up_since or now
        older = [child.name for child in children if child.name not in newest and child.deleting_since is None]
        wake_at = up_since + SETTLES_S if older else None
        if wake_at is not None and wake_at <= now:
            orders += map(DeleteChild, older)
    return Result(state=RolloutState(up_since), orders=tuple(orders), wake_at=wake_at)


RULES = OwnerRules(Rollout, spec_of, reconcile)
