"""Virtual time: a clock that jumps from one due event to the next, by time and then in the order of scheduling."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEGINNING = 1_000_000.0
"""The default beginning of a world, in seconds since the epoch."""


class Agenda:
    """The scheduled events, and the ``Clock`` port of everything that runs in the world."""

    def __init__(self, after_step: Callable[[], None] = lambda: None, *, begins_at: float = BEGINNING) -> None:
        """Begin empty; ``after_step`` is called after each event."""
        self._now = self._began = begins_at
        self._after_step = after_step
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self.steps = 0

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._now

    def steady(self) -> float:
        """Return seconds since the world began."""
        return self.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds since the world began."""
        return self._now - self._began

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Schedule an event for a time, or at once if that is past."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        """Schedule an event after a delay."""
        self.at(self._now + delay_s, act)

    def run_until(self, end: float, *, enough: Callable[[], bool] | None = None) -> None:
        """Let time pass up to ``end``, or until ``enough`` holds.

        May be called within an event, which simulates a slow call.
        """
        while self._heap and self._heap[0][0] <= end:
            when, _, act = heapq.heappop(self._heap)
            self._now = max(self._now, when)
            self.steps += 1
            act()
            self._after_step()
            if enough is not None and enough():
                return
        self._now = max(self._now, end)
