"""``holdfast reprioritize``: change the priority of waiting jobs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.selection import Selected, SelectOptions, confirm, read_choice, select
from holdfast.domain.terms.kinds import JOB
from holdfast.errors import HoldfastError, NotFound

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.client import Client

_STATES = JOB.steered["reprioritize"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReprioritizeOptions(SelectOptions):
    jobs: Annotated[
        list[str], typer.Argument(metavar="[JOB|GROUP]...", help="Jobs, or groups with all of their jobs.")
    ] = field(default_factory=list)
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="N", help="The new priority; higher ones go first.")
    ] = None


def reprioritize(options: ReprioritizeOptions, cli: Cli) -> int:
    """Change the priority by which jobs wait.

    A running job keeps its place, and waits by the new priority if it is retried. The jobs of a group, and those that
    flags select, change together, or not at all if you may not change one of them.
    """
    flags = Flags()
    choice = read_choice(options, flags, names=options.jobs, every=options.every, states=_STATES)
    if options.priority is None:
        flags.wrong("--priority", "is required", hint="holdfast reprioritize train --priority 10")
    flags.finish()
    priority, code = options.priority or 0, exit_codes.OK
    with cli.connect() as client:
        if choice is not None:
            targets = select(client, choice, cli)
            confirm("reprioritize", targets, cli, yes=options.yes)
            client.reprioritize_many(priority, ids=[target.id for target in targets])
            _tell(targets, priority, cli)
        for name in options.jobs:
            try:
                _tell(_named(client, name, priority), priority, cli)
            except HoldfastError as error:
                cli.say(f"error: {name}: {error}")
                code = code or exit_codes.of_error(error)
    return code


def _named(client: Client, name: str, priority: int) -> list[Selected]:
    """Reprioritize a job, or all jobs of a group, and return them."""
    try:
        job = client.reprioritize(name, priority)
    except NotFound:
        jobs_named = [
            Selected(listed_job.id, listed_job.name) for listed_job in client.jobs(group=name, states=_STATES)
        ]
        if not jobs_named:
            raise
        client.reprioritize_many(priority, group=name)
        return jobs_named
    return [Selected(job.id, job.name)]


def _tell(targets: list[Selected], priority: int, cli: Cli) -> None:
    for target in targets:
        cli.output().text(f"{target.id} {target.name} priority {priority} requested")


REPRIORITIZE = Command(
    "reprioritize",
    ReprioritizeOptions,
    reprioritize,
    "Steer",
    examples=("holdfast reprioritize train --priority 10", "holdfast reprioritize sweep/7 --priority -5"),
)
