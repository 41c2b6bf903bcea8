"""The three clocks the shim needs."""

from __future__ import annotations

import time

monotonic = time.monotonic
"""For durations and timers: it never jumps."""
wall = time.time  # noqa: TID251 - a process of its own: nobody can hand it a clock
"""For reports: wall-clock time."""


def pause(seconds: float) -> None:
    """Sleep; only if there is nothing else to do."""
    time.sleep(seconds)


def since_boot() -> float:
    """Return the clock of processes' start times."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()
