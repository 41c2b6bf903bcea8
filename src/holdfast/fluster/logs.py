"""The output of jobs, as a client reads and follows it."""

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
"""Lines in one answer; the next request continues from the last one's time."""


class NoWorkerError(ValueError):
    """No worker has the job, so that its output cannot be read."""


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
    """Selects lines."""

    regex: str = ""
    """A pattern in them, in RE2 syntax; empty for all."""
    start_line: int = 0
    """The number of the first line, from 0; negative for that many last lines."""
    start_ms: int = 0
    """Only lines written after this."""
    end_ms: int = 0
    """Only lines written up to this; 0 for no limit."""
    max_lines: int = 0
    """How many; 0 for all. Lines of one millisecond come together, even if they are a few more."""


def read(calling: Calling, job_id: str, limits: LogFilter, where: Callable[[], str]) -> Iterator[LogEntry]:
    """Yield the lines that there are now; ``where`` returns the address for each try."""
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
    """Continues where it stopped: each line comes once, even if several have the same time."""

    def __init__(self, limits: LogFilter, lines: Callable[[LogFilter, str], Iterator[LogEntry]]) -> None:
        """Begin with the first selected line; ``lines`` reads the current ones from an address."""
        self._filter, self._lines = limits, lines
        self._last_ms = self._of_last = 0
        self._place = ""

    def news(self, place: str) -> Iterator[LogEntry]:
        """Yield the lines since the last call.

        Args:
            place: The worker's address, if there is one now; without one, the last address is used.
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
