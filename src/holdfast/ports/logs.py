"""Reading the output of runs, wherever the engine keeps it."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence


class LogPart(Struct, frozen=True):
    """Some bytes of a run's log, and the log's current size."""

    data: bytes
    size: int
    """Of the whole log, in bytes; 0 while there is none."""
    offset: int = 0
    """Where ``data`` begins: later than asked for when the log's beginning was freed."""
    began: tuple[int, ...] = ()
    """Offsets where programs of the rank after its first began, in order."""


class LogTimes(Struct, frozen=True):
    """When what a log has was written, as far as anybody looked: the size it had, and when it came to have it."""

    sizes: Sequence[int] = ()
    """In bytes, growing; the last is that of the whole log."""
    moments: Sequence[float] = ()
    """In seconds since the epoch, one of each size."""

    def at(self, end: int) -> float | None:
        """Return when the byte before ``end`` was written, at the latest; ``None``: nobody knows."""
        place = bisect_left(self.sizes, end)
        return self.moments[min(place, len(self.moments) - 1)] if self.moments else None

    def reach(self, end: int) -> int:
        """Return up to where everything has the time of the byte before ``end``."""
        place = bisect_left(self.sizes, end)
        return max(end, self.sizes[place]) if place < len(self.sizes) else end

    def since(self, moment: float) -> int:
        """Return from where on everything may have been written at a moment or later."""
        place = next((place for place, at in enumerate(self.moments) if at >= moment), len(self.sizes))
        return self.sizes[place - 1] if place else 0


class LogReader(Protocol):
    """Reads the output of a job's runs: both streams in order of writing, or each, where they are kept apart."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``; a log that does not exist (yet) is empty.

        Raises:
            Unavailable: It exists and cannot be read now.
        """

    def result(self, job_id: str, attempt: int, rank: int, *, limit: int) -> bytes | None:
        """Return what a run left as its result; ``None`` where there is nothing, or more than ``limit`` bytes.

        Raises:
            Unavailable: It is there and cannot be read now.
        """

    def times(self, job_id: str, attempt: int, rank: int, *, stderr: bool = False) -> LogTimes:
        """Return when a log was written; of one that does not exist (yet) nothing is known.

        Raises:
            Unavailable: It exists and cannot be read now.
        """
