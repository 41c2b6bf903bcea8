"""``holdfast logs``: what a job printed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import AttemptOption, IndexOption
from holdfast.cli.selection import ChooseOptions, chooses, read_choice, select
from holdfast.cli.targets import task_or_job
from holdfast.cli.watching.follow import (
    BOTH,
    ENDED,
    Follower,
    LogSelection,
    Part,
    RankLog,
    many_ranks,
    outputs,
    ranks_of,
    streams_of,
    tell_left_out,
)
from holdfast.cli.watching.pacing import Polling
from holdfast.cli.watching.staleness import note_if_stale
from holdfast.domain.terms.kinds import JOB
from holdfast.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.cli.selection import Chosen
    from holdfast.cli.watching.follow import Prefixed
    from holdfast.client import Client
    from holdfast.wire.jobs import AttemptView, JobSummary, JobView
    from holdfast.wire.jobsets import ChildView

MOST_LINES = 10_000
"""The most that the API returns at once."""


class Excerpt(NamedTuple):
    """The part of a job's log to print."""

    attempt: int | None
    rank: int | None
    tail: int | None
    since: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsOptions(ChooseOptions):
    jobs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[JOB]...", help="Ids, names (the newest of that name), or starts of ids; or jobset/NAME."
        ),
    ] = None
    jobset: Annotated[
        str | None, typer.Option("--jobset", metavar="NAME", help="All jobs of this job set; the same as jobset/NAME.")
    ] = None
    index: IndexOption = None
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
    tail: Annotated[
        str | None,
        typer.Option("--tail", "-n", metavar="LINES", help="Only the last lines of each log, at most 10000."),
    ] = None
    since: Annotated[
        str | None, typer.Option("--since", metavar="DURATION", help="Only lines written within this time, such as 5m.")
    ] = None
    since_time: Annotated[
        str | None,
        typer.Option(
            "--since-time", metavar="TIME", help="Only lines written since this time, such as 2026-11-26T02:19:00Z."
        ),
    ] = None
    timestamps: Annotated[bool, typer.Option("--timestamps", help="Begin each line with the time it was written.")] = (
        False
    )
    stdout: Annotated[
        bool,
        typer.Option("--stdout", help="Only standard output, of jobs that keep the streams apart (logs: separate)."),
    ] = False
    stderr: Annotated[bool, typer.Option("--stderr", help="Only standard error, of such jobs.")] = False
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing until the job, or the attempt, has ended.")
    ] = False


def logs(options: LogsOptions, cli: Cli) -> int:
    """Print the logs of jobs, or of all jobs of a job set.

    Prints the newest attempt; with --follow, later ones too. Lines of a gang are prefixed with their rank, and lines of
    several jobs with their job. In a job made of pods, a rank is a completion index, and the newest run of each is
    printed; a line on standard error marks where one run ends and the next begins. If a job keeps standard output and
    standard error apart, each is printed to its own stream.
    """
    flags = Flags()
    attempt = flags.integer("--attempt", options.attempt, low=1)
    rank = flags.integer("--rank", options.rank)
    tail = flags.integer("--tail", options.tail, high=MOST_LINES)
    index = flags.integer("--index", options.index)
    since = _since(options, flags, cli)
    jobs = options.jobs or []
    if options.index and len(jobs) != 1:
        flags.wrong("--index", "needs one array", hint="holdfast logs sweep --index 7")
    chosen = _chosen(options, flags)
    if (options.jobset is not None or len(jobs) > 1) and (options.attempt or options.rank):
        what = "--jobset" if options.jobset is not None else "JOB"
        flags.wrong(what, "prints all ranks of the newest attempts", hint="name one job for --attempt or --rank")
    if options.stdout and options.stderr:
        flags.wrong("--stderr", "cannot be combined with --stdout", hint="both are printed without these flags")
    flags.finish()
    excerpt = Excerpt(attempt, rank, tail, since)
    if options.jobset is not None:
        return _logs_of_set(options, options.jobset, excerpt, cli)
    if chosen is not None:
        with cli.connect() as client:
            jobs = [chosen_job.id for chosen_job in select(client, chosen, cli)]
    if chosen is not None or len(jobs) > 1:
        return _logs_of_jobs(options, jobs, excerpt, cli)
    return _logs_of_job(options, jobs[0], index, excerpt, cli)


def _since(options: LogsOptions, flags: Flags, cli: Cli) -> "datetime | None":
    """Read the time of the earliest lines to print, to the second."""
    if options.since is not None and options.since_time is not None:
        flags.wrong("--since-time", "cannot be combined with --since")
    ago_s = flags.duration("--since", options.since)
    since = flags.parsed("--since-time", options.since_time, _moment)
    return since if ago_s is None else datetime.fromtimestamp(max(0.0, cli.clock() - ago_s), UTC)


def _moment(text: object) -> datetime:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        msg = f"{text!r} is not a time with its time zone, such as 2026-11-26T02:19:00Z"
        raise ValueError(msg)
    return moment


def _chosen(options: LogsOptions, flags: Flags) -> "Chosen | None":
    """Read the filters that select jobs; ``None`` if jobs or a set are named. Here ``--since`` selects lines."""
    options = replace(options, since=None)
    if chooses(options) and not options.jobs and options.jobset is None:
        return read_choice(options, flags, names=(), every=False, states=JOB.states)
    if bool(options.jobs) is (options.jobset is not None) or chooses(options):
        message = "give either jobs, or --jobset, or flags that select jobs"
        flags.wrong("JOB", message, hint="holdfast logs train")
    return None


