"""Estimates a run's rate and remaining time from its reports of ``step/total``."""

from __future__ import annotations

import re

SHORTEST_S = 2.0
"""Seconds; a shorter period gives no rate, because it would jump."""
_STEPS = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*(\d+(?:\.\d+)?)(?=\s|$)")
_LONGEST_S = 1000 * 86400.0


class FirstReport:
    """The first report of a run, as the base of its rate: a run may begin where another one stopped."""

    def __init__(self) -> None:
        self._first: tuple[float, float] | None = None

    def annotate(self, line: str, now: float) -> str:
        """Return a report with its rate and remaining time once they are known: ``30/100 (2.1/s, 33s left)``."""
        match = _STEPS.match(line)
        if match is None:
            return line
        step, total = float(match[1]), float(match[2])
        if self._first is None or step < self._first[1]:
            self._first = now, step
        since, begun = self._first
        if now - since < SHORTEST_S or not begun < step < total:
            return line
        rate = (step - begun) / (now - since)
        left_s = (total - step) / rate
        return f"{line} ({_rate(rate)}, {_left(left_s)} left)" if left_s < _LONGEST_S else line


def _rate(each_s: float) -> str:
    for size, unit in ((1.0, "s"), (60.0, "min")):
        if each_s * size >= 1:
            return f"{each_s * size:.1f}/{unit}"
    return f"{each_s * 3600:.1f}/h"


def _left(seconds: float) -> str:
    """Format a duration with at most two units."""
    whole = round(seconds)
    for size, unit, smaller, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size}{unit}" + (f"{rest}{small}" if rest else "")
    return f"{whole}s"
