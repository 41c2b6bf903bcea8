"""Follows one job: prints its logs as they grow, and a line for each attempt that fails.

The caller decides when to look again and when to stop.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from typing import IO, TYPE_CHECKING, Any

from holdfast.cli.render.decisions import attempt_line
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView, JobView, LogChunk

ENDED = frozenset({"Succeeded", "Failed", "Cancelled", "Replaced"})
"""States of attempts and of jobs that never change again."""
_STATES = {"job.started": "Running", "job.retry_scheduled": "BackOff", "job.queued": "Queued"}
_OF_ATTEMPTS = {*_STATES, "attempt.status_changed", "attempt.progressed", "attempt.ended", "failure.decided"}
"""Events that tell all changes of a job except those of its attempts."""


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a log to print."""

    newest: bool = False
    """Begin at the newest of the runs that share the log."""
    tail: int | None = None
    """Begin this many lines before the end, but not before the newest run."""
    stderr: bool = False
    """Whether to read standard error, if it is kept apart."""
    since: datetime | None = None
    """Begin no earlier than the first line of this second."""
    timestamps: bool = False
    """Begin each line with the time it was written."""


BOTH = (False, True)
"""Standard output and standard error; the latter is true."""


def streams_of(job: JobView, only: Sequence[bool] = BOTH) -> Sequence[bool]:
    """List the logs a rank of a job has: one, or standard output's and standard error's where they are kept apart."""
    return only if job.spec.get("logs") == "separate" else (False,)


class RankLog:
    """One rank's log of one attempt, printed from where the last look ended."""

    def __init__(self, client: Client, job_id: str, attempt: int, rank: int, part: Part = Part()) -> None:
        self._client = client
        self._job_id = job_id
        self._attempt = attempt
        self._first: dict[str, Any] = {"newest": True} if part.newest else {}
        if part.tail is not None:
            self._first = {"tail": part.tail}
        if part.since is not None:
            self._first["since"] = part.since
        self._always: dict[str, Any] = {"stderr": True} if part.stderr else {}
        if part.timestamps:
            self._always["timestamps"] = True
        self.stderr = part.stderr
        self._offset = 0
        self._run = 0
        self.rank = rank
        self.left_out = False
        """Whether earlier runs are not printed."""
        self.finished = False

    def print(self, out: Prefixed) -> bool:
        """Print new text, with a mark where another run begins; returns whether there was any."""
        news = False
        while not self.finished:
            chunk = self._chunk()
            if chunk is None or not chunk.text:
                break
            if self._run and chunk.run != self._run:
                out.mark(self.rank, f"run {chunk.run} begins")
            self._run, news = chunk.run, True
            out.write(self.rank, chunk.text)
        return news

    def _chunk(self) -> LogChunk | None:
        where = {"attempt": self._attempt, "rank": self.rank, **self._always, **self._first}
        if "tail" not in where:
            where["offset"] = self._offset
        try:
            chunk = self._client.logs(self._job_id, **where)
        except NotFound:
            # The run was never placed, so it may get a log later; or its job was deleted, which this raises.
            self._client.job(self._job_id)
            return None
        self.left_out |= "newest" in self._first and chunk.run > 1
        self._first = {}
        self._offset, self.finished = chunk.next_offset, chunk.finished
        return chunk


def ranks_of(job: JobView, attempt: AttemptView) -> Sequence[int]:
    """List the ranks of an attempt: all of a gang, or those of a job's pods that have had a run."""
    return range(job.gang) if job.pods is None else [*dict.fromkeys(run.rank for run in attempt.runs)]


def many_ranks(job: JobView) -> bool:
    """Tell whether several programs write a job's logs, so that each line needs its rank."""
    if job.pods is None:
        return job.gang > 1
    return job.pods.completions != 1


def tell_left_out(logs: Iterable[RankLog], cli: Cli) -> None:
    """Say once if earlier runs were not printed."""
    if any(log.left_out for log in logs):
        cli.say("runs of pods that were replaced are left out; --all prints them, too")


class Prefixed:
    """Writes the logs of several ranks line by line, each line after its rank."""

    def __init__(
        self, stream: IO[str], say: Callable[[str], object], *, many: bool, of: str = "", beside: bool = False
    ) -> None:
        """Write nothing yet.

        Args:
            stream: For logs.
            say: For everything else.
            many: Whether several ranks share the stream.
            of: The job's name, if several jobs share it.
            beside: Whether ``say`` and the stream write to the same place.
        """
        self._of = of
        self._stream = stream
        self._say = say
        self.many = many
        self._beside = beside
        self._open: dict[int, str] = {}
        self._unfinished = self._apart = False
        """For a single log: whether its last line has no end, and whether the next text has to end it first."""

    def write(self, rank: int, text: str) -> None:
        """Write text of a rank; with several ranks, an unfinished line waits for its end."""
        if not self.many and not self._of:
            if text:
                self._stream.write(f"\n{text}" if self._apart else text)
                self._unfinished, self._apart = not text.endswith("\n"), False
        elif text:
            *lines, rest = (self._open.pop(rank, "") + text).split("\n")
            self._stream.writelines(f"[{self._name(rank)}] {line}\n" for line in lines)
            if rest:
                self._open[rank] = rest
        self._stream.flush()

    def mark(self, rank: int, words: str) -> None:
        """Say something about a rank between its earlier and its later text."""
        if rest := self._open.pop(rank, ""):
            self._stream.write(f"[{self._name(rank)}] {rest}\n")
            self._stream.flush()
        self._end_line(more=True)
        message = f"rank {rank}: {words}" if self.many else words
        self._say(f"{self._of}: {message}" if self._of else message)

    def _name(self, rank: int) -> str:
        return "/".join(part for part in (self._of, str(rank) if self.many else "") if part)

    def _end_line(self, *, more: bool) -> None:
        """Have the next text begin on a new line; a log that nothing follows is left as it was written."""
        self._apart = self._unfinished
        if self._apart and more and self._beside:
            self._stream.write("\n")
            self._unfinished = self._apart = False

    def close(self, *, more: bool = False) -> None:
        """Write unfinished lines; ``more`` is whether something is said next."""
        self._end_line(more=more)
        self._stream.writelines(f"[{self._name(rank)}] {rest}\n" for rank, rest in sorted(self._open.items()))
        self._open.clear()
        self._stream.flush()


