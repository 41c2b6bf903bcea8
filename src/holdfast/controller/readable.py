"""Reads things from the store by their ids, where the damage of one must not keep the others from being read."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

A = TypeVar("A")


def read_each(
    read: Callable[[list[str]], A], keys: Sequence[str], damaged: Callable[[str, HoldfastError], None]
) -> Sequence[A]:
    """Read all at once, or one by one where that fails; returns the answers.

    Args:
        read: Reads those with some ids.
        keys: The ids.
        damaged: Called with the id of each that cannot be read, and why.

    Raises:
        Unavailable: Nothing can be read now.
    """
    try:
        return [read(list(keys))]
    except Unavailable:
        raise
    except HoldfastError as error:
        if len(keys) > 1:
            return [answer for key in keys for answer in read_each(read, [key], damaged)]
        damaged(keys[0], error)
        return ()
