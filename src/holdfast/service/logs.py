"""Reads logs: finds the attempt, the rank and the program, and tells whether more will follow.

Text is cut between characters, and between the programs that followed each other in one rank.
"""

from __future__ import annotations

from datetime import UTC, datetime
from math import floor
from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import ATTEMPT_TERMINAL
from holdfast.domain.record import Struct
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.errors import InvalidRequest, NotFound, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.job import Job
    from holdfast.ports.logs import LogPart, LogReader, LogTimes
    from holdfast.ports.store import Store

LARGEST_PART = 1 << 20
"""Bytes read at once."""
MOST_LINES = 10_000
_BLOCK = 64 * 1024
_LONGEST_CHARACTER = 4


class LogText(Struct, frozen=True):
    """A part of a run's log."""

    attempt: int
    rank: int
    offset: int
    next_offset: int
    text: str
    finished: bool
    run: int = 1
    """Which of the rank's programs in the attempt printed it, from 1."""


class LogQuery(Struct, frozen=True):
    """A part of a log; ``tail`` (lines from the end) and ``offset`` (bytes) exclude each other."""

    attempt: int | None = None
    """``None``: the current or last attempt."""
    rank: int = 0
    offset: int | None = None
    limit: int = LARGEST_PART
    tail: int | None = None
    """Only of the newest program of the rank."""
    newest: bool = False
    """Begin no earlier than the newest program of the rank did."""
    stderr: bool = False
    """Standard error instead of standard output; empty unless the job keeps them apart."""
    since: float | None = None
    """Begin no earlier than the first line of this second, in seconds since the epoch."""
    timestamps: bool = False
    """Begin each line with the time it was written; an incomplete line is withheld until it is complete."""


class Logs(Struct, frozen=True):
    """Reads the logs of jobs."""

    store: Store
    reader: LogReader

    def read(self, reference: str, query: LogQuery) -> LogText:
        """Read a part of a log. The log of an attempt yet to come is empty and not finished.

        Raises:
            NotFound: The job, the attempt or the rank does not exist.
            InvalidRequest: Both ``tail`` and ``offset`` are set.
        """
        _check(query)
        job = self.store.job(reference)
        attempt = _attempt(job, query)
        # Checked before reading, or a follower would miss what is written in between.
        ended = self._ended(job, attempt)
        offset = query.offset or 0
        if query.tail is not None:
            offset = self._tail_offset(job.id, attempt, query)
        if query.newest or query.tail is not None:
            began = self._part(job.id, attempt, query, 0, 0).began
            offset = max(offset, *began[-1:], 0)
        if query.since is not None:
            offset = max(offset, self._since_offset(job.id, attempt, query, query.since))
        part = self._part(job.id, attempt, query, offset, min(query.limit, LARGEST_PART))
        following = next((began for began in part.began if began > part.offset), None)
        end = part.size if following is None else following
        data = part.data[: max(0, end - part.offset)]
        at_end = part.offset + len(data) >= end
        over = at_end and (ended or following is not None)
        if not over:
            data = _whole(data, query)
        finished = ended and at_end and following is None
        if finished:
            self._require_job(job)
        return LogText(
            attempt=attempt,
            rank=query.rank,
            offset=part.offset,
            next_offset=part.offset + len(data),
            text=self._with_times(job.id, attempt, query, part, data) if query.timestamps else _text(data),
            finished=finished,
            run=1 + sum(began <= part.offset for began in part.began),
        )

    def _with_times(self, job_id: str, attempt: int, query: LogQuery, part: LogPart, data: bytes) -> str:
        """Return the lines with their times; a line that began before ``data`` has none."""
        begins = part.offset == 0 or part.offset in part.began
        if not begins and data:
            begins = self._part(job_id, attempt, query, part.offset - 1, 1).data == b"\n"
        # Read after the data, so that it covers all of it.
        times = self.reader.times(job_id, attempt, query.rank, stderr=query.stderr)
        return "".join(_timed(data, part.offset, times, begins=begins))

    def _since_offset(self, job_id: str, attempt: int, query: LogQuery, since: float) -> int:
        """Find the start of the first line that ended at ``since`` or later."""
        times = self.reader.times(job_id, attempt, query.rank, stderr=query.stderr)
        offset = times.since(floor(since))
        while 0 < offset < times.sizes[-1]:
            part = self._part(job_id, attempt, query, max(0, offset - _BLOCK), min(offset, _BLOCK))
            block = part.data[: max(0, offset - part.offset)]
            if not block:
                break
            newline = block.rfind(b"\n")
            if newline >= 0:
                return part.offset + newline + 1
            offset = part.offset
        return offset

    def _require_job(self, job: Job) -> None:
        """Make sure that a log read to its end was not being deleted: a job is deleted before its files.

        Raises:
            NotFound: The job was deleted.
        """
        if not self.store.job_states([job.id]):
            msg = f"job {job.name!r} ({job.id}) was deleted while its log was read"
            raise NotFound(msg)

    def _ended(self, job: Job, attempt: int) -> bool:
        if job.terminal or attempt < job.attempt:
            return True
        return any(
            judged.number == attempt and judged.status in ATTEMPT_TERMINAL for judged in self.store.attempts(job.id)
        )

    def _part(self, job_id: str, attempt: int, query: LogQuery, offset: int, limit: int) -> LogPart:
        return self.reader.read(job_id, attempt, query.rank, offset=offset, limit=limit, stderr=query.stderr)

    def _tail_offset(self, job_id: str, attempt: int, query: LogQuery) -> int:
        """Find where the last lines begin, reading backwards block by block."""
        end, lines = self._part(job_id, attempt, query, 0, 0).size, query.tail or 0
        if lines == 0:
            return end
        position, missing = end, lines
        while position > 0:
            part = self._part(job_id, attempt, query, max(0, position - _BLOCK), _BLOCK)
            start = part.offset
            block = part.data[: max(0, position - start)]
            if not block:
                return position
            if position == end and block.endswith(b"\n"):
                missing += 1
            count = block.count(b"\n")
            if count >= missing:
                return start + _after_newline(block, missing)
            missing -= count
            position = start
        return 0


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _timed(data: bytes, offset: int, times: LogTimes, *, begins: bool) -> Iterator[str]:
    """Yield the lines with their times; lines with the same time are handled together."""
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin) + 1 or len(data)
        at = times.at(offset + end) if begins else None
        if at is None:
            yield _text(data[begin:end])
        else:
            end = max(end, data.rfind(b"\n", begin, times.reach(offset + end) - offset) + 1)
            stamp, text = f"{rfc3339(at)} ", _text(data[begin:end])
            inside = text.removesuffix("\n")
            yield stamp + inside.replace("\n", f"\n{stamp}") + text[len(inside) :]
        begin, begins = end, True


