"""``holdfast suspend`` and ``resume``: stop the pods of a job set or a Job and keep it, and start them again."""

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.nouns import OF_WORK, SINGULAR, Noun, nouns_with, read_noun
from holdfast.cli.options import ReasonOption
from holdfast.cli.targets import do_each, required

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendOptions:
    kind: Annotated[str, typer.Argument(metavar="KIND", help="jobset or job.")]
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names; or KIND/NAME instead of KIND.")
    ] = field(default_factory=list)
    reason: ReasonOption = ""


def suspend(options: SuspendOptions, cli: Cli) -> int:
    """Suspend job sets, or jobs.

    Programs are warned and stopped; no restart or retry is counted. For jobs this is the same as hold.
    """
    return _each(options, "suspend", cli)


def resume(options: SuspendOptions, cli: Cli) -> int:
    """Resume suspended job sets or jobs; for jobs this is the same as release."""
    return _each(options, "resume", cli)


def _each(options: SuspendOptions, verb: str, cli: Cli) -> int:
    noun = read_noun(options.kind, (*nouns_with(verb), Noun.JOB))
    names = required(options.names, "holdfast suspend jobset NAME")
    with cli.connect() as client:
        ask: Callable[..., object] = client.ask if noun == Noun.JOB else client.of(OF_WORK[noun]).ask
        act = {"suspend": "hold", "resume": "release"}[verb] if noun == Noun.JOB else verb
        return do_each(
            names, partial(ask, act=act, reason=options.reason), cli, what=SINGULAR[noun], done=f"{verb} requested"
        )


SUSPEND = Command(
    "suspend", SuspendOptions, suspend, "Steer", examples=("holdfast suspend jobset train", "holdfast suspend job pi")
)
RESUME = Command(
    "resume", SuspendOptions, resume, "Steer", examples=("holdfast resume jobset train", "holdfast resume job pi")
)
