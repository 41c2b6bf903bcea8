"""Reads single fields, over ``dialects.reading``, with Kubernetes' messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.domain.workloads.kubejob.model import UNLIMITED

if TYPE_CHECKING:
    from collections.abc import Sequence
    from enum import StrEnum

    from holdfast.dialects.jobset.wording import Notes
    from holdfast.dialects.reading import Fields

E = TypeVar("E", bound="StrEnum")
T = TypeVar("T")
NOT_NEGATIVE = "must be greater than or equal to 0"


def whole(fields: Fields, name: str, *, low: int = -UNLIMITED, high: int = UNLIMITED) -> int | None:
    """Read a 32-bit integer."""
    return fields.integer(name, low=low, high=high)


def count(fields: Fields, notes: Notes, name: str) -> int | None:
    """Read an integer that is not negative."""
    value = whole(fields, name)
    if value is not None and value < 0:
        notes.invalid(fields.at(name), value, NOT_NEGATIVE)
        return None
    return value


def one_of(fields: Fields, notes: Notes, name: str, options: type[E], shown: Sequence[str] = ()) -> E | None:
    """Read one of an enumeration's values, listed in its order or the one given."""
    value = fields.raw(name)
    if value is None:
        return None
    known = [option.value for option in options]
    if value not in known:
        notes.not_supported(fields.at(name), value, shown or known)
        return None
    return options(str(value))


def or_default(value: T | None, default: T) -> T:
    """Return the value, or the default when it is absent; 0 and False are values."""
    return default if value is None else value