def _logs_of_job(options: LogsOptions, reference: str, index: int | None, excerpt: Excerpt, cli: Cli) -> int:
    attempt, rank, tail, since = excerpt
    with cli.connect(attached=options.follow) as client:
        job = task_or_job(client, reference, index, command="logs", what="log")
        note_if_stale(client, cli, job)
        _check_rank(job, rank)
        _check_streams(job, options)
        ranks = None if rank is None else (rank,)
        if options.follow and attempt is None:
            begin = job.attempt or 1
            shown = LogSelection(
                begin, ranks, not options.every, "", tail, _streams(options), since, options.timestamps
            )
            _follow_job(Follower(client, job.id, cli, shown), cli)
        elif job.attempts or attempt is not None:
            shown_attempt = _attempt(job, attempt or job.attempt)
            newest = job.pods is not None and not options.every
            ranks_shown = ranks_of(job, shown_attempt) if ranks is None else ranks
            readers = [
                RankLog(
                    client,
                    job.id,
                    shown_attempt.number,
                    one_rank,
                    Part(newest, tail, stderr, since, options.timestamps),
                )
                for one_rank, stderr in product(ranks_shown, streams_of(job, _streams(options)))
            ]
            many = many_ranks(job) if ranks is None else False
            _print(readers, outputs(cli, many=many), cli, follow=options.follow)
        else:
            cli.say(f"job {job.name} has not started yet{f': {job.reason}' if job.reason else ''}")
    return exit_codes.OK


def _logs_of_set(options: LogsOptions, name: str, excerpt: Excerpt, cli: Cli) -> int:
    """Print the newest attempts of a set's jobs; with --follow also later ones, until the set has ended."""
    with cli.connect(attached=options.follow) as client:
        job_set = client.job_set(name)
        followers = [_beside(client, job, options, excerpt, cli) for job in client.job_set_jobs(job_set.id)]
        _print_all(followers, cli, lambda: not options.follow or client.job_set(job_set.id).terminal is not None)
    return exit_codes.OK


def _logs_of_jobs(options: LogsOptions, names: Sequence[str], excerpt: Excerpt, cli: Cli) -> int:
    """Print the newest attempts of several jobs; with --follow also later ones, until all have ended."""
    with cli.connect(attached=options.follow) as client:
        ids = {job.id: job for job in map(client.job, names)}
        followers = [_beside(client, job, options, excerpt, cli) for job in ids.values()]
        _print_all(followers, cli, lambda: not options.follow or ENDED.issuperset(client.states(list(ids)).values()))
    return exit_codes.OK


def _beside(
    client: "Client", job: "JobSummary | ChildView", options: LogsOptions, excerpt: Excerpt, cli: Cli
) -> Follower:
    shown = LogSelection(
        job.attempt or 1,
        newest=not options.every,
        of=job.name,
        tail=excerpt.tail,
        streams=_streams(options),
        since=excerpt.since,
        timestamps=options.timestamps,
    )
    return Follower(client, job.id, cli, shown)


def _print_all(followers: Sequence[Follower], cli: Cli, is_over: "Callable[[], bool]") -> None:
    pace = Polling(cli.sleep)
    while True:
        over = is_over()
        for follower in followers:
            follower.look()
        if over:
            break
        pace.rest(news=any(follower.news for follower in followers))
    for follower in followers:
        follower.close()


def _follow_job(follower: Follower, cli: Cli) -> None:
    pace = Polling(cli.sleep)
    while follower.look().state not in ENDED:
        pace.rest(news=follower.news)


def _streams(options: LogsOptions) -> Sequence[bool]:
    return tuple(stderr for stderr in BOTH if not (options.stdout if stderr else options.stderr))


def _check_streams(job: "JobView", options: LogsOptions) -> None:
    if (options.stdout or options.stderr) and streams_of(job) != BOTH:
        msg = f"job {job.name} keeps standard output and standard error in one log"
        raise InvalidRequest(msg, hint="submit it with 'logs: separate' to keep them apart")


def _check_rank(job: "JobView", rank: int | None) -> None:
    pods = job.pods
    count = job.gang if pods is None else pods.parallelism if pods.completions is None else pods.completions
    if rank is not None and count is not None and rank >= count:
        msg = f"job {job.name} has no rank {rank}; its ranks are 0 to {count - 1}"
        raise NotFound(msg)


def _attempt(job: "JobView", number: int) -> "AttemptView":
    attempt_found = next((attempt for attempt in job.attempts if attempt.number == number), None)
    if attempt_found is None:
        msg = f"job {job.id} has no attempt {number}; it has had {len(job.attempts)}"
        raise NotFound(msg)
    return attempt_found


def _print(readers: Sequence[RankLog], out: "Mapping[bool, Prefixed]", cli: Cli, *, follow: bool) -> None:
    """Print one attempt, once or until its logs are finished."""
    pace = Polling(cli.sleep)
    news = [reader.print(out[reader.stderr]) for reader in readers]
    tell_left_out(readers, cli)
    while follow and not all(reader.finished for reader in readers):
        pace.rest(news=any(news))
        news = [reader.print(out[reader.stderr]) for reader in readers]
    for writer in out.values():
        writer.close()


LOGS = Command(
    "logs",
    LogsOptions,
    logs,
    "Look",
    examples=(
        "holdfast logs train -f",
        "holdfast logs train --tail 20",
        "holdfast logs train --since 5m --timestamps",
        "holdfast logs train --attempt 1",
        "holdfast logs sweep-1 sweep-2 -f",
        "holdfast logs -l team=vision -s Failed --since 2h --tail 5",
        "holdfast logs jobset/train",
    ),
)
