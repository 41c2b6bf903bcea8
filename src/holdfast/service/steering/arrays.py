"""The rules for cancelling, holding, releasing and deleting arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.compiled.codec import load_array, load_change
from holdfast.domain.audit import Act
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array, ArraySpec
from holdfast.domain.workloads.dependencies import CANCELLED
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import Conflict, NotFound
from holdfast.ports.requests import RequestKind
from holdfast.service.steering.control import OwnerSteering

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.ports.requests import Request
    from holdfast.ports.store import Store
    from holdfast.service.steering.control import Control


class ArraySteering(OwnerSteering[Array]):
    """Arrays are cancelled, held, released and deleted."""

    kind = Array

    def find(self, store: Store, reference: str, act: Act) -> Array:
        """Find an array with all pending requests applied."""
        try:
            return super().find(store, reference, act)
        except NotFound:
            raise no_such_array(reference) from None

    def read(self, row: Array) -> ArraySpec:
        """Read an array's specification."""
        return load_array(row.spec)

    def nothing(self, name: str) -> ArraySpec:
        """Return the specification that stands in for a damaged one."""
        return ArraySpec(JobSpec(name, command=()))

    def done(self, row: Array, request: Request) -> Array:
        """Apply a request to an array as the controller does."""
        state = row.state
        if request.kind is RequestKind.DELETE:
            return evolve(row, deleting=True)
        if request.kind is RequestKind.CANCEL and not (row.ended or state.stopping):
            return evolve(row, state=evolve(state, stopping=CANCELLED))
        if request.kind in {RequestKind.HOLD, RequestKind.RELEASE}:
            held = request.reason or "held by a user"
            return evolve(row, state=evolve(state, held=held if request.kind is RequestKind.HOLD else ""))
        return evolve(row, spec=load_change(request.payload).spec) if request.kind is RequestKind.UPDATE else row

    def allow(self, control: Control[Array], act: Act, row: Array, what: Mapping[str, Any]) -> str | None:
        """Check that an array may be cancelled, held, released or deleted."""
        del what
        if act is Act.DELETE:
            return None if row.deleting else ""
        if act is Act.CANCEL and row.ended:
            msg = f"array {row.name!r} has already ended: {row.ended}"
            raise Conflict(msg)
        if act is Act.HOLD:
            require_going_on(row, "it cannot be held")
            return None if row.state.held else ""
        if act is Act.RELEASE:
            require_going_on(row, "it cannot be released")
            if not row.state.held and row.id not in control.store.quarantined():
                msg = f"array {row.name!r} is {row.phase(self.read(row))}: only a held array can be released"
                raise Conflict(msg)
        return ""


ARRAYS = ArraySteering()


def require_going_on(row: Array, otherwise: str) -> None:
    """Check that an array has not ended and is not about to.

    Raises:
        Conflict: It has ended, or is stopping or being deleted.
    """
    if row.ended or row.deleting or row.state.stopping:
        msg = f"array {row.name!r} is {row.phase(load_array(row.spec))}: {otherwise}"
        raise Conflict(msg)


def no_such_array(reference: str) -> NotFound:
    """Return the error for an array that does not exist."""
    return NotFound(f"array {reference!r} does not exist", hint="holdfast get arrays")
