"""``holdfast suspend`` and ``resume``: stop a job set's pods and keep the set, and let it go on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.each import do_each
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.options import ReasonOption

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True, kw_only=True)
class SuspendOptions:
    """What ``suspend`` and ``resume`` can be told."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help="jobset.")]
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="One or more names.")]
    reason: ReasonOption = ""


def suspend(options: SuspendOptions, cli: Cli) -> int:
    """Suspend job sets.

    Their programs get SIGTERM and, after their grace, SIGKILL; the sets stay, and count no restart.
    """
    read_noun(options.kind, (Noun.JOB_SET,))
    with cli.connect() as client:
        return _each(options, lambda name: client.suspend_job_set(name, reason=options.reason), "suspend", cli)


def resume(options: SuspendOptions, cli: Cli) -> int:
    """Let suspended job sets go on."""
    read_noun(options.kind, (Noun.JOB_SET,))
    with cli.connect() as client:
        return _each(options, lambda name: client.resume_job_set(name, reason=options.reason), "resume", cli)


def _each(options: SuspendOptions, act: "Callable[[str], object]", verb: str, cli: Cli) -> int:
    return do_each(options.names, act, cli, what="jobset", done=f"{verb} requested")


SUSPEND = Command("suspend", SuspendOptions, suspend, "Steer", examples=("holdfast suspend jobset train",))
RESUME = Command("resume", SuspendOptions, resume, "Steer", examples=("holdfast resume jobset train",))
