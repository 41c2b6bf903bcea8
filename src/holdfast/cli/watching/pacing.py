"""How long to pause between two requests to the server while waiting for something."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FACTOR = 1.5
_FOR_EACH_S = 0.0003
"""Added for each thing in a request: so a wait for thousands costs the server a few hundredths of its time."""


class Polling:
    """Rests that grow while nothing happens and start over when something does."""

    def __init__(self, sleep: Callable[[float], None], *, first_s: float = 0.1, longest_s: float = 1.0) -> None:
        self._sleep = sleep
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = first_s

    def rest(self, *, news: bool = False, things: int = 0, at_most_s: float | None = None) -> None:
        """Sleep once: the shortest rest after news, else longer than the last time; longer, too, for many things."""
        if news:
            self._next_s = self._first_s
        rest_s = min(max(self._next_s, things * _FOR_EACH_S), self._longest_s)
        self._sleep(rest_s if at_most_s is None else max(0.0, min(rest_s, at_most_s)))
        self._next_s = min(self._next_s * _FACTOR, self._longest_s)
