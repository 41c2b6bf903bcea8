"""``holdfast logs``: what a job printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import AttemptOption
from holdfast.cli.watching.follow import ENDED, Follower, Prefixed, RankLog, Shown, many_ranks, ranks_of, tell_left_out
from holdfast.cli.watching.pacing import Pace
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast.wire.jobs import AttemptView, JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsOptions:
    """What ``logs`` can be told."""

    job: Annotated[
        str, typer.Argument(metavar="[JOB]", help="A job's id, its name (the newest of that name), or start of its id.")
    ] = ""
    jobset: Annotated[
        str | None, typer.Option("--jobset", metavar="NAME", help="Every job of this job set, instead of JOB.")
    ] = None
    attempt: AttemptOption = None
    rank: Annotated[
        str | None,
        typer.Option(
            "--rank",
            metavar="R",
            help="Only this rank of a gang, or this completion index of a job made of pods, from 0.",
        ),
    ] = None
    every: Annotated[
        bool, typer.Option("--all", help="For a job made of pods: also print the logs of pods that were replaced.")
    ] = False
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow until the job, or the attempt, has ended.")] = (
        False
    )


def logs(options: LogsOptions, cli: Cli) -> int:
    """Print what a job printed, or all jobs of a job set.

    Prints the newest attempt; each line of a gang follows its rank. With --follow and no --attempt, later attempts
    are printed too. In a job made of pods, a rank is a completion index, and the newest run of each is printed; with
    --all also those before it. A line on standard error marks where one run ends and the next begins. With --jobset
    each line follows its job.
    """
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    rank = flags.integer("--rank", options.rank)
    if bool(options.job) is (options.jobset is not None):
        flags.wrong("JOB", "is required, or --jobset NAME, and not both", hint="holdfast logs train")
    if options.jobset is not None and (options.attempt or options.rank):
        flags.wrong("--jobset", "prints all ranks of the newest attempts", hint="ask for one job of the set")
    flags.finish()
    if options.jobset is not None:
        return _logs_of_set(options, options.jobset, cli)
    with cli.connect() as client:
        job = client.job(options.job)
        _check_rank(job, rank)
        ranks = None if rank is None else (rank,)
        if options.follow and attempt is None:
            begin = job.attempt or 1
            _follow_job(Follower(client, job.id, cli, Shown(begin, ranks, not options.every)), cli)
        elif job.attempts or attempt is not None:
            found = _attempt(job, attempt or job.attempt)
            newest = job.pods is not None and not options.every
            wanted = ranks_of(job, found) if ranks is None else ranks
            readers = [RankLog(client, job.id, found.number, one, newest=newest) for one in wanted]
            many = many_ranks(job) if ranks is None else False
            _print(readers, Prefixed(cli.stdout, cli.say, many=many), cli, follow=options.follow)
        else:
            cli.say(f"job {job.name} has not started yet{f': {job.reason}' if job.reason else ''}")
    return exit_codes.OK


def _logs_of_set(options: LogsOptions, name: str, cli: Cli) -> int:
    """Print the newest attempts of all jobs of a set; following, until the set has ended, later ones too."""
    pace = Pace(cli.sleep)
    with cli.connect() as client:
        found = client.job_set(name)
        followers = [
            Follower(client, job.id, cli, Shown(job.attempt or 1, newest=not options.every, of=job.name))
            for job in client.job_set_jobs(found.id)
        ]
        while True:
            over = not options.follow or client.job_set(found.id).terminal is not None
            for follower in followers:
                follower.look()
            if over:
                break
            pace.rest(news=any(follower.news for follower in followers))
        for follower in followers:
            follower.close()
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


def _print(readers: Sequence[RankLog], out: Prefixed, cli: Cli, *, follow: bool) -> None:
    """Print one attempt, once or until its logs are finished."""
    pace = Pace(cli.sleep)
    news = [reader.print(out) for reader in readers]
    tell_left_out(readers, cli)
    while follow and not all(reader.finished for reader in readers):
        pace.rest(news=any(news))
        news = [reader.print(out) for reader in readers]
    out.close()


LOGS = Command(
    "logs",
    LogsOptions,
    logs,
    "Look",
    examples=("holdfast logs train -f", "holdfast logs train --attempt 1", "holdfast logs --jobset train"),
)
