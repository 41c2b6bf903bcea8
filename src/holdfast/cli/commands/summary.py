"""``holdfast summary``: figures about many jobs."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import DocumentOption
from holdfast.cli.printing import TEXT_FORMATS, plain
from holdfast.cli.render.figures import print_summary
from holdfast.cli.watching.staleness import note_if_stale

DAY = "24h"


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryOptions:
    since: Annotated[
        str, typer.Option("--since", metavar="DURATION", help="How far back to look, such as 1h or 7d; default 24h.")
    ] = DAY
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Jobs of this queue.")] = None
    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Jobs with this label. Repeatable; all must match."),
    ] = field(default_factory=list)
    output: DocumentOption = "text"


def summary(options: SummaryOptions, cli: Cli) -> int:
    """Summarize jobs: states, failures by kind and node, time lost, and how fast jobs recovered.

    Covers jobs that were unfinished or ended within --since, and counts only the part that falls into that time. ETTR,
    the effective training time ratio, is the time spent in attempts that succeeded or still run, divided by the time
    from each job's first start to its end. What a failed attempt saved in a checkpoint is not known. An attempt that
    was cancelled, held, suspended, drained or preempted did not fail, and the next one is neither a retry nor a
    recovery.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, TEXT_FORMATS)
    within_s = flags.duration("--since", options.since)
    labels = flags.pairs("--label", options.label)
    if within_s is not None and within_s < 1:
        flags.wrong("--since", f"{options.since!r} is too short", allowed=("1s or more",))
    flags.finish()
    with cli.connect() as client:
        figures = client.summary(within_s=int(within_s or 0), queue=options.queue, labels=labels)
        note_if_stale(client, cli)
    if form == "text":
        print_summary(figures, options.since.strip(), cli.output())
    else:
        cli.output().document(plain(figures), form)
    return exit_codes.OK


SUMMARY = Command(
    "summary",
    SummaryOptions,
    summary,
    "Look",
    examples=("holdfast summary --since 7d", "holdfast summary -q gpu -l team=nlp -o json"),
)
