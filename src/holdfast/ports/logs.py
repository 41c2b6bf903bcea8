"""Reads the output of runs, wherever the engine keeps it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence


class LogPart(Struct, frozen=True):
    """A part of a run's log, and the log's current size."""

    data: bytes
    size: int
    """The size of the whole log in bytes; 0 if there is none."""
    offset: int = 0
    """The offset of ``data``: later than requested if the log's beginning was freed."""
    began: tuple[int, ...] = ()
    """Offsets at which later programs of the rank began, in order."""


class LogTimes(Struct, frozen=True):
    """When parts of a log were written, as far as observed: its sizes, and when it reached them."""

    sizes: Sequence[int] = ()
    """Sizes in bytes, growing; the last one is that of the whole log."""
    moments: Sequence[float] = ()
    """Seconds since the epoch, one for each size."""

    def at(self, end: int) -> float | None:
        """Return the latest time at which the byte before ``end`` was written; ``None`` if unknown."""
        place = bisect_left(self.sizes, end)
        return self.moments[min(place, len(self.moments) - 1)] if self.moments else None

    def reach(self, end: int) -> int:
        """Return the end of the part with the same time as the byte before ``end``."""
        place = bisect_left(self.sizes, end)
        return max(end, self.sizes[place]) if place < len(self.sizes) else end

    def since(self, moment: float) -> int:
        """Return the offset from which everything may have been written at a time or later."""
        place = next((place for place, at in enumerate(self.moments) if at >= moment), len(self.sizes))
        return self.sizes[place - 1] if place else 0


class LogReader(Protocol):
    """Reads the output of a job's runs: both streams in order of writing, or one of them if they are kept apart."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``; a log that does not exist (yet) is empty.

        Raises:
            Unavailable: It exists and cannot be read now.
        """

    def result(self, job_id: str, attempt: int, rank: int, *, limit: int) -> bytes | None:
        """Return a run's result; ``None`` if there is none, or if it is larger than ``limit`` bytes.

        Raises:
            Unavailable: It exists and cannot be read now.
        """

    def times(self, job_id: str, attempt: int, rank: int, *, stderr: bool = False) -> LogTimes:
        """Return when a log was written; nothing is known of a log that does not exist (yet).

        Raises:
            Unavailable: It exists and cannot be read now.
        """
