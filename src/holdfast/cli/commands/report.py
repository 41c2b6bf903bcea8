"""``holdfast report``: who used how much."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.printing import plain, print_csv
from holdfast.cli.watching.staleness import note_if_stale

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.cli.render.words import Table
    from holdfast.wire.figures import UsageView

_MONTH = "30d"
_SHARES = ("user", "queue", "group", "label")
_LABEL = "label:"
_COLUMNS = ("RUNS", "FAILED", "CPU-HOURS", "GIB-HOURS", "GPU-HOURS", "WASTED-CPU", "WASTED-GIB", "WASTED-GPU")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    by: Annotated[
        str, typer.Option("--by", metavar="WHAT", help="user, queue, group, or label:NAME, by the values of a label.")
    ] = "user"
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="How far back to look, such as 12h or 7d; default 30d.")
    ] = _MONTH
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FORMAT", help="Output format: table, csv, json or yaml.")
    ] = "table"


def report(options: ReportOptions, cli: Cli) -> int:
    """Report who used how many hours of CPU, memory and GPU, and how many of them failed attempts wasted.

    A program counts with the resources it requested, from its start to its end, as does each rank of a gang and each
    task of an array. The hours of failed attempts, and of pods that failed by themselves, are wasted; what they saved
    in checkpoints is not known. Jobs that retention has deleted are not counted.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, ("table", "csv", "json", "yaml"))
    within_s = flags.duration("--since", options.since)
    label = options.by.removeprefix(_LABEL) if options.by.startswith(_LABEL) else None
    share = "label" if label is not None else flags.choice("--by", options.by, _SHARES)
    if share == "label" and not label:
        flags.wrong("--by", "names no label", hint="holdfast report --by label:team")
    if within_s is not None and within_s < 1:
        flags.wrong("--since", f"{options.since!r} is too short", allowed=("1s or more",))
    flags.finish()
    with cli.connect() as client:
        usage = client.report(share, label=label, within_s=int(within_s or 0))
        note_if_stale(client, cli)
    if form == "table":
        columns, rows = _table(label or share, usage.items)
        cli.output().listing(columns).head(rows)
    elif form == "csv":
        from holdfast.wire.figures import UsageView

        print_csv(cli.output(), usage.items, UsageView)
    else:
        cli.output().document(plain(usage), form)
    return exit_codes.OK


def _table(what: str, usages: "Sequence[UsageView]") -> "Table":
    return (what.upper(), *_COLUMNS), [
        (
            usage.name or "-",
            str(usage.runs),
            str(usage.failed_runs),
            *(f"{hours:.2f}" for hours in (usage.cpu_hours, usage.memory_gib_hours, usage.gpu_hours)),
            *(
                f"{hours:.2f}"
                for hours in (usage.wasted_cpu_hours, usage.wasted_memory_gib_hours, usage.wasted_gpu_hours)
            ),
        )
        for usage in usages
    ]


REPORT = Command(
    "report",
    ReportOptions,
    report,
    "Look",
    examples=(
        "holdfast report --by user --since 30d -o csv",
        "holdfast report --by queue",
        "holdfast report --by label:team",
    ),
)
