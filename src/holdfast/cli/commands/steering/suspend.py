"""``holdfast suspend`` and ``resume``: stop the pods of a job set or a Job and keep it, and start them again."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.nouns import SINGULAR, Noun, NounName, read_noun
from holdfast.cli.options import ReasonOption
from holdfast.cli.targets import do_each, required

if TYPE_CHECKING:
    from collections.abc import Callable


_KINDS = (Noun.JOB_SET, Noun.JOB)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendOptions:
    """What ``suspend`` and ``resume`` can be told."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help="jobset or job.")]
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names; or KIND/NAME, without KIND.")
    ] = field(default_factory=list)
    reason: ReasonOption = ""


def suspend(options: SuspendOptions, cli: Cli) -> int:
    """Suspend job sets, or jobs.

    Programs get the warning they asked for, SIGTERM and, after their grace period, SIGKILL. The job set or job remains,
    and no restart or retry is counted. For jobs this is the same as hold.
    """
    noun = read_noun(options.kind, _KINDS)
    with cli.connect() as client:
        ask = client.hold if noun == Noun.JOB else client.suspend_job_set
        return _each(options, noun, lambda name: ask(name, reason=options.reason), "suspend", cli)


def resume(options: SuspendOptions, cli: Cli) -> int:
    """Resume suspended job sets or jobs; for jobs this is the same as release."""
    noun = read_noun(options.kind, _KINDS)
    with cli.connect() as client:
        ask = client.release if noun == Noun.JOB else client.resume_job_set
        return _each(options, noun, lambda name: ask(name, reason=options.reason), "resume", cli)


def _each(options: SuspendOptions, noun: NounName, act: "Callable[[str], object]", verb: str, cli: Cli) -> int:
    return do_each(
        required(options.names, "holdfast suspend jobset NAME"), act, cli, what=SINGULAR[noun], done=f"{verb} requested"
    )


SUSPEND = Command(
    "suspend", SuspendOptions, suspend, "Steer", examples=("holdfast suspend jobset train", "holdfast suspend job pi")
)
RESUME = Command(
    "resume", SuspendOptions, resume, "Steer", examples=("holdfast resume jobset train", "holdfast resume job pi")
)
