"""``holdfast events``: past and new events."""

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import OWNERS, Noun
from holdfast.cli.options import FormatOption, GroupOption
from holdfast.cli.printing import fields_of, json_line, list_format, plain, print_csv, print_things
from holdfast.cli.render.custom_columns import custom_table, is_custom, read_columns
from holdfast.cli.render.events import COLUMNS, about, event_row, event_table, job_of, short_type, wide_event_table
from holdfast.cli.render.references import references
from holdfast.cli.render.words import clock_time, when
from holdfast.cli.targets import job_or_set
from holdfast.cli.things import batched
from holdfast.cli.watching.interrupts import insistent_interrupts
from holdfast.cli.watching.staleness import note_if_stale
from holdfast.errors import Unauthenticated, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from holdfast.client import Client
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
    what: Annotated[
        list[str],
        typer.Argument(metavar="[KIND] [NAME]", help="Only events of this job; with the KIND jobset, of this job set."),
    ] = field(default_factory=list)
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Also print new events; for a job or a job set until it has ended.")
    ] = False
    job: Annotated[
        str | None,
        typer.Option(
            "--job", "-j", metavar="JOB", help="Only events of this job: its id, name, or the start of its id."
        ),
    ] = None
    jobset: Annotated[
        str | None, typer.Option("--jobset", metavar="NAME", help="Only events of this job set and its jobs.")
    ] = None
    type: Annotated[
        list[str],
        typer.Option(
            "--type",
            "-t",
            metavar="TYPE",
            help="Only this type, such as job.failed, or family, such as job. Repeatable, or comma-separated.",
        ),
    ] = field(default_factory=list)
    queue: Annotated[
        str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Only events of jobs in this queue.")
    ] = None
    group: GroupOption = None
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="ID", help="Start after this event; 'now' for new events only."),
    ] = None
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Print at most N; default all.")] = None
    output: FormatOption = "table"


def events(options: EventsOptions, cli: Cli) -> int:
    """Print events, oldest first; with --follow also new ones as they happen."""
    flags = Flags()
    form = list_format(flags, options.output, _fields)
    from_now = options.after == NOW
    after = None if from_now else flags.integer("--after", options.after)
    limit = flags.integer("--limit", options.limit)
    types = flags.names(options.type)
    options = _about_one(options, flags)
    flags.finish()
    with cli.connect() as client:
        job = client.job(options.job) if options.job is not None else None
        job_set = client.job_set(options.jobset) if options.jobset is not None else None
        if not options.follow:
            note_if_stale(client, cli, *(thing for thing in (job, job_set) if thing is not None))
        where: EventsWanted = {
            "job": job.id if job else None,  # a name may mean another job later
            "types": types,
            "queue": options.queue,
            "group": options.group,
            "job_set": job_set.id if job_set else None,
        }
        newest = client.last_event()
        begin = newest if from_now else after or 0
        listed = [] if options.follow else list(islice(client.events(**where, after=begin), limit))
        names = names_of(client, listed) if form == "table" else {}
    if options.follow:
        with insistent_interrupts():
            _print_as_they_come(islice(_until_over(_followed(cli, where, begin), _last(options)), limit), cli, form)
    else:
        _print(listed, form, names, cli)
    return exit_codes.OK


def _about_one(options: EventsOptions, flags: Flags) -> EventsOptions:
    """Turn a name without a flag into ``--job`` or ``--jobset``."""
    if not options.what:
        return options
    target = job_or_set(options.what)
    if options.job is not None or options.jobset is not None:
        flags.wrong("NAME", "is already given by --job or --jobset", hint="holdfast events jobset/train")
    if target.noun == Noun.JOB_SET:
        return replace(options, jobset=target.only_name)
    if target.noun in OWNERS:
        message = f"has no events of its own; its {OWNERS[target.noun].parts} have"
        flags.wrong("NAME", message, hint=f"holdfast events {target.only_name}-0")
    return replace(options, job=target.only_name)


def _fields() -> "Sequence[str]":
    from holdfast.wire.events import EventView

    return fields_of(EventView)


def _print(listed: "list[EventView]", form: str, names: "Mapping[str, str]", cli: Cli) -> None:
    from holdfast.wire.events import EventView

    table = wide_event_table if form == "wide" else partial(event_table, names=names, now_s=cli.clock())
    print_things(cli.output(), listed, form, table=table, name=lambda event: event.id, model=EventView)


