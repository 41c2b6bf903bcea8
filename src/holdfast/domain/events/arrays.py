"""What happens to arrays."""

from __future__ import annotations

from holdfast.domain.record import Struct


class ArrayEnded(Struct, frozen=True):
    """An array is over; final."""

    array: str
    name: str
    outcome: str
    """``Succeeded``, ``Failed`` or ``Cancelled``."""
    succeeded: int
    """Number of tasks that did."""
    failed: int
    cancelled: int
    reason: str


class ArrayDeleted(Struct, frozen=True):
    """An array was deleted; its tasks are kept."""

    array: str
    name: str


ArrayEvent = ArrayEnded | ArrayDeleted
