"""The output of tasks, by keys ``/user/job/TASK:ATTEMPT``: of one, or of all with a prefix, in order of time.

A line's number is the millisecond in which it was written and its place within that millisecond. A reader continues
after the last number that it saw, so that lines younger than ``SETTLED_S`` are held back: an earlier one may yet come.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING

from holdfast.api.connect.refusals import refuse
from holdfast.api.iris._generated import logging as finelog
from holdfast.api.iris.calls import CALLS, LOGS, named_jobs
from holdfast.domain.record import Struct, evolve
from holdfast.errors import NotFound
from holdfast.service.operations.jobs import JobOperations, LogQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.api.connect.calls import Rpc
    from holdfast.domain.job import Job

DEFAULT_LINES, MOST_LINES = 1_000, 10_000
MOST_KEYS = 2_000
"""Attempts of tasks that one call reads."""
SETTLED_S = 0.3
"""How old a line must be so that no earlier one can appear."""
_PLACES = 22
"""Bits of a line's number that hold its place in the millisecond."""
_MOST_BYTES = 8 * 1024 * 1024
"""Bytes read of one attempt in one call."""
_MS = 1000
_LEVELS = {"DEBUG": 1, "INFO": 2, "WARNING": 3, "ERROR": 4, "CRITICAL": 5}
_LETTERS = {"D": 1, "I": 2, "W": 3, "E": 4, "F": 5, "C": 5}
_MARK = re.compile(r"([DIWEFC])\d{8} |\W{0,2}(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b")


class _Key(Struct, frozen=True):
    """One attempt of a task."""

    job: Job
    rank: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.job.group}/{self.rank}:{self.attempt}"


class _TaskLine(Struct, frozen=True):
    at_ms: int
    key: _Key
    text: str
    seq: int = 0

    @property
    def level(self) -> int:
        """The level that the line begins with; 0 without one."""
        match = _MARK.match(self.text)
        if match is None:
            return 0
        return _LETTERS[match[1]] if match[1] else _LEVELS[match[2]]


@CALLS.answers("FetchLogs", LOGS)
def fetch_logs(call: Rpc, request: finelog.FetchLogsRequest) -> finelog.FetchLogsResponse:
    """Read the lines after a number, or the last ones."""
    keys = _keys(call, request)
    most = min(request.max_lines if request.max_lines > 0 else DEFAULT_LINES, MOST_LINES)
    after_ms = max(request.cursor >> _PLACES, request.since_ms)
    lines = [line for line in _numbered(call, keys, after_ms) if _matches(line, request)]
    chosen = lines[-most:] if request.tail else lines[:most]
    answer = finelog.FetchLogsResponse(cursor=max([request.cursor, *(line.seq for line in chosen)]))
    for line in chosen:
        entry = answer.entries.add(
            source="stdout",
            data=line.text,
            attempt_id=line.key.attempt,
            level=finelog.LogLevel.Name(line.level),
            key="" if request.match_scope == finelog.MATCH_SCOPE_EXACT else str(line.key),
            seq=line.seq,
        )
        entry.timestamp.epoch_ms = line.at_ms
    return answer


def _keys(call: Rpc, request: finelog.FetchLogsRequest) -> Sequence[_Key]:
    """Return the attempts with the requested keys, of the jobs that have these names now.

    Raises:
        Rejected: There are too many, or they are selected by a pattern.
    """
    exact = request.match_scope == finelog.MATCH_SCOPE_EXACT
    if not exact and request.match_scope != finelog.MATCH_SCOPE_PREFIX:
        refuse("match_scope must be MATCH_SCOPE_EXACT or MATCH_SCOPE_PREFIX: keys cannot be selected by patterns")
    if (
        not request.source.startswith("/")
        or request.source.startswith("/system/")
        or request.cluster not in {"", "local"}
    ):
        return ()
    named, names = named_jobs(call), [request.source.rpartition("/")[0]]
    if not exact:
        names += [listed.name for listed in named.beginning(call.caller, request.source)]
    matching = list[_Key]()
    for job in named.every(call.caller, names).values():
        for attempt in range(job.attempt):
            keys = (_Key(job, rank, attempt) for rank in range(job.gang))
            matching += [key for key in keys if _begins(str(key), request.source, exact=exact)]
        if len(matching) > MOST_KEYS:
            refuse(f"more than {MOST_KEYS} attempts of tasks have keys with this prefix; use a longer one")
    return matching


def _begins(key: str, source: str, *, exact: bool) -> bool:
    return key == source if exact else key.startswith(source)


def _numbered(call: Rpc, keys: Sequence[_Key], after_ms: int) -> Iterator[_TaskLine]:
    """Yield the lines of all keys from a millisecond on, numbered and in order of time."""
    settled_ms = (call.backend.clock.now() - SETTLED_S) * _MS
    over = all(key.job.terminal for key in keys)
    lines = [line for key in keys for line in _read(call, key, after_ms)]
    lines.sort(key=lambda line: line.at_ms)  # which keeps the order of each key's lines
    last, place = -1, 0
    for line in lines:
        if not over and line.at_ms > settled_ms:
            return
        place = place + 1 if line.at_ms == last else 0
        last = line.at_ms
        yield evolve(line, seq=(line.at_ms << _PLACES) + min(place + 1, (1 << _PLACES) - 1))


def _read(call: Rpc, key: _Key, after_ms: int) -> Iterator[_TaskLine]:
    """Yield the lines of an attempt from a millisecond on; none if they were deleted with the job."""
    jobs, size = JobOperations(call.backend), 0
    query = LogQuery(attempt=key.attempt + 1, rank=key.rank, since=after_ms / _MS, timestamps=True)
    try:
        while size < _MOST_BYTES:
            part = jobs.logs(call.caller, key.job.id, query)
            size += len(part.text)
            yield from (line for line in _lines_of(key, part.text) if line.at_ms >= after_ms)
            if part.finished or not part.text:
                return
            query = evolve(query, offset=part.next_offset, since=None)
    except NotFound:
        return


def _lines_of(key: _Key, text: str) -> Iterator[_TaskLine]:
    for stamped in text.split("\n"):
        stamp, is_whole, line = stamped.partition(" ")
        at_ms = _moment(stamp) if is_whole else None
        if at_ms is not None:
            yield _TaskLine(at_ms, key, line)


def _moment(stamp: str) -> int | None:
    try:
        return round(datetime.fromisoformat(stamp).timestamp() * _MS)
    except ValueError:
        return None


def _matches(line: _TaskLine, request: finelog.FetchLogsRequest) -> bool:
    level = _LEVELS.get(request.min_level.upper(), 0)
    return (
        line.seq > request.cursor
        and line.at_ms > request.since_ms
        and request.substring in line.text
        and (not request.until_cursor or line.seq < request.until_cursor)
        and (not line.level or line.level >= level)
    )