def names_of(client: "Client", listed: "Iterable[EventView]") -> "dict[str, str]":
    """Return what to call the jobs of events, by id; jobs that share a name also show a part of their id."""
    ids = list(dict.fromkeys(job for job in map(job_of, listed) if job is not None))
    return references((job.id, job.name) for some in batched(ids) for job in client.jobs(ids=some))


def _followed(cli: Cli, where: "EventsWanted", last: int) -> "Iterator[EventView]":
    """Follow for ever, to another address if the server restarts there; a refused token that the user set ends it."""
    from holdfast.client.events import FOLLOWED_AGAIN

    failures, last_lines = 0, [FOLLOWED_AGAIN]

    def say(line: str) -> None:
        if line != last_lines[-1]:
            last_lines[:] = [line]
            cli.say(line)

    while True:
        try:
            for event in _until_lost(cli, where, last, say):
                last, failures = int(event.id), 0
                say(FOLLOWED_AGAIN)
                yield event
        except Unavailable:
            failures += 1
            if failures > _MOST_FAILURES:
                raise
        cli.sleep(_PAUSE_S)


def _until_lost(cli: Cli, where: "EventsWanted", after: int, say: "Callable[[str], object]") -> "Iterator[EventView]":
    with cli.connect() as client:
        note_if_stale(client, cli)
        try:
            yield from client.events(**where, after=after, follow=True, patience_s=_PATIENCE_S, say=say)
        except Unauthenticated as error:
            if client.connection.find is None:
                raise
            raise Unavailable(error.message) from error  # the next server of the data directory writes its own token


def _last(options: EventsOptions) -> frozenset[str]:
    """Return the types of event that end the job or job set."""
    return _LAST if options.job is not None else _LAST_OF_SET if options.jobset is not None else frozenset()


def _until_over(stream: "Iterator[EventView]", last: frozenset[str]) -> "Iterator[EventView]":
    for event in stream:
        yield event
        if short_type(event) in last:
            return


def _print_as_they_come(stream: "Iterator[EventView]", cli: Cli, form: str) -> None:
    write = _writer(cli, form)
    for event in stream:
        write(event)
        cli.stdout.flush()


def _writer(cli: Cli, form: str) -> "Callable[[EventView], None]":
    """Return a function that prints one event."""
    from holdfast.wire.events import EventView

    output = cli.output()
    if form == "json":
        return lambda event: output.text(json_line(event))
    if form == "yaml":
        return lambda event: output.document([plain(event)], "yaml")
    if form == "name":
        return lambda event: output.text(event.id)
    if form == "csv":
        print_csv(output, [], EventView)
        return lambda event: print_csv(output, [event], EventView, header=False)
    rows = _rows(cli, form)
    custom = [name for name, _ in read_columns(form)] if is_custom(form) else None
    columns = custom or COLUMNS
    listing = output.listing(columns, whole=form != "table")
    listing.head()
    return lambda event: listing.rows([rows(event)])


def _rows(cli: Cli, form: str) -> "Callable[[EventView], Sequence[str]]":
    """Return a function that turns an event into a row."""
    if is_custom(form):
        columns = read_columns(form)
        return lambda event: custom_table(columns, [plain(event)])[1][0]
    if form == "wide":
        return lambda event: event_row(event, when(event.time), event.subject)
    names: dict[str, str] = {}

    def short(event: "EventView") -> "Sequence[str]":
        job = job_of(event)
        if job is not None and job not in names:
            names[job] = event.data["name"] if short_type(event) == "job.submitted" else _name_of(cli, event)
        return event_row(event, clock_time(event.time, cli.clock()), about(event, names))

    return short


def _name_of(cli: Cli, event: "EventView") -> str:
    job = str(job_of(event))
    with cli.connect() as client:
        return next((found_job.name for found_job in client.jobs(ids=[job])), job)


EVENTS = Command(
    "events",
    EventsOptions,
    events,
    "Look",
    examples=(
        "holdfast events -f train",
        "holdfast events jobset/train",
        "holdfast events --type job.failed -o json",
        "holdfast events -f --after now",
    ),
)
