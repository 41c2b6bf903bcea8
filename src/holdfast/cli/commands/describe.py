"""``holdfast describe``: everything about one thing, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.printing import plain
from holdfast.cli.render.describe import job_facts, job_sections
from holdfast.cli.things import SHELVES

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.cli.render.output import Output
    from holdfast.wire.jobs import JobView


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions:
    """What ``describe`` can be told."""

    what: Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="Without a KIND, a job: its id or name.")]


def describe(options: DescribeOptions, cli: Cli) -> int:
    """Describe a job with its attempts and runs, or a queue, retry policy, category or node."""
    noun, names = _target(options.what)
    with cli.connect() as client:
        for place, name in enumerate(names):
            if place:
                cli.output().text("" if noun is Noun.JOB else "---")
            thing = SHELVES[noun].fetched(client, name)
            if noun is Noun.JOB:
                _print_job(thing, cli.output())
            else:
                cli.output().document(plain(thing), "yaml")
    return exit_codes.OK


def _target(words: list[str]) -> tuple[Noun, list[str]]:
    """Tell a kind from a job's name; a single word is always a job."""
    if len(words) > 1:
        return read_noun(words[0], tuple(SHELVES)), words[1:]
    return Noun.JOB, words


def _print_job(job: JobView, output: Output) -> None:
    output.facts(job_facts(job))
    for title, table in job_sections(job):
        output.text("")
        output.heading(title)
        output.table(*table)


DESCRIBE = Command("describe", DescribeOptions, describe, "Look", examples=("holdfast describe train",))