def rfc3339(at: float) -> str:
    """Format a time with microseconds, as Kubernetes' logs do."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _after_newline(block: bytes, from_end: int) -> int:
    """Return the position after the ``from_end``-th newline from the end."""
    place = len(block)
    for _ in range(from_end):
        place = block.rindex(b"\n", 0, place)
    return place + 1


def _check(query: LogQuery) -> None:
    if query.tail is not None and query.offset is not None:
        msg = "tail and offset cannot be used together"
        raise InvalidRequest(msg, problems=[Problem("query.tail", msg, hint="leave out one of them")])


def _attempt(job: Job, query: LogQuery) -> int:
    last = max(job.attempt, 1)
    number = last if query.attempt is None else query.attempt
    if not 1 <= number <= last:
        msg = f"job {job.name!r} ({job.id}) has no attempt {number}"
        raise NotFound(msg, hint=f"its attempts are 1 to {last}" if last > 1 else "its only attempt is 1")
    # The ranks of pods are completion indexes or slots, which have no upper limit.
    if query.rank < 0 or (query.rank >= job.gang and job.kind == GANG):
        msg = f"job {job.name!r} ({job.id}) has no rank {query.rank}"
        raise NotFound(msg, hint=f"its ranks are 0 to {job.gang - 1}" if job.gang > 1 else "its only rank is 0")
    return number


def _whole(data: bytes, query: LogQuery) -> bytes:
    """Leave out an incomplete character at the end, or, with timestamps, an incomplete line unless it is very long."""
    lines = data[: data.rfind(b"\n") + 1]
    if query.timestamps and (lines or len(data) < min(query.limit, LARGEST_PART)):
        return lines
    return whole_characters(data)


def whole_characters(data: bytes) -> bytes:
    """Leave out an incomplete character at the end."""
    for back in range(1, min(_LONGEST_CHARACTER, len(data)) + 1):
        lead = data[-back]
        if lead & 0xC0 == 0x80:  # noqa: PLR2004 - a continuation byte of UTF-8
            continue
        needs = 1 + (lead >= 0xC0) + (lead >= 0xE0) + (lead >= 0xF0)  # noqa: PLR2004 - UTF-8's lead bytes
        return data[:-back] if needs > back else data
    return data
