"""Gives callers who ask for something of one workload at the same moment their turns, in the order of its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeVar

from holdfast.errors import AlreadyExists, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Versions: TypeAlias = "frozenset[str] | None"
"""Resource versions, one of which a workload must have; ``None``: any."""
_MOST_TRIES = 100
"""Somebody gets through in each round, so only as many others could use them up."""


def in_order(ask: Callable[[], T], versions: Versions = None) -> T:
    """Ask for something; when somebody else came in between, look again and ask again.

    Raises:
        VersionConflict: Somebody else did, and the caller named the version it must have; or very many others did.
    """
    for _ in range(_MOST_TRIES):
        try:
            return ask()
        except AlreadyExists:
            continue
        except VersionConflict:
            if versions is not None:
                raise
    return ask()
