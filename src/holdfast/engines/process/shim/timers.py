"""What is due when, for runs; the owner asks whether it still holds."""

from __future__ import annotations

import heapq

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SLACK = 1024


class Timers:
    """A heap of ``(when, uid, what)``."""

    def __init__(self) -> None:
        """Start empty."""
        self._heap: list[tuple[float, str, str]] = []
        self._prune_at = _SLACK

    def add(self, when: float, uid: str, what: str) -> None:
        """Note something to do."""
        heapq.heappush(self._heap, (when, uid, what))

    def due(self, now: float) -> Iterator[tuple[str, str]]:
        """Take out what is due, as ``(uid, what)``."""
        while self._heap and self._heap[0][0] <= now:
            _, uid, what = heapq.heappop(self._heap)
            yield uid, what

    def next(self) -> float:
        """Return when the next thing is due."""
        return self._heap[0][0] if self._heap else float("inf")

    def prune(self, alive: Callable[[str], bool]) -> None:
        """Drop the timers of ended runs once they are many: a deadline may be days away."""
        if len(self._heap) < self._prune_at:
            return
        self._heap = [entry for entry in self._heap if alive(entry[1])]
        heapq.heapify(self._heap)
        self._prune_at = 2 * len(self._heap) + _SLACK
