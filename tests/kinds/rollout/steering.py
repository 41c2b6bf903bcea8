"""What can be asked of a rollout that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import SetChange, dump_change, dump_spec, load_change, with_suspend
from holdfast.domain.audit import Act
from holdfast.domain.record import evolve
from holdfast.errors import Conflict
from holdfast.service.steering.control import OwnerSteering
from tests.kinds.rollout.model import Rollout, RolloutSpec, spec_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.ports.requests import Request
    from holdfast.service.steering.control import Control


class RolloutSteering(OwnerSteering[Rollout]):
    kind = Rollout

    def read(self, row: Rollout) -> RolloutSpec:
        return spec_of(row)

    def nothing(self, name: str) -> RolloutSpec:
        return RolloutSpec(0, name)

    def done(self, row: Rollout, request: Request) -> Rollout:
        if not request.payload or row.deleting:
            return evolve(row, deleting=True)
        change = load_change(request.payload)
        return evolve(row, manifest=change.manifest, spec=change.spec, generation=row.generation + 1)

    def allow(self, control: Control[Rollout], act: Act, row: Rollout, what: Mapping[str, Any]) -> str | None:
        del control, what
        if act in {Act.DELETE, Act.CANCEL}:
            return None if row.deleting else ""
        suspended = {Act.SUSPEND: True, Act.RESUME: False}.get(act)
        if suspended is None or row.deleting:
            message = f"rollout {row.name!r} cannot be asked to {act}: it is {row.phase(None)}"
            raise Conflict(message)
        spec = evolve(spec_of(row), suspended=suspended)
        change = SetChange(with_suspend(row.manifest or "{}", suspend=suspended), dump_spec(spec))
        return None if spec == spec_of(row) else dump_change(change)


STEERING = RolloutSteering()
