"""A cache of bounded size."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

A = TypeVar("A")


class BoundedCache(dict[Hashable, A]):
    """Results that can be computed again, by key.

    When full, it is emptied at once. Jobs come and go for as long as a server runs and most bring new keys; frequent
    keys are soon cached again.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        """Hold at most ``most`` results."""
        super().__init__()
        self._most = most

    def keep(self, question: Hashable, answer: A) -> A:
        """Store a new result and return it."""
        if len(self) >= self._most:
            self.clear()
        self[question] = answer
        return answer
