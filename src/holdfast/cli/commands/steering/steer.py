"""``holdfast cancel``, ``hold``, ``release`` and ``retry``: what a user can ask of jobs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import OF_WORK, OWNERS, Noun, nouns_with
from holdfast.cli.options import ReasonOption
from holdfast.cli.selection import Chosen, Selected, SelectOptions, confirm, named, read_choice, select
from holdfast.cli.watching.waiting import WaitGoal, wait_for, wait_for_owners
from holdfast.domain.terms.kinds import ARRAY, JOB
from holdfast.errors import Conflict, Forbidden, HoldfastError, NotFound

if TYPE_CHECKING:
    from holdfast.client import Client
    from holdfast.wire.jobs import JobSummary
    from holdfast.wire.workloads import WorkloadView

    Act = Callable[[Selected], Selected | JobSummary | list[JobSummary]]

_AT_ONCE = 5000
"""Jobs of one request."""
_SHORT = ("cpu", "memory", "gpu")
"""Short forms of ``resources.cpu`` and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SteerOptions(SelectOptions):
    reason: ReasonOption = ""


SetOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="FIELD=VALUE",
        help="Change the job: memory=4Gi, deadline=2h, ...; FIELD= removes it. Repeatable.",
    ),
]
EnvOption = Annotated[
    list[str], typer.Option("--env", "-e", metavar="K[=V]", help="Set a variable; K alone takes its current value.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryOptions(SteerOptions):
    set: SetOption = field(default_factory=list)
    env: EnvOption = field(default_factory=list)


def cancel(options: SteerOptions, cli: Cli) -> int:
    """Cancel jobs, or arrays with all of their tasks.

    Running programs get SIGTERM and, after their grace period, SIGKILL. A cancelled job is never retried automatically.
    Without a server the command stops the programs itself and ends when they have; it starts no other jobs.
    """
    flags = Flags()
    choice = _read(options, flags, "cancel")
    flags.finish()
    unserved = cli.is_unserved()
    with cli.connect(drive=unserved, places=False) as client:
        targets = chosen_of(client, options, choice, "cancel", cli)
        alone, cancelled = ask_together(targets, partial(client.cancel_many, reason=options.reason))
        tell_all(cancelled, "cancel", cli)

        def ask(target: Selected) -> Selected:
            cancelled.append(ask_any(client, "cancel", options.reason, target))
            return cancelled[-1]

        code = each(alone, ask, "cancel", cli)
        if unserved:
            jobs, arrays = (
                [selected.id for selected in cancelled if selected.noun == noun] for noun in (Noun.JOB, Noun.ARRAY)
            )
            code = wait_for(client, jobs, WaitGoal(state="Cancelled"), cli) or code
            code = wait_for_owners(client, arrays, WaitGoal("Cancelled", kind=ARRAY), cli) or code
        return code


def ask_any(client: "Client", act: str, reason: str, selected: Selected) -> Selected:
    """Request a verb of a piece of work; without its kind, of the first with that name.

    Raises:
        NotFound: There is none; without a kind, the error is the one for a job.
    """
    refused: NotFound | None = None
    for noun in (selected.noun,) if selected.noun else nouns_with(act):
        ask: Callable[..., JobSummary | WorkloadView] = client.ask if noun == Noun.JOB else client.of(OF_WORK[noun]).ask
        try:
            answer = ask(selected.id, act, reason=reason)
        except NotFound as error:
            refused = refused or error
        else:
            return Selected(answer.id, answer.name, noun)
    raise refused or NotFound(f"{selected.name} does not exist")


def hold(options: SteerOptions, cli: Cli) -> int:
    """Keep jobs and arrays from running until they are released.

    A running job is warned and stopped, which uses up none of its retries; its next attempt begins when it is released.
    No task of a held array starts, and no new ones are created; running tasks continue, and one that fails is held
    before its retry.
    """
    return _keep(options, "hold", cli)


def release(options: SteerOptions, cli: Cli) -> int:
    """Release held jobs and arrays."""
    return _keep(options, "release", cli)


def _keep(options: SteerOptions, verb: str, cli: Cli) -> int:
    return _steer(options, verb, lambda client: partial(ask_any, client, verb, options.reason), cli)


def retry(options: RetryOptions, cli: Cli) -> int:
    """Start another attempt of jobs that have ended, or that wait for their retry.

    It remains the same job. No retry policy is consulted, and no limit counts the attempt. A job is refused if what it
    waits for can no longer happen: retry that with it, or drop it with --set dependsOn=. --set and --env change the job
    from now on. --all, a label or a queue selects only jobs that failed or were cancelled.
    """
    flags = Flags()
    changes = read_changes(options.set, options.env, flags, cli)
    code = _steer(
        options,
        "retry",
        lambda client: lambda job: client.retry(job.id, reason=options.reason, changes=changes),
        cli,
        flags,
    )
    cli.note_unserved()
    return code


def read_changes(fields: Sequence[str], env: Sequence[str], flags: Flags, cli: Cli) -> dict[str, Any]:
    """Read ``--set`` and ``--env`` as a merge patch of a manifest."""
    changes: dict[str, Any] = {}
    for name, value in flags.pairs("--set", fields).items():
        *way, last = (f"resources.{name}" if name in _SHORT else name).split(".", 1)
        part = changes
        for step in way:
            part = part.setdefault(step, {})
        part[last] = int(value) if value.isascii() and value.isdigit() else value
        if not value and way[:1] != ["env"]:
            part[last] = None
    variables = flags.pairs("--env", env, defaults=cli.environ)
    if variables:
        changes["env"] = {**changes.get("env", {}), **variables}
    return changes


def _steer(
    options: SteerOptions, verb: str, act: "Callable[[Client], Act]", cli: Cli, flags: Flags | None = None
) -> int:
    flags = flags or Flags()
    choice = _read(options, flags, verb)
    flags.finish()
    with cli.connect() as client:
        targets = chosen_of(client, options, choice, verb, cli)
        return each(targets, act(client), verb, cli, in_any_order=verb == "retry" and len(targets) > 1)


def _read(options: SteerOptions, flags: Flags, verb: str) -> Chosen | None:
    others = {noun: kind.steered[verb] for noun, kind in OWNERS.items() if verb in kind.steered}
    return read_choice(options, flags, names=options.jobs, every=options.every, states=JOB.steered[verb], others=others)


def chosen_of(
    client: "Client", options: SteerOptions, choice: Chosen | None, verb: str, cli: Cli
) -> Sequence[Selected]:
    """Return the selected work, after the user has confirmed what filters selected."""
    if choice is None:
        return named(options.jobs)
    targets: Sequence[Selected] = select(client, choice, cli)
    if choice.group is not None:
        targets = _without_sets(client, targets, choice.group, cli)
    confirm(verb, targets, cli, yes=options.yes)
    return targets


def _without_sets(client: "Client", targets: Sequence[Selected], group: str, cli: Cli) -> Sequence[Selected]:
    """Leave out the jobs of job sets, which only their sets control, and say so."""
    left = [target for target in targets if not target.of_set]
    if len(left) < len(targets):
        names = ", ".join(target.name for target in client.job_sets(group=group) if target.terminal is None)
        cli.say(f"left as they are: job sets {names}; see holdfast suspend, resume, restart, delete")
    return left


def ask_together(
    targets: Sequence[Selected], ask: "Callable[[Sequence[str]], Sequence[str]]"
) -> tuple[list[Selected], list[Selected]]:
    """Send one request for all jobs that filters selected; returns the work that needs its own request, and the rest.

    Arrays, jobs of sets and named jobs need their own requests. So do all jobs if the caller lacks the right for one of
    them: then only that one is refused, with its own error.
    """
    many = [target for target in targets if target.is_chosen and not target.of_set]
    if len(many) <= 1:
        return list(targets), []
    done: set[str] = set()
    for start in range(0, len(many), _AT_ONCE):
        try:
            done |= {*ask([target.id for target in many[start : start + _AT_ONCE]])}
        except Forbidden:
            break
    return [target for target in targets if target.id not in done], [target for target in many if target.id in done]


def tell_all(done: Sequence[Selected], verb: str, cli: Cli) -> None:
    """Print a line for each of many jobs."""
    for target in done:
        cli.output().text(f"{target.id} {target.name} {verb} requested")


def each(targets: Sequence[Selected], act: "Act", verb: str, cli: Cli, *, in_any_order: bool = False) -> int:
    """Act on all targets, also after a refusal; returns the exit code of the first refusal.

    With ``in_any_order``, a target whose refusal may only mean that another comes first is tried again at the end.
    """
    code, postponed = exit_codes.OK, list[Selected]()
    for target in targets:
        try:
            answer = act(target)
        except HoldfastError as error:
            if in_any_order and isinstance(error, Conflict):
                postponed.append(target)
                continue
            cli.say(f"error: {target.name}: {error}")
            code = code or exit_codes.of_error(error)
            continue
        for job in answer if isinstance(answer, list) else [answer]:
            cli.output().text(f"{job.id} {job.name} {verb} requested")
    if postponed:
        more = 1 < len(postponed) < len(targets)
        refused = each(postponed, act, verb, cli, in_any_order=more)
        code = code or refused
    return code


CANCEL = Command(
    "cancel",
    SteerOptions,
    cancel,
    "Steer",
    examples=("holdfast cancel train --reason 'wrong data'", "holdfast cancel -l team=vision -q gpu --yes"),
)
HOLD = Command("hold", SteerOptions, hold, "Steer", examples=("holdfast hold -q gpu --all",))
RELEASE = Command("release", SteerOptions, release, "Steer")
RETRY = Command(
    "retry",
    RetryOptions,
    retry,
    "Steer",
    examples=("holdfast retry train --set memory=8Gi", "holdfast retry --cause oom_killed --since 2h --set memory=8Gi"),
)
