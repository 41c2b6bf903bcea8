"""Virtual time: a clock that jumps from one thing that is due to the next.

Decides the order of what happens (by time, then by who asked first) and nothing about what happens.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEGINNING = 1_000_000.0
"""The time, in seconds since the epoch, at which every world begins."""


class Agenda:
    """What is going to happen, and the ``Clock`` port of everything that runs in the world."""

    def __init__(self, after_step: Callable[[], None]) -> None:
        """Begin empty; ``after_step`` is called after each thing that happened."""
        self._now = BEGINNING
        self._after_step = after_step
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._asked = 0
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
        return self._now - BEGINNING

    def at(self, when: float, act: Callable[[], None]) -> None:
        """Do something at a time, at once if that is past."""
        self._asked += 1
        heapq.heappush(self._heap, (when, self._asked, act))

    def after(self, delay_s: float, act: Callable[[], None]) -> None:
        """Do something in a while."""
        self.at(self._now + delay_s, act)

    def run_until(self, end: float, *, enough: Callable[[], bool] | None = None) -> None:
        """Let time pass up to ``end``, or until it is enough.

        May be called from within something that happens: that is how a call that takes its time is simulated.
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
