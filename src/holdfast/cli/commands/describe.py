"""``holdfast describe``: everything about one thing, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.nouns import OF_WORK, Noun, read_noun
from holdfast.cli.printing import plain
from holdfast.cli.render.describe import job_facts, job_sections
from holdfast.cli.render.jobsets import jobset_facts, jobset_sections
from holdfast.cli.things import READERS
from holdfast.cli.watching.staleness import note_if_stale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.context import Cli
    from holdfast.cli.nouns import NounName
    from holdfast.cli.render.output import Output
    from holdfast.cli.render.words import Table


_LATEST = 20
"""Entries of a job set's log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeOptions:
    what: Annotated[list[str], typer.Argument(metavar="[KIND] NAME", help="Without a KIND, a job: its id or name.")]


def describe(options: DescribeOptions, cli: Cli) -> int:
    """Describe a job with its attempts, runs and history, a job set, or a queue, retry policy, category or node.

    A job set is shown with its conditions, replicated jobs, jobs and pods, and its latest decisions and events. A long
    history is shown in part, with the command that shows all of it.
    """
    noun, names = _target(options.what)
    with cli.connect() as client:
        for place, name in enumerate(names):
            if place:
                cli.output().text("" if noun in OF_WORK else "---")
            thing = READERS[noun].fetched(client, name)
            if noun in OF_WORK:
                note_if_stale(client, cli, thing)
            if noun == Noun.JOB:
                sections = job_sections(thing, client.history(thing.id), now_s=cli.clock())
                _print(job_facts(thing), sections, cli.output())
            elif noun == Noun.JOB_SET:
                _print(
                    jobset_facts(thing),
                    jobset_sections(thing, client.last_job_set_log(thing.id, tail=_LATEST), now_s=cli.clock()),
                    cli.output(),
                )
            else:
                cli.output().document(plain(thing), "yaml")
    return exit_codes.OK


def _target(words: list[str]) -> tuple[NounName, list[str]]:
    """Tell a kind from a job's name; a single word is always a job."""
    if len(words) > 1:
        return read_noun(words[0], tuple(READERS)), words[1:]
    return Noun.JOB, words


def _print(facts: Sequence[tuple[str, str]], sections: Sequence[tuple[str, Table]], output: Output) -> None:
    output.facts(facts)
    for title, table in sections:
        output.text("")
        output.heading(title)
        output.table(*table)


DESCRIBE = Command(
    "describe",
    DescribeOptions,
    describe,
    "Look",
    examples=("holdfast describe train", "holdfast describe jobset train"),
)
