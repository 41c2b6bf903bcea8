"""Reading the output of runs, wherever the engine keeps it."""

from __future__ import annotations

from typing import Protocol

from holdfast.domain.record import Struct


class LogPart(Struct, frozen=True):
    """Some bytes of a run's log, and the log's current size."""

    data: bytes
    size: int
    """Of the whole log, in bytes; 0 while there is none."""
    offset: int = 0
    """Where ``data`` begins: later than asked for when the log's beginning was freed."""
    began: tuple[int, ...] = ()
    """Offsets where programs of the rank after its first began, in order."""


class LogReader(Protocol):
    """Reads the output of a job's runs: both streams in order of writing, or each, where they are kept apart."""

    def read(self, job_id: str, attempt: int, rank: int, *, offset: int, limit: int, stderr: bool = False) -> LogPart:
        """Read at most ``limit`` bytes from ``offset``; a log that does not exist (yet) is empty.

        Raises:
            Unavailable: It exists and cannot be read now.
        """
        ...
