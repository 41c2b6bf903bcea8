"""Waits for a server that does not answer for a while, and reports it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.errors import Unavailable

PATIENCE_S = 300.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 2.0


def log(text: str, *, level: str = "WARNING") -> None:
    """Write to this module's log, for programs that do not report in another way."""
    import logging

    logging.getLogger(__name__).log(logging.getLevelNamesMapping()[level], text)


class Outage:
    """Waits for a server that has answered before. Each outage has the full patience."""

    def __init__(self, patience_s: float, say: Callable[[str], None] = log) -> None:
        """Start with a server that answers; ``say`` is called once when it stops and once when it answers again."""
        self._patience_s = patience_s
        self._say = say
        self._since: float | None = None
        self._pause_s = _FIRST_PAUSE_S

    def failed(self, error: Unavailable) -> float:
        """Note that there was no answer; returns how long to pause before the next try, in seconds.

        Raises:
            Unavailable: The error, if the outage has lasted too long.
        """
        now = time.monotonic()
        if self._since is None:
            self._since, self._pause_s = now, _FIRST_PAUSE_S
            if self._patience_s > 0:
                self._say(f"the server does not answer; waiting up to {format_duration(self._patience_s)} for it")
        left_s = self._since + self._patience_s - now
        if left_s <= 0:
            raise error
        pause_s, self._pause_s = min(self._pause_s, left_s), min(2 * self._pause_s, _LONGEST_PAUSE_S)
        return pause_s

    def answered(self) -> None:
        """Note that the server answers."""
        if self._since is not None:
            self._since = None
            self._say("the server answers again")
