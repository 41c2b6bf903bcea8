"""``holdfast preempt``: take the places of what runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.commands.steering.steer import SteerOptions, ask_job_or_array, ask_together, chosen_of, tell_all
from holdfast.cli.flags import Flags
from holdfast.cli.selection import Selected, chooses, read_choice
from holdfast.domain.terms.kinds import JOB
from holdfast.errors import HoldfastError, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayView
    from holdfast.wire.jobs import JobSummary

    Act = Callable[[Selected], Sequence[JobSummary | ArrayView]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptOptions(SteerOptions):
    """What ``preempt`` can be told."""

    jobs: Annotated[
        list[str], typer.Argument(metavar="[JOB|NODE]...", help="Jobs and arrays, or nodes with all that runs there.")
    ] = field(default_factory=list)
    node: Annotated[
        list[str],
        typer.Option("--node", metavar="NODE", help="A node, also where a job is called the same. Repeatable."),
    ] = field(default_factory=list)


def preempt(options: PreemptOptions, cli: Cli) -> int:
    """Take the places of running jobs, of the running tasks of arrays, or of all that runs on a node.

    Programs get the warning they requested with `signal`, then SIGTERM and, after their grace period, SIGKILL. The job
    then has failed as Preempted: a rule that names that decides what follows. Without one it runs again at once, which
    uses up none of its own retries.
    """
    flags, wanted = Flags(), None
    if options.jobs or options.every or chooses(options) or not options.node:
        wanted = read_choice(
            options, flags, names=options.jobs, every=options.every, states=JOB.steered["preempt"], array_states=()
        )
    flags.finish()
    with cli.connect() as client:
        meant = chosen_of(client, options, wanted, "preempt", cli) if options.jobs or wanted is not None else ()
        alone, done = ask_together(meant, partial(client.preempt_many, reason=options.reason))
        tell_all(done, "preempt", cli)
        nodes = [Selected(name, name) for name in options.node]
        code = _each(nodes, partial(_of_node, client, options.reason), cli)
        return _each(alone, partial(_of_any, client, options.reason), cli) or code


def _of_node(client: Client, reason: str, one: Selected) -> Sequence[JobSummary]:
    return client.preempt_node(one.name, reason=reason)


def _of_any(client: Client, reason: str, one: Selected) -> Sequence[JobSummary | ArrayView]:
    job, array = partial(client.preempt, reason=reason), partial(client.preempt_array, reason=reason)
    try:
        return [ask_job_or_array(one, job, array)]
    except NotFound as error:
        try:
            return _of_node(client, reason, one)
        except NotFound:
            raise error from None


def _each(meant: Iterable[Selected], act: Act, cli: Cli) -> int:
    """Ask for everything, also after one refused; the exit code is the first refusal's."""
    code = exit_codes.OK
    for one in meant:
        try:
            found = act(one)
        except HoldfastError as error:
            cli.say(f"error: {one.name}: {error}")
            code = code or exit_codes.of_error(error)
            continue
        for job in found:
            cli.output().text(f"{job.id} {job.name} preempt requested")
        if not found:
            cli.say(f"nothing runs on node {one.name}")
    return code


PREEMPT = Command(
    "preempt",
    PreemptOptions,
    preempt,
    "Steer",
    examples=("holdfast preempt train --reason 'a demo at ten'", "holdfast preempt n1"),
)
