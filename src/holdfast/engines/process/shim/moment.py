"""The three clocks the shim needs."""

from __future__ import annotations

import time

monotonic = time.monotonic
"""For durations and timers: never jumps."""
wall = time.time  # noqa: TID251 - a process of its own: nobody can hand it a clock
"""For reports: what people call the time."""


def pause(seconds: float) -> None:
    """Wait; only while there is nothing else that could be done."""
    time.sleep(seconds)


def since_boot() -> float:
    """Return the clock processes' start times are given in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
