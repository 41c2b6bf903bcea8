"""``holdfast preempt``: stop running work to free its place."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.commands.steering.steer import SteerOptions, ask_any, ask_together, chosen_of, each, tell_all
from holdfast.cli.flags import Flags
from holdfast.cli.selection import Selected, chooses, read_choice
from holdfast.domain.terms.kinds import JOB
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.jobs import JobSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class PreemptOptions(SteerOptions):
    jobs: Annotated[
        list[str], typer.Argument(metavar="[JOB|NODE]...", help="Jobs and arrays, or nodes for all that runs there.")
    ] = field(default_factory=list)
    node: Annotated[
        list[str],
        typer.Option("--node", metavar="NODE", help="A node, even if a job has the same name. Repeatable."),
    ] = field(default_factory=list)


def preempt(options: PreemptOptions, cli: Cli) -> int:
    """Preempt running jobs, the running tasks of arrays, or all that runs on a node.

    Programs are warned and stopped, and the job fails as Preempted. A rule for Preempted decides what follows; without
    one, the job runs again at once, which uses none of its retries.
    """
    flags, choice = Flags(), None
    if options.jobs or options.every or chooses(options) or not options.node:
        choice = read_choice(options, flags, names=options.jobs, every=options.every, states=JOB.steered["preempt"])
    flags.finish()
    with cli.connect() as client:
        targets = chosen_of(client, options, choice, "preempt", cli) if options.jobs or choice is not None else ()
        alone, done = ask_together(targets, partial(client.preempt_many, reason=options.reason))
        tell_all(done, "preempt", cli)
        nodes = [Selected(name, name) for name in options.node]
        code = each(nodes, partial(_of_node, client, options.reason, cli), "preempt", cli)
        return each(alone, partial(_of_any, client, options.reason, cli), "preempt", cli) or code


def _of_node(client: Client, reason: str, cli: Cli, selected: Selected) -> list[JobSummary]:
    preempted = client.preempt_node(selected.name, reason=reason)
    if not preempted:
        cli.say(f"nothing runs on node {selected.name}")
    return preempted


def _of_any(client: Client, reason: str, cli: Cli, selected: Selected) -> Selected | list[JobSummary]:
    try:
        return ask_any(client, "preempt", reason, selected)
    except NotFound as error:
        try:
            return _of_node(client, reason, cli, selected)
        except NotFound:
            raise error from None


PREEMPT = Command(
    "preempt",
    PreemptOptions,
    preempt,
    "Steer",
    examples=("holdfast preempt train --reason 'a demo at ten'", "holdfast preempt n1"),
)
