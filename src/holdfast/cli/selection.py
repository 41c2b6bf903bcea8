"""Selects the work that a command acts on, by name or by filters."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from holdfast.cli.nouns import OF_WORK, Noun, NounName, find_noun
from holdfast.cli.options import GroupOption  # noqa: TC001 - the options are read from it
from holdfast.domain.terms.kinds import JOB
from holdfast.errors import InvalidRequest, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.flags import Flags
    from holdfast.client import Client
    from holdfast.client.jobs import JobsWanted
    from holdfast.wire.jobs import JobSummary, JobView

NO_OTHERS: Mapping[NounName, Sequence[str]] = MappingProxyType({})
AllOption = Annotated[bool, typer.Option("--all", help="All jobs that the command applies to.")]
_EXAMPLE = "name jobs, or select them by a flag: -l team=vision"
_MOST_NAMED = 5
"""Names in a request for confirmation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChooseOptions:
    """Filters that select jobs, instead of their names."""

    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Jobs with this label. Repeatable; all must match."),
    ] = field(default_factory=list)
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Jobs of this queue.")] = None
    group: GroupOption = None
    state: Annotated[
        list[str],
        typer.Option("--state", "-s", metavar="STATE", help="Jobs in this state. Repeatable, or comma-separated."),
    ] = field(default_factory=list)
    cause: Annotated[
        list[str],
        typer.Option(
            "--cause", metavar="CAUSE", help="Jobs whose last failure has this cause or category. Repeatable."
        ),
    ] = field(default_factory=list)
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="DURATION", help="Jobs submitted or ended within this time, such as 2h."),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectOptions(ChooseOptions):
    """Filters that select jobs, or names of jobs."""

    jobs: Annotated[
        list[str],
        typer.Argument(metavar="[JOB]...", help="Ids, names (the newest of that name), or starts of ids."),
    ] = field(default_factory=list)
    every: AllOption = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before acting on several jobs.")] = False


class Selected(NamedTuple):
    """A piece of work."""

    id: str
    name: str
    noun: NounName | None = None
    """Its kind; ``None`` if the user did not say."""
    of_set: bool = False
    """Whether it is a job of a job set."""
    is_chosen: bool = False
    """Whether filters selected it, and not its name."""


class Chosen(NamedTuple):
    """The filters that select jobs."""

    states: Sequence[str]
    labels: Mapping[str, str]
    queue: str | None
    causes: frozenset[str]
    since_s: float | None
    others: Mapping[NounName, Sequence[str]]
    """Other kinds of work to select, and in which states."""
    group: str | None = None


def read_choice(
    options: ChooseOptions,
    flags: Flags,
    *,
    names: Sequence[str],
    every: bool,
    states: Sequence[str],
    others: Mapping[NounName, Sequence[str]] = NO_OTHERS,
) -> Chosen | None:
    """Read the filters; ``None`` if the jobs are named.

    Args:
        options: The flags as typed.
        flags: Collects problems.
        names: Names of jobs.
        every: Whether ``--all`` is given.
        states: States to select without ``--state``.
        others: Other kinds of work to select, each with such states.
    """
    flags_given = {**_given(options), "--all": every}
    used = [flag for flag, value in flags_given.items() if value]
    if names and used:
        flags.wrong(used[0], "selects jobs, but jobs are named already", hint=_EXAMPLE)
    if not names and not used:
        flags.wrong("JOB", "is required, unless a flag selects jobs", allowed=tuple(flags_given), hint=_EXAMPLE)
    states_given = [flags.choice("--state", state, JOB.states) for state in flags.names(options.state)]
    labels = flags.pairs("--label", options.label)
    since_s = flags.duration("--since", options.since)
    causes = frozenset(flags.names(options.cause))
    if states_given:
        others = {noun: [state for state in its if state in states_given] for noun, its in others.items()}
    others = NO_OTHERS if causes else others
    choice = Chosen(states_given or states, labels, options.queue, causes, since_s, others, options.group)
    return None if names else choice


def _given(options: ChooseOptions) -> dict[str, object]:
    return {
        "--label": options.label,
        "--queue": options.queue,
        "--group": options.group,
        "--state": options.state,
        "--cause": options.cause,
        "--since": options.since,
    }


def chooses(options: ChooseOptions) -> bool:
    """Whether any filter is given."""
    return any(_given(options).values())


def select(client: Client, choice: Chosen, cli: Cli) -> list[Selected]:
    """Return the selected work, without tasks of arrays: jobs in order of submission, then other kinds.

    Raises:
        NotFound: Nothing matches.
    """
    jobs = [
        Selected(job.id, job.name, Noun.JOB, of_set=job.job_set is not None, is_chosen=True)
        for job in _jobs(client, choice)
        if _is_recent(job.submitted_at, job.ended_at, choice, cli)
    ]
    owners = [
        Selected(owner.id, owner.name, noun)
        for noun, states in choice.others.items()
        if states
        for owner in client.of(OF_WORK[noun]).list(labels=dict(choice.labels), states=states, group=choice.group)
        if choice.queue in {None, owner.queue}
        and _is_recent(owner.created_at, getattr(owner, "ended_at", None), choice, cli)
    ]
    if not jobs and not owners:
        msg = "no job matches"
        raise NotFound(msg, hint="list jobs with: holdfast get jobs")
    return jobs + owners


def _jobs(client: Client, choice: Chosen) -> Iterator[JobSummary]:
    every = client.full_jobs if choice.causes else client.jobs
    where: JobsWanted = {"states": choice.states, "labels": choice.labels, "queue": choice.queue, "tasks": False}
    where["group"] = choice.group
    for job in every(**where):
        if not choice.causes or _has_cause(job, choice.causes):  # type: ignore[arg-type]  # full ones
            yield job


def _has_cause(job: JobView, causes: frozenset[str]) -> bool:
    failed = next((attempt for attempt in reversed(job.attempts) if attempt.cause), None)
    return failed is not None and not causes.isdisjoint({failed.cause, failed.category, failed.subcategory})


def _is_recent(submitted: str, ended: str | None, choice: Chosen, cli: Cli) -> bool:
    if choice.since_s is None:
        return True
    return datetime.fromisoformat(ended or submitted).timestamp() >= cli.clock() - choice.since_s


def confirm(verb: str, targets: Sequence[Selected], cli: Cli, *, yes: bool) -> None:
    """Ask the user, on a terminal, before acting on jobs that filters selected.

    Raises:
        InvalidRequest: The answer is no.
    """
    names = [target.name for target in targets]
    shown = ", ".join(names[:_MOST_NAMED]) + (f" and {len(names) - _MOST_NAMED} more" if names[_MOST_NAMED:] else "")
    count = f"{len(targets)} job{'' if len(targets) == 1 else 's'}"
    if yes or not cli.stdin.isatty():
        cli.say(f"{verb}: {count}: {shown}")
        return
    cli.stderr.write(f"{verb} {count}: {shown}? [y/N] ")
    cli.stderr.flush()
    if cli.stdin.readline().strip().lower() not in {"y", "yes"}:
        msg = "nothing was done"
        raise InvalidRequest(msg)


def named(words: Iterable[str]) -> list[Selected]:
    """Return work that the user named, as ``KIND/NAME`` or by name alone."""
    return [_named(word) for word in words]


def _named(word: str) -> Selected:
    kind, slash, name = word.partition("/")
    noun = find_noun(kind) if slash else None
    return Selected(word, word) if noun is None else Selected(name, name, noun)
