"""The real clock, ids and dice."""

from __future__ import annotations

import os
import random
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _ALPHABET for second in _ALPHABET]
_SHIFTS = range(120, -1, -10)
_RANDOM_BITS = 80
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that goes on while the machine sleeps, as a lease does, if there is one."""


class SystemClock:
    """Wall-clock time that never goes back within this process."""

    def __init__(self) -> None:
        self._base = time.time() - time.monotonic()

    def now(self) -> float:
        """Return seconds since the epoch; steps of the system clock are followed forwards only."""
        steady = self._base + time.monotonic()
        actual = time.time()
        if actual > steady:
            self._base += actual - steady
            return actual
        return steady

    def steady(self) -> float:
        """Return seconds since an arbitrary instant; setting the system clock does not change it."""
        return time.clock_gettime(_STEADY)


class SortableIds:
    """ULIDs in lower case: 48 bits of milliseconds and 80 of randomness, growing within a millisecond."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0

    def new(self) -> str:
        """Return a new id of 26 characters, larger than every earlier one of this process."""
        fresh = (int(time.time() * 1000) << _RANDOM_BITS) | int.from_bytes(os.urandom(_RANDOM_BITS // 8))
        with self._lock:
            self._last = fresh if fresh > self._last else self._last + 1
            value = self._last
        return "".join([_PAIRS[(value >> shift) & 1023] for shift in _SHIFTS])


class SystemDice:
    """Real randomness, for jitter only."""

    def draw(self) -> float:
        """Return a number in [0, 1)."""
        return random.random()  # noqa: S311 - jitter, not a secret
