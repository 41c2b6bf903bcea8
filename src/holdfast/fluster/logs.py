"""What jobs print, as a client reads and follows it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.api.fluster._generated import cluster
from holdfast.fluster.calling import WORKER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.fluster.calling import Calling

MOST_LINES = 10_000
"""In one answer; who wants more asks from the last one's time on."""


class NoWorkerError(ValueError):
    """No worker has the job, so that nobody can be asked what it printed."""


@dataclass(frozen=True)
class LogEntry:
    """A line that a job printed."""

    timestamp_ms: int
    """When it was written."""
    source: str
    data: str
    """The line, without its end."""


@dataclass(frozen=True)
class LogFilter:
    """Which lines are meant."""

    regex: str = ""
    """What they have, as RE2 writes patterns; empty for all."""
    start_line: int = 0
    """The number of the first, from 0; negative for as many of the last."""
    start_ms: int = 0
    """They were written after that."""
    end_ms: int = 0
    """They were not written after that; 0 for no limit."""
    max_lines: int = 0
    """How many; 0 for all. Those of one moment come together, also if they are a few more."""


def read(calling: Calling, job_id: str, limits: LogFilter, where: Callable[[], str]) -> Iterator[LogEntry]:
    """Yield the lines that there are now, from an address that is asked for before each try."""
    start_ms, count = limits.start_ms, 0
    while True:
        most = min(limits.max_lines - count, MOST_LINES) if limits.max_lines else 0
        request = cluster.Worker.FetchLogsRequest(job_id=job_id)
        request.filter.regex, request.filter.start_line = limits.regex, limits.start_line
        request.filter.start_ms, request.filter.end_ms, request.filter.max_lines = start_ms, limits.end_ms, most
        part = calling(f"{WORKER}FetchLogs", request, cluster.Worker.FetchLogsResponse, where=where).logs
        yield from (LogEntry(line.timestamp_ms, line.source, line.data) for line in part)
        count += len(part)
        if len(part) < MOST_LINES or (limits.max_lines and count >= limits.max_lines):
            return
        start_ms = part[-1].timestamp_ms


class LogFollower:
    """Reads on where it stopped: each line once, though several are of one moment."""

    def __init__(self, limits: LogFilter, lines: Callable[[LogFilter, str], Iterator[LogEntry]]) -> None:
        """Begin with the first line that is meant; ``lines`` reads those that there are now, from an address."""
        self._filter, self._lines = limits, lines
        self._last_ms = self._of_last = 0
        self._place = ""

    def news(self, place: str) -> Iterator[LogEntry]:
        """Yield what has come since.

        Args:
            place: The worker's address, if there is one now; the last one is asked about an attempt that is over.
        """
        self._place = place or self._place
        limits, again = self._filter, self._of_last
        if self._last_ms:
            limits = replace(limits, start_line=0, start_ms=max(limits.start_ms, self._last_ms - 1))
        with suppress(NoWorkerError):
            for entry in self._lines(limits, self._place):
                if again and entry.timestamp_ms == self._last_ms:
                    again -= 1
                    continue
                if entry.timestamp_ms != self._last_ms:
                    self._last_ms, self._of_last, again = entry.timestamp_ms, 0, 0
                self._of_last += 1
                yield entry
