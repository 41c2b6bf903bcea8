"""``holdfast rerun``: tasks of an array run again."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.commands.steering.steer import EnvOption, SetOption, read_changes
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import tell_warnings

_WAYS = ("--failed", "--cancelled", "--cause", "--index")


@dataclass(frozen=True, slots=True, kw_only=True)
class RerunOptions:
    array: Annotated[str, typer.Argument(metavar="ARRAY", help="Its name or id.")]
    failed: Annotated[bool, typer.Option("--failed", help="The tasks that failed.")] = False
    cancelled: Annotated[
        bool,
        typer.Option("--cancelled", help="The tasks that were cancelled, or never created because the array ended."),
    ] = False
    cause: Annotated[
        list[str],
        typer.Option("--cause", metavar="CAUSE", help="The tasks that failed with this cause or category. Repeatable."),
    ] = field(default_factory=list)
    index: Annotated[
        str | None,
        typer.Option(
            "--index", metavar="LIST", help="Only these tasks, such as 3,7-9; without another flag, however they ended."
        ),
    ] = None
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="The new array's name; default ARRAY-rerun-1, -2, ...")
    ] = None
    set: SetOption = field(default_factory=list)
    env: EnvOption = field(default_factory=list)
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print which tasks would be rerun; submit nothing.")] = (
        False
    )


def rerun(options: RerunOptions, cli: Cli) -> int:
    """Rerun the failed tasks of an array as a new array.

    A task keeps its index, its parameters and its checkpoint folder. Limits and policies are the original's, unless
    --set and --env change them. Tasks that were already rerun are left out. Prints the name of the new array.
    """
    flags = Flags()
    changes = read_changes(options.set, options.env, flags, cli)
    causes = flags.names(options.cause)
    if not (options.failed or options.cancelled or causes or options.index is not None):
        flags.wrong("--failed", "say which tasks to rerun", allowed=_WAYS)
    flags.finish()
    from holdfast.wire.arrays import ArrayRerun

    array_rerun = ArrayRerun(
        failed=options.failed,
        cancelled=options.cancelled,
        causes=causes,
        indices=options.index,
        name=options.name,
        set=changes,
    )
    with cli.connect() as client:
        array = client.rerun_array(options.array, array_rerun, dry_run=options.dry_run)
    tell_warnings(array.warnings, None, cli)
    count = f"{array.total} task{'' if array.total == 1 else 's'}"
    verb = "would rerun" if options.dry_run else "reruns"
    cli.say(f"array {array.name} {verb} {count} of {array.rerun_of.name if array.rerun_of else ''}: {array.indices}")
    if not options.dry_run:
        cli.output().text(array.name)
        cli.note_unserved()
    return exit_codes.OK


RERUN = Command(
    "rerun",
    RerunOptions,
    rerun,
    "Steer",
    examples=("holdfast rerun sweep --failed", "holdfast rerun sweep --cause oom_killed --set memory=8Gi"),
)
