"""A cache that cannot grow without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

A = TypeVar("A")


class BoundedCache(Generic[A]):
    """Answers that can be recomputed, by question.

    When full, it is emptied at once: jobs come and go for as long as a server runs, nearly every one brings a new
    question, and what is asked often is soon cached again.
    """

    __slots__ = ("_answers", "_most")

    def __init__(self, most: int) -> None:
        """Start empty; holds ``most`` answers at most."""
        self._most = most
        self._answers: dict[Hashable, A] = {}

    def __len__(self) -> int:
        """Return how many answers are kept."""
        return len(self._answers)

    def answer(self, question: Hashable, work_out: Callable[[], A]) -> A:
        """Return the answer, computed unless it is cached."""
        known = self._answers.get(question)
        if known is None:
            if len(self._answers) >= self._most:
                self._answers.clear()
            known = self._answers[question] = work_out()
        return known

    def forget(self) -> None:
        """Forget all answers, because they may have changed."""
        self._answers.clear()
