"""Time and ids for the loops; the real ones live in ``app``, virtual ones in ``simulation`` and tests."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall-clock time."""

    def now(self) -> float:
        """Return seconds since the epoch (UTC); never goes back within one process."""


class SteadyClock(Clock, Protocol):
    """A clock of one process that also measures durations, unaffected by changes of the wall clock."""

    def steady(self) -> float:
        """Return monotonic seconds since an arbitrary instant; they mean nothing to another process."""


class Ids(Protocol):
    """A source of identifiers."""

    def new(self) -> str:
        """Return a new id: lower-case, sortable by time of creation, usable as a DNS label."""


class Dice(Protocol):
    """A source of randomness for jitter."""

    def draw(self) -> float:
        """Return a number in [0, 1)."""
