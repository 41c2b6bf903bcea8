"""Copies frozen records with changes, in about half the time ``dataclasses.replace`` takes.

A restart of many jobs copies some twenty records for each, a tenth of its work. Type checkers see
``dataclasses.replace``, and so report unknown fields and wrong types.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from dataclasses import replace as evolve
else:

    def evolve(record: Any, **changes: Any) -> Any:  # noqa: ANN401 - of any of its fields
        """Return a copy of a record with some fields changed.

        Args:
            record: A dataclass of at least two fields, all accepted by position by its ``__init__``.
            changes: New values by field.

        Raises:
            KeyError: It has no such field.
        """
        values_of, places = _shape(type(record))
        values = list(values_of(record))
        for name, value in changes.items():
            values[places[name]] = value
        return type(record)(*values)


__all__ = ["evolve"]


@cache
def _shape(kind: type) -> tuple[Callable[[Any], tuple[Any, ...]], Mapping[str, int]]:
    names = [field.name for field in fields(kind)]
    return attrgetter(*names), dict(zip(names, range(len(names)), strict=True))
