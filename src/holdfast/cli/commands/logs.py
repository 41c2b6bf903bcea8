"""``holdfast logs``: what a job printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.follow import ENDED, Follower, Prefixed, RankLog
from holdfast.cli.options import AttemptOption, JobArgument
from holdfast.cli.pacing import Pace
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsOptions:
    """What ``logs`` can be told."""

    job: JobArgument
    attempt: AttemptOption = None
    rank: Annotated[str | None, typer.Option("--rank", metavar="R", help="Only this rank of a gang, from 0.")] = None
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job, or the attempt, has ended.")] = (
        False
    )


def logs(options: LogsOptions, cli: Cli) -> int:
    """Print what a job printed.

    Prints the newest attempt; each line of a gang follows its rank. With --follow and no --attempt, later attempts
    are printed too.
    """
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    rank = flags.integer("--rank", options.rank)
    flags.finish()
    with cli.connect() as client:
        job = client.job(options.job)
        if rank is not None and rank >= job.gang:
            msg = f"job {job.name} has no rank {rank}; its ranks are 0 to {job.gang - 1}"
            raise NotFound(msg)
        ranks = range(job.gang) if rank is None else (rank,)
        if options.follow and attempt is None:
            _follow_job(Follower(client, job.id, cli, begin=job.attempt or 1, ranks=ranks), cli)
        elif job.attempts or attempt is not None:
            _print(client, (job.id, attempt or job.attempt), ranks, cli, follow=options.follow)
        else:
            cli.say(f"job {job.name} has not started yet{f': {job.reason}' if job.reason else ''}")
    return exit_codes.OK


def _follow_job(follower: Follower, cli: Cli) -> None:
    pace = Pace(cli.sleep)
    while follower.look().state not in ENDED:
        pace.rest(news=follower.news)


def _print(client: "Client", address: tuple[str, int], ranks: Sequence[int], cli: Cli, *, follow: bool) -> None:
    """Print one attempt, once or until its logs are finished."""
    job_id, number = address
    known = {attempt.number for attempt in client.attempts(job_id)}
    if number not in known:
        msg = f"job {job_id} has no attempt {number}; it has had {len(known)}"
        raise NotFound(msg)
    out = Prefixed(cli.stdout, many=len(ranks) > 1)
    readers = [RankLog(client, job_id, number, rank) for rank in ranks]
    pace = Pace(cli.sleep)
    while True:
        texts = [(reader.rank, reader.read()) for reader in readers]
        for rank, text in texts:
            out.write(rank, text)
        if not follow or all(reader.finished for reader in readers):
            break
        pace.rest(news=any(text for _, text in texts))
    out.close()


LOGS = Command(
    "logs", LogsOptions, logs, "Look", examples=("holdfast logs train -f", "holdfast logs train --attempt 1")
)
