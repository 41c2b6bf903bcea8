"""``holdfast events``: what happened, and what happens."""

import json
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import FormatOption
from holdfast.cli.printing import LIST_FORMATS, plain, print_things
from holdfast.cli.render.events import COLUMNS, event_line, event_row, event_table, short_type
from holdfast.cli.watching.insistence import insistent_interrupts
from holdfast.errors import Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.client.events import EventsWanted
    from holdfast.wire.events import EventView

NOW = "now"
_PATIENCE_S = 2.0
"""How long to try the same server again before looking for another."""
_PAUSE_S = 1.0
_MOST_FAILURES = 20
_LAST = frozenset({"job.succeeded", "job.failed", "job.cancelled"})
_LAST_OF_SET = frozenset({"jobset.ended", "jobset.deleted"})


@dataclass(frozen=True, slots=True, kw_only=True)
class EventsOptions:
    """What ``events`` can be told."""

    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow new events; with --job or --jobset until it has ended.")
    ] = False
    job: Annotated[
        str | None,
        typer.Option("--job", "-j", metavar="JOB", help="Only of this job: its id, name, or the start of its id."),
    ] = None
    jobset: Annotated[
        str | None, typer.Option("--jobset", metavar="NAME", help="Only of this job set and its jobs.")
    ] = None
    type: Annotated[
        list[str],
        typer.Option(
            "--type",
            "-t",
            metavar="TYPE",
            help="Only these: job.failed, or a family: job. Repeatable, or comma-separated.",
        ),
    ] = field(default_factory=list)
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Only of the jobs of this queue.")
    ] = None
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="ID", help="Start after this event; 'now' for new events only."),
    ] = None
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Print at most N; default all.")] = None
    output: FormatOption = "table"


def events(options: EventsOptions, cli: Cli) -> int:
    """Print events, oldest first; with --follow also new ones as they happen.

    Following survives a lost connection and a restart of the server: every event is printed once. As JSON it prints
    one event a line.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, LIST_FORMATS)
    from_now = options.after == NOW
    after = None if from_now else flags.integer("--after", options.after)
    limit = flags.integer("--limit", options.limit)
    types = flags.names(options.type)
    flags.finish()
    with cli.connect() as client:
        job = client.job(options.job).id if options.job is not None else None  # a name may mean another job later
        job_set = client.job_set(options.jobset).id if options.jobset is not None else None
        where: EventsWanted = {"job": job, "types": types, "queue": options.queue, "job_set": job_set}
        newest = client.last_event()
        begin = newest if from_now else after or 0
        wanted = [] if options.follow else list(islice(client.events(**where, after=begin), limit))
    if options.follow:
        with insistent_interrupts():
            _print_as_they_come(islice(_until_over(_followed(cli, where, begin), _last(options)), limit), cli, form)
    else:
        print_things(cli.output(), wanted, form, table=event_table, name=lambda event: event.id)
    return exit_codes.OK


def _followed(cli: Cli, where: "EventsWanted", last: int) -> "Iterator[EventView]":
    """Follow for ever; a server that was started again may be elsewhere and take another token."""
    failures = 0
    while True:
        try:
            for event in _until_lost(cli, where, last):
                last, failures = int(event.id), 0
                yield event
        except (Unavailable, Unauthenticated):
            failures += 1
            if failures > _MOST_FAILURES:
                raise
        cli.sleep(_PAUSE_S)


def _until_lost(cli: Cli, where: "EventsWanted", after: int) -> "Iterator[EventView]":
    with cli.connect() as client:
        yield from client.events(**where, after=after, follow=True, patience_s=_PATIENCE_S)


def _last(options: EventsOptions) -> frozenset[str]:
    """Return the types of the last event that what is asked for can have."""
    return _LAST if options.job is not None else _LAST_OF_SET if options.jobset is not None else frozenset()


def _until_over(found: "Iterator[EventView]", last: frozenset[str]) -> "Iterator[EventView]":
    for event in found:
        yield event
        if short_type(event) in last:
            return


def _print_as_they_come(found: "Iterator[EventView]", cli: Cli, form: str) -> None:
    output = cli.output()
    write: dict[str, Callable[[EventView], None]] = {
        "table": lambda event: output.text(event_line(event_row(event))),
        "json": lambda event: output.text(json.dumps(plain(event), ensure_ascii=False)),
        "yaml": lambda event: output.document([plain(event)], "yaml"),
        "name": lambda event: output.text(event.id),
    }
    if form == "table":
        output.text(event_line(COLUMNS))
    for event in found:
        write[form](event)
        cli.stdout.flush()


EVENTS = Command(
    "events",
    EventsOptions,
    events,
    "Look",
    examples=(
        "holdfast events -f --job train",
        "holdfast events --jobset train",
        "holdfast events --type job.failed -o json",
        "holdfast events -f --after now",
    ),
)
