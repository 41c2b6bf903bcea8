"""Renews in a forked process what it cannot share with its parent: connections, locks, threads and futures.

Two processes on one connection read each other's answers, a lock that another thread held at the fork is never
released in the child, and no thread but the one that forked goes on there.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_renewals: WeakKeyDictionary[object, Callable[..., object]] = WeakKeyDictionary()


def after_fork(owner: T, renew: Callable[[T], object]) -> None:
    """Call ``renew(owner)`` in each process that is forked from this one, as long as the owner lives.

    It runs before anything else does in the child, so it takes no lock that was there before, and starts no thread.
    """
    _renewals[owner] = renew


def _renew_all() -> None:
    for owner, renew in list(_renewals.items()):
        renew(owner)


os.register_at_fork(after_in_child=_renew_all)
