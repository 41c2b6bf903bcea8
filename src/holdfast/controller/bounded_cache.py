"""A cache that cannot grow without end."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TypeVar

A = TypeVar("A")


class BoundedCache(dict[Hashable, A]):
    """Answers that can be recomputed, by question.

    When full, it is emptied at once: jobs come and go for as long as a server runs, nearly every one brings a new
    question, and what is asked often is soon cached again.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        """Start empty; holds ``most`` answers at most."""
        super().__init__()
        self._most = most

    def keep(self, question: Hashable, answer: A) -> A:
        """Keep an answer that was just worked out, and return it."""
        if len(self) >= self._most:
            self.clear()
        self[question] = answer
        return answer
