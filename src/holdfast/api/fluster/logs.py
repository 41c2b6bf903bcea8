"""What jobs printed, each line with when it was written.

Clients ask for what came after the last line they have, by its time: lines of one moment come together, or they would
lose some.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import re2

from holdfast.api.connect.refusals import refuse
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.calls import CALLS, WORKER
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Problem
from holdfast.service.manifests.fluster import SYSTEM
from holdfast.service.operations.jobs import JobOperations, LogQuery, NamedJobs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.api.connect.calls import Rpc

MOST_LINES = 10_000
"""In one answer, and those of the same moment; for more, ask from the last one's time on."""
MOST_TAILED = 10_000
LATEST_MS = 253_402_300_799_000
"""The end of the year 9999."""


_REGEX = re2.Options()
_REGEX.log_errors = False


class _Line(Struct, frozen=True):
    at_ms: int
    text: str


@CALLS.answers("FetchLogs", WORKER)
def fetch_logs(call: Rpc, request: cluster.Worker.FetchLogsRequest) -> cluster.Worker.FetchLogsResponse:
    """Read what the current or last attempt of a job printed."""
    limits = request.filter
    matches = _matching(limits.regex)
    _check(request)
    job = NamedJobs(call.backend, SYSTEM).find(call.caller, request.job_id)
    query = LogQuery(timestamps=True, limit=1 << 20)
    if limits.start_line < 0:
        query = evolve(query, tail=min(-limits.start_line, MOST_TAILED))
    elif not limits.start_line and limits.start_ms:
        query = evolve(query, since=limits.start_ms / 1000)
    most = min(limits.max_lines or MOST_LINES, MOST_LINES)
    answer, last_ms = cluster.Worker.FetchLogsResponse(), -1
    for place, line in enumerate(_lines(call, job.id, query)):
        if place < limits.start_line or line.at_ms <= limits.start_ms or not matches(line.text):
            continue
        if limits.end_ms and line.at_ms > limits.end_ms:
            break
        if len(answer.logs) >= most and line.at_ms != last_ms:
            break
        answer.logs.add(timestamp_ms=line.at_ms, source="stdout", data=line.text)
        last_ms = line.at_ms
    return answer


def _check(request: cluster.Worker.FetchLogsRequest) -> None:
    """Refuse what cannot be asked for."""
    problems = [] if request.job_id else [Problem("job_id", "is required", hint="the full name of a job")]
    for field in ("start_ms", "end_ms", "max_lines"):
        value = getattr(request.filter, field)
        if not 0 <= value <= LATEST_MS:
            problems.append(Problem(f"filter.{field}", f"{value} is out of range", allowed=(f"0 to {LATEST_MS}",)))
    if problems:
        refuse("; ".join(map(str, problems)), problems)


def _matching(regex: str) -> Callable[[str], bool]:
    if not regex:
        return lambda _: True
    try:
        pattern = re2.compile(regex, options=_REGEX)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        message = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        refuse(f"filter.regex: {message}", [Problem("filter.regex", message, hint="write it as RE2 has them")])
    return lambda text: pattern.search(text) is not None


def _lines(call: Rpc, job_id: str, query: LogQuery) -> Iterator[_Line]:
    """Yield the lines of a log, as far as it goes now."""
    jobs, left, last_ms = JobOperations(call.backend), "", 0
    while True:
        part = jobs.logs(call.caller, job_id, query)
        *whole, left = (left + part.text).split("\n")
        for text in whole:
            parsed = _read(text, last_ms)
            last_ms = parsed.at_ms
            yield parsed
        if part.finished or not part.text:
            break
        query = evolve(query, offset=part.next_offset, tail=None, since=None)
    if left and part.finished:
        yield _read(left, last_ms)


def _read(line: str, last_ms: int) -> _Line:
    """Read a line after its time; of one whose beginning went with the log's nobody knows when it was written."""
    stamp, is_whole, text = line.partition(" ")
    try:
        at = datetime.fromisoformat(stamp) if is_whole else None
    except ValueError:
        at = None
    return _Line(last_ms, line) if at is None else _Line(max(last_ms, round(at.timestamp() * 1000)), text)
