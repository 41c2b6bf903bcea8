"""The output of jobs, each line with the time it was written.

A client continues after the time of its last line, so that the lines of one millisecond have to come in one answer:
otherwise it would lose some.
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
"""Lines in one answer, which may have more of the last one's millisecond; the next answer continues after that."""
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
    """Read the output of a job's current or last attempt."""
    limits = request.filter
    matches = _line_matcher(limits.regex)
    _require_valid(request)
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


def _require_valid(request: cluster.Worker.FetchLogsRequest) -> None:
    problems = [] if request.job_id else [Problem("job_id", "is required", hint="the full name of a job")]
    for field in ("start_ms", "end_ms", "max_lines"):
        value = getattr(request.filter, field)
        if not 0 <= value <= LATEST_MS:
            problems.append(Problem(f"filter.{field}", f"{value} is out of range", allowed=(f"0 to {LATEST_MS}",)))
    if problems:
        refuse("; ".join(map(str, problems)), problems)


def _line_matcher(regex: str) -> Callable[[str], bool]:
    if not regex:
        return lambda _: True
    try:
        pattern = re2.compile(regex, options=_REGEX)
    except re2.error as error:
        detail = error.args[0] if error.args else error
        message = detail.decode(errors="replace") if isinstance(detail, bytes) else str(detail)
        refuse(f"filter.regex: {message}", [Problem("filter.regex", message, hint="write it in the syntax of RE2")])
    return lambda text: pattern.search(text) is not None


def _lines(call: Rpc, job_id: str, query: LogQuery) -> Iterator[_Line]:
    """Yield the lines that a log has now."""
    jobs, left, last_ms = JobOperations(call.backend), "", 0
    while True:
        part = jobs.logs(call.caller, job_id, query)
        *whole, left = (left + part.text).split("\n")
        for text in whole:
            parsed = _parse_line(text, last_ms)
            last_ms = parsed.at_ms
            yield parsed
        if part.finished or not part.text:
            break
        query = evolve(query, offset=part.next_offset, tail=None, since=None)
    if left and part.finished:
        yield _parse_line(left, last_ms)


def _parse_line(line: str, last_ms: int) -> _Line:
    """Parse a line with its time; one whose beginning was cut off with the log's gets the time of the line before."""
    stamp, is_whole, text = line.partition(" ")
    try:
        at = datetime.fromisoformat(stamp) if is_whole else None
    except ValueError:
        at = None
    return _Line(last_ms, line) if at is None else _Line(max(last_ms, round(at.timestamp() * 1000)), text)
