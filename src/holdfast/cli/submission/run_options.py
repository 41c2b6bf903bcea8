"""The flags of ``holdfast run``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, TypeVar

import typer

from holdfast.cli.options import AfterOption, ExportOption, SecretEnvOption  # noqa: TC001 - the options are looked up when they are read
from holdfast.domain.terms.settings import SETTINGS

T = TypeVar("T")
Text = str | None


def _with_settings(options: type[T]) -> type[T]:
    """Add the flags of the plain settings, which are listed before ``--signal``."""
    hints = options.__annotations__
    names = [*hints]
    later = {name: hints.pop(name) for name in names[names.index("signal") :]}
    for setting in SETTINGS:
        if setting.help:
            option = typer.Option(setting.flag, metavar=setting.metavar, help=setting.help)
            hints[setting.attribute] = Annotated[Text, option]
            setattr(options, setting.attribute, None)
    hints |= later
    return options


@dataclass(frozen=True, slots=True, kw_only=True)
@_with_settings
class RunOptions:
    """The options of ``run``."""

    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The program and its arguments, after --.")]
    name: Annotated[Text, typer.Option(help="The job's name; default the program's.")] = None
    queue: Annotated[Text, typer.Option(help="The queue to wait in.")] = None
    retries: Annotated[Text, typer.Option(metavar="N", help="Retry after a failure, up to N times.")] = None
    policy: Annotated[
        list[str],
        typer.Option(metavar="NAME|FILE", help="A stored retry policy, or a file with one. Repeatable, in order."),
    ] = field(default_factory=list)
    retry_on_exit: Annotated[
        list[str],
        typer.Option(metavar="CODES", help="Retry only after these exit codes, such as 137,143."),
    ] = field(default_factory=list)
    no_retry_on_exit: Annotated[
        list[str],
        typer.Option(
            metavar="CODES", help="Never retry after these exit codes; takes precedence over --retry-on-exit."
        ),
    ] = field(default_factory=list)
    backoff: Annotated[Text, typer.Option(metavar="DURATION", help="Delay before the first retry, such as 1s.")] = None
    max_backoff: Annotated[Text, typer.Option(metavar="DURATION", help="Longest delay between retries.")] = None
    multiplier: Annotated[Text, typer.Option(metavar="X", help="Factor by which each delay grows; default 2.")] = None
    signal: Annotated[
        Text,
        typer.Option(
            metavar="[NAME@]DURATION",
            help="Warn the program this long before its deadline, such as USR2@2m.",
        ),
    ] = None
    stall_no_output: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt that prints nothing for this long, such as 10m.")
    ] = None
    stall_no_progress: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt whose progress file does not change for this long.")
    ] = None
    stall_idle_device: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt whose GPUs are idle for this long, such as 15m.")
    ] = None
    cpus: Annotated[Text, typer.Option(metavar="N", help="Cores for each rank, such as 2, 0.5 or 500m.")] = None
    memory: Annotated[Text, typer.Option(metavar="SIZE", help="Memory limit of each rank, such as 2Gi.")] = None
    gpus: Annotated[
        Text, typer.Option(metavar="N", help="GPUs for each rank: a number, a share of one such as 0.25, or 'shared'.")
    ] = None
    gpu_type: Annotated[Text, typer.Option(metavar="PATTERN", help="GPUs of this model only, such as 'A100*'.")] = None
    gpu_memory: Annotated[
        Text, typer.Option(metavar="SIZE", help="GPUs with at least this much memory, such as 40Gi.")
    ] = None
    resource: Annotated[
        list[str],
        typer.Option(
            "--resource",
            metavar="NAME=AMOUNT",
            help="A named resource that each rank needs, such as licence/matlab=1. Repeatable.",
        ),
    ] = field(default_factory=list)
    env: Annotated[
        list[str],
        typer.Option(
            "--env",
            "-e",
            metavar="K[=V]",
            help="Set an environment variable; K alone passes on its current value. Repeatable.",
        ),
    ] = field(default_factory=list)
    export: ExportOption = None
    secret_env: SecretEnvOption = field(default_factory=list)
    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Label the job, to find it again. Repeatable."),
    ] = field(default_factory=list)
    group: Annotated[
        Text, typer.Option("--group", metavar="GROUP", help="Put the job into a group, such as sweeps/7.")
    ] = None
    workdir: Annotated[
        Text, typer.Option(metavar="DIR", help="The program's working directory; default the current one.")
    ] = None
    array: Annotated[
        Text, typer.Option(metavar="INDICES", help="Run a task for each index: 0-99, or 0-99%8 for 8 at a time.")
    ] = None
    each: Annotated[
        Text, typer.Option(metavar="FILE", help="Run a task for each line, which replaces {}; '-' is standard input.")
    ] = None
    matrix: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES...",
            help="Run a task for each combination, such as lr=0.1,0.01 seed=1..5; {lr} is replaced. Repeatable.",
        ),
    ] = field(default_factory=list)
    max_running: Annotated[Text, typer.Option(metavar="N", help="How many tasks of an array run at once.")] = None
    max_failures: Annotated[
        Text, typer.Option(metavar="N", help="Cancel an array when more than N of its tasks fail.")
    ] = None
    success: Annotated[
        Text, typer.Option(metavar="all|any|N", help="Tasks of an array that must succeed; default all.")
    ] = None
    after: AfterOption = field(default_factory=list)
    notify: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[:EVENTS]",
            help="Notify this notifier at the end and on hold, or on these events: end, failure, hold, stall, "
            "recovery, retry, exhausted. Repeatable.",
        ),
    ] = field(default_factory=list)
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the job's id and return at once.")] = False
