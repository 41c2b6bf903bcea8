"""``holdfast logs``: what a job printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import AttemptOption, JobArgument
from holdfast.cli.watching.follow import ENDED, Follower, Prefixed, RankLog, many_ranks, ranks_of
from holdfast.cli.watching.pacing import Pace
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView, JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsOptions:
    """What ``logs`` can be told."""

    job: JobArgument
    attempt: AttemptOption = None
    rank: Annotated[
        str | None,
        typer.Option(
            "--rank",
            metavar="R",
            help="Only this rank of a gang, or this completion index of a job made of pods, from 0.",
        ),
    ] = None
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job, or the attempt, has ended.")] = (
        False
    )


def logs(options: LogsOptions, cli: Cli) -> int:
    """Print what a job printed.

    Prints the newest attempt; each line of a gang follows its rank. With --follow and no --attempt, later attempts
    are printed too. Of a job made of pods, a rank is a completion index; pods that took each other's place are
    printed one after the other.
    """
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    rank = flags.integer("--rank", options.rank)
    flags.finish()
    with cli.connect() as client:
        job = client.job(options.job)
        _check_rank(job, rank)
        ranks = None if rank is None else (rank,)
        if options.follow and attempt is None:
            _follow_job(Follower(client, job.id, cli, begin=job.attempt or 1, ranks=ranks), cli)
        elif job.attempts or attempt is not None:
            _print(client, job, _attempt(job, attempt or job.attempt), ranks, cli, follow=options.follow)
        else:
            cli.say(f"job {job.name} has not started yet{f': {job.reason}' if job.reason else ''}")
    return exit_codes.OK


def _follow_job(follower: Follower, cli: Cli) -> None:
    pace = Pace(cli.sleep)
    while follower.look().state not in ENDED:
        pace.rest(news=follower.news)


def _check_rank(job: "JobView", rank: int | None) -> None:
    pods = job.pods
    count = job.gang if pods is None else pods.parallelism if pods.completions is None else pods.completions
    if rank is not None and count is not None and rank >= count:
        msg = f"job {job.name} has no rank {rank}; its ranks are 0 to {count - 1}"
        raise NotFound(msg)


def _attempt(job: "JobView", number: int) -> "AttemptView":
    found = next((attempt for attempt in job.attempts if attempt.number == number), None)
    if found is None:
        msg = f"job {job.id} has no attempt {number}; it has had {len(job.attempts)}"
        raise NotFound(msg)
    return found


def _print(
    client: "Client", job: "JobView", attempt: "AttemptView", ranks: Sequence[int] | None, cli: Cli, *, follow: bool
) -> None:
    """Print one attempt, once or until its logs are finished."""
    wanted = ranks_of(job, attempt) if ranks is None else ranks
    out = Prefixed(cli.stdout, many=many_ranks(job) if ranks is None else len(wanted) > 1)
    readers = [RankLog(client, job.id, attempt.number, rank) for rank in wanted]
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
