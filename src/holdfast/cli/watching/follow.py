"""Follows one job: prints its logs as they grow, and a line for each attempt that fails.

Decides what is printed when; leaves when to look again, and when to stop, to the commands.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from holdfast.cli.render.decisions import attempt_line
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView, JobView

ENDED = frozenset({"Succeeded", "Failed", "Cancelled"})
"""States of attempts and of jobs that never change again."""


class RankLog:
    """One rank's log of one attempt, read from where the last look ended."""

    def __init__(self, client: Client, job_id: str, attempt: int, rank: int) -> None:
        """Begin at the log's start."""
        self._client = client
        self._job_id = job_id
        self._attempt = attempt
        self._offset = 0
        self.rank = rank
        self.finished = False

    def read(self) -> str:
        """Return everything new; empty when there is nothing yet."""
        text = ""
        while not self.finished:
            piece = self._piece()
            text += piece
            if not piece:
                break
        return text

    def _piece(self) -> str:
        try:
            chunk = self._client.logs(self._job_id, attempt=self._attempt, rank=self.rank, offset=self._offset)
        except NotFound:
            # The run was never placed, so it has no log; it may get one later.
            return ""
        self._offset = chunk.next_offset
        self.finished = chunk.finished
        return chunk.text


def ranks_of(job: JobView, attempt: AttemptView) -> Sequence[int]:
    """List the ranks of an attempt: all of a gang, of a job made of pods those that have had one."""
    return range(job.gang) if job.pods is None else [run.rank for run in attempt.runs]


def many_ranks(job: JobView) -> bool:
    """Tell whether its logs are those of several programs, so that each line needs its rank."""
    if job.pods is None:
        return job.gang > 1
    return job.pods.completions != 1


class Prefixed:
    """Writes the logs of several ranks line by line, each line after its rank."""

    def __init__(self, stream: IO[str], *, many: bool) -> None:
        """Remember where to write, and whether many ranks share the stream."""
        self._stream = stream
        self._many = many
        self._open: dict[int, str] = {}

    def write(self, rank: int, text: str) -> None:
        """Write what a rank said; with several ranks an unfinished line waits for its end."""
        if not self._many:
            self._stream.write(text)
        elif text:
            *lines, rest = (self._open.pop(rank, "") + text).split("\n")
            self._stream.writelines(f"[{rank}] {line}\n" for line in lines)
            if rest:
                self._open[rank] = rest
        self._stream.flush()

    def close(self) -> None:
        """Write the lines that never ended."""
        self._stream.writelines(f"[{rank}] {rest}\n" for rank, rest in sorted(self._open.items()))
        self._open.clear()
        self._stream.flush()


class Follower:
    """Prints a job's progress since the last look."""

    def __init__(
        self,
        client: Client,
        job_id: str,
        cli: Cli,
        *,
        begin: int = 1,
        ranks: Sequence[int] | None = None,
    ) -> None:
        """Begin with attempt number ``begin``; without ``ranks`` all are printed."""
        self._client = client
        self._job_id = job_id
        self._cli = cli
        self._number = begin
        self._ranks = ranks
        self._logs: dict[int, RankLog] = {}
        self._out: Prefixed | None = None
        self.news = False
        """Whether the last look printed anything."""

    def look(self) -> JobView:
        """Print everything new and return the job as it was seen."""
        job = self._client.job(self._job_id)
        self.news = False
        for attempt in job.attempts[self._number - 1 :]:
            self._print_logs(job, attempt)
            if attempt.state not in ENDED:
                break
            self._close(attempt)
        return job

    def _print_logs(self, job: JobView, attempt: AttemptView) -> None:
        if self._out is None:
            self._out = Prefixed(
                self._cli.stdout, many=many_ranks(job) if self._ranks is None else len(self._ranks) > 1
            )
            self._logs = {}
        for rank in ranks_of(job, attempt) if self._ranks is None else self._ranks:
            log = self._logs.get(rank)
            if log is None:
                log = self._logs[rank] = RankLog(self._client, self._job_id, attempt.number, rank)
            if text := log.read():
                self._out.write(log.rank, text)
                self.news = True

    def _close(self, attempt: AttemptView) -> None:
        if self._out is not None:
            self._out.close()
        self._out = None
        self._number = attempt.number + 1
        self.news = True
        if attempt.state != "Succeeded":
            self._cli.say(attempt_line(attempt))
