"""The three clocks a keeper needs; decides nothing."""

from __future__ import annotations

import time

monotonic = time.monotonic
"""For durations and timers: never jumps."""
wall = time.time  # noqa: TID251 - a process of its own: nobody can hand it a clock
"""For reports: what people call the time."""


def since_boot() -> float:
    """Return the clock processes' start times are given in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
