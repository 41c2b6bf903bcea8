"""Reading the output of runs, wherever the engine keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class LogPart:
    """Some bytes of a run's log, and the log's current size."""

    data: bytes
    size: int
    """Of the whole log, in bytes; 0 while there is none."""
    offset: int = 0
    """Where ``data`` begins: later than asked for when the log's beginning was freed."""
    began: tuple[int, ...] = ()
    """Offsets where programs of the rank after its first began, in order."""


class LogReader(Protocol):
    """Reads the output (both streams, in order of writing) of a job's runs."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``; a log that does not exist (yet) is empty.

        Raises:
            Unavailable: It exists and cannot be read now.
        """
        ...