def outputs(cli: Cli, *, many: bool, of: str = "") -> Mapping[bool, Prefixed]:
    """Return the writer of each stream; standard error, if it is kept apart, goes to standard error."""
    streams = ((False, cli.stdout, _is_same(cli.stdout, cli.stderr)), (True, cli.stderr, True))
    return {stderr: Prefixed(stream, cli.say, many=many, of=of, beside=beside) for stderr, stream, beside in streams}


def _is_same(io: IO[str], other: IO[str]) -> bool:
    """Tell whether two streams are one terminal, pipe or file."""
    try:
        return os.path.sameopenfile(io.fileno(), other.fileno())
    except OSError:  # one of them is not a file
        return False


@dataclass(frozen=True, slots=True)
class LogSelection:
    """The logs of a job to print."""

    begin: int = 1
    """Number of the first attempt."""
    ranks: Sequence[int] | None = None
    """Only these ranks."""
    newest: bool = False
    """For the first attempt, only the newest pods."""
    of: str = ""
    """The job's name, if other jobs are printed, too."""
    tail: int | None = None
    """For the first attempt, only this many lines."""
    streams: Sequence[bool] = BOTH
    """The streams to print, if the job keeps them apart."""
    since: datetime | None = None
    """Nothing written before this second."""
    timestamps: bool = False
    """Begin each line with the time it was written."""


class Follower:
    """Prints a job's progress since the last look."""

    def __init__(self, client: Client, job_id: str, cli: Cli, shown: LogSelection = LogSelection()) -> None:
        self._of = shown.of
        self._client = client
        self._job_id = job_id
        self._cli = cli
        self._number = shown.begin
        self._ranks = shown.ranks
        self._streams = shown.streams
        self._logs: dict[tuple[int, bool], RankLog] | None = None
        """The logs of the present attempt."""
        self._newest = shown.newest
        self._tail = shown.tail
        self._since, self._timestamps = shown.since, shown.timestamps
        self._out: Mapping[bool, Prefixed] | None = None
        self._job: JobView | None = None
        self._seen = 0
        """The last event of the job that was read."""
        self.news = False
        """Whether the last look printed anything."""

    def look(self) -> JobView:
        """Print everything new, and return the job."""
        job = self._job = self._read()
        self.news = False
        for attempt in job.attempts[self._number - 1 :]:
            self._print_logs(job, attempt)
            if attempt.state not in ENDED:
                break
            self._close(attempt)
        if job.attempts:
            self._tail = None  # whatever comes from now on is new
        if job.attempts and self._newest:
            self._newest = False
            tell_left_out((self._logs or {}).values(), self._cli)
        return job

    def _read(self) -> JobView:
        """Read what changed by the job's events; read all of it at first, and after other events."""
        if self._job is None:
            self._seen = self._client.last_event()
            return self._client.job(self._job_id)
        if self._job.pods is not None:  # pods come and go without an event of the job
            return self._client.job(self._job_id)
        events = list(self._client.events(after=self._seen, job=self._job_id))
        self._seen = int(events[-1].id) if events else self._seen
        kinds = [event.type.removeprefix("dev.holdfast.").rpartition(".")[0] for event in events]
        if not _OF_ATTEMPTS.issuperset(kinds):
            return self._client.job(self._job_id)
        if not kinds:
            return self._job
        update: dict[str, Any] = {"attempts": self._client.attempts(self._job_id)}
        for kind, event in zip(kinds, events, strict=True):
            if kind in _STATES:
                update |= {"state": _STATES[kind], "reason": event.data.get("reason", "")}
        return self._job.model_copy(update=update)

    def close(self, *, more: bool = False) -> None:
        """Write unfinished lines; ``more`` is whether something is said next."""
        for out in (self._out or {}).values():
            out.close(more=more)

    def _print_logs(self, job: JobView, attempt: AttemptView) -> None:
        if self._logs is None or self._out is None:
            many = many_ranks(job) if self._ranks is None else len(self._ranks) > 1
            self._out = self._out or outputs(self._cli, many=many, of=self._of)
            for out in self._out.values():
                out.many = many
            self._logs = {}
        ranks = ranks_of(job, attempt) if self._ranks is None else self._ranks
        for rank, stderr in product(ranks, streams_of(job, self._streams)):
            log = self._logs.get((rank, stderr))
            if log is None:
                newest = self._newest and job.pods is not None
                part = Part(newest, self._tail, stderr, self._since, self._timestamps)
                log = self._logs[rank, stderr] = RankLog(self._client, self._job_id, attempt.number, rank, part)
            self.news |= log.print(self._out[stderr])

    def _close(self, attempt: AttemptView) -> None:
        failed = attempt.state != "Succeeded"
        self.close(more=failed)
        self._logs = None
        self._number = attempt.number + 1
        self.news = True
        if failed:
            self._cli.say(f"{self._of}: {attempt_line(attempt)}" if self._of else attempt_line(attempt))
