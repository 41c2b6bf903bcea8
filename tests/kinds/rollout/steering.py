"""What can be asked of a rollout that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_change
from holdfast.domain.audit import Act
from holdfast.domain.record import evolve
from holdfast.errors import Conflict
from holdfast.ports.requests import RequestKind
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
        if request.kind is not RequestKind.UPDATE or row.deleting:
            return evolve(row, deleting=row.deleting or request.kind is RequestKind.DELETE)
        change = load_change(request.payload)
        return evolve(row, manifest=change.manifest, spec=change.spec, generation=row.generation + 1)

    def allow(self, control: Control[Rollout], act: Act, row: Rollout, what: Mapping[str, Any]) -> str | None:
        del control, what
        if act is not Act.DELETE:
            message = f"rollout {row.name!r} can only be deleted"
            raise Conflict(message)
        return None if row.deleting else ""


STEERING = RolloutSteering()
