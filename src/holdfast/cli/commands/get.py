"""``holdfast get``: lists, and single things."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import API_VERSION, KINDS
from holdfast.cli.nouns import OF_WORK, OWNERS, SINGULAR, Noun, NounName, read_noun
from holdfast.cli.options import FormatOption, GroupOption
from holdfast.cli.printing import TABLES, fields_of, list_format, plain, print_thing, print_things
from holdfast.cli.render.arrays import with_arrays
from holdfast.cli.render.tree import tree_table
from holdfast.cli.things import READERS, WRITTEN, Selection, model_of, name_of, table_of, tell_unreadable
from holdfast.cli.watching.staleness import note_if_stale

if TYPE_CHECKING:
    from holdfast.cli.render.words import Table
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayView
    from holdfast.wire.jobs import JobSummary
    from holdfast.wire.jobsets import JobSetSummary


_CHANGING = (*OF_WORK, Noun.NODE, Noun.DEVICE)
"""Kinds that change only while a server runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="jobs, arrays, jobsets, queues, retrypolicies, categories, notifiers, nodes, devices, settings or"
            " audit.",
        ),
    ]
    names: Annotated[
        list[str], typer.Argument(metavar="[NAME...]", help="Only these names; jobs and job sets also by id.")
    ] = field(default_factory=list)
    state: Annotated[
        list[str],
        typer.Option(
            "--state", "-s", metavar="STATE", help="Jobs, or job sets, in this state. Repeatable, or comma-separated."
        ),
    ] = field(default_factory=list)
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Jobs of this queue.")] = None
    label: Annotated[
        list[str],
        typer.Option(
            "--label", "-l", metavar="K=V", help="Jobs, or job sets, with this label. Repeatable; all must match."
        ),
    ] = field(default_factory=list)
    user: Annotated[
        str | None, typer.Option("--user", "-u", metavar="USER", help="Jobs, arrays or job sets that USER submitted.")
    ] = None
    group: GroupOption = None
    mine: Annotated[bool, typer.Option("--mine", help="Jobs, arrays or job sets that you submitted.")] = False
    jobset: Annotated[str | None, typer.Option("--jobset", metavar="NAME", help="Jobs of this job set.")] = None
    array: Annotated[str | None, typer.Option("--array", metavar="NAME", help="Jobs that are tasks of this array.")] = (
        None
    )
    tree: Annotated[
        bool, typer.Option("--tree", help="Show jobs, arrays and job sets below what they wait or waited for.")
    ] = False
    quarantined: Annotated[
        bool, typer.Option("--quarantined", help="Jobs that Holdfast set aside after an error of its own.")
    ] = False
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Print at most N; default all.")] = None
    watch: Annotated[
        bool,
        typer.Option("--watch", "-w", help="Keep watching: redraw the list on a terminal, else print what changed."),
    ] = False
    output: FormatOption = "table"


def get(options: GetOptions, cli: Cli) -> int:
    """List jobs, arrays, job sets, queues, retry policies, categories, notifiers, nodes or devices.

    A list of jobs shows an array in one row; --array lists its tasks. With -o yaml, job sets, queues, retry policies,
    categories and notifiers are manifests that can be applied again; a job set also has its status.

    --watch runs until Ctrl-C, and reconnects when the server comes back. Unless the table is redrawn, each item is
    printed again when it changes, and once more, as Deleted, when it is deleted or pruned (not with -o name).

    TOOK is the time from the first start of a program to the last end, or to now while the job runs; waiting before
    that does not count.
    """
    flags = Flags()
    noun = read_noun(options.kind)
    form = list_format(flags, options.output, lambda: fields_of(model_of(noun, single=True)))
    limit = flags.integer("--limit", options.limit)
    where = _filters(options, noun, flags)
    if options.tree and noun != Noun.JOB:
        flags.wrong("--tree", "only applies to jobs", hint="holdfast get jobs --tree")
    if options.watch and (options.tree or form == "yaml"):
        flags.wrong(
            "--watch", f"cannot show {'a tree' if options.tree else 'YAML'}", hint="use -o json: one document per line"
        )
    flags.finish()
    if options.mine:
        with cli.connect() as client:
            where["user"] = client.me().name
    selection = Selection(noun, options.names, where, limit, form)
    if options.watch:
        return _watch(selection, cli)
    with cli.connect() as client:
        things = selection.read(client, cli.say)
        if noun in _CHANGING:
            note_if_stale(client, cli, *(things if options.names and noun not in {Noun.NODE, Noun.DEVICE} else ()))
        beside = _beside(client, where, cli.say) if noun == Noun.JOB and not options.names and form in TABLES else []
        sets = _sets_of(client, things, where) if options.tree else []
        if form == "yaml" and noun in WRITTEN:
            cli.output().document(_as_manifests(client, noun, things, single=selection.single), form)
            return exit_codes.OK
    table = partial(_table, selection, cli=cli, beside=beside)
    if options.tree:
        table = partial(tree_table, arrays=beside, sets=sets)
    name, model = partial(name_of, noun), selection.model
    if selection.single:
        print_thing(cli.output(), things[0], form, table=table, name=name, model=model)
    else:
        print_things(cli.output(), things, form, table=table, name=name, model=model)
    return exit_codes.OK


def _table(selection: Selection, things: Sequence[Any], beside: Sequence[Any], *, cli: Cli) -> "Table":
    """Tabulate things, and arrays that are shown among jobs."""
    now_s = cli.clock()
    table = table_of(selection.noun, now_s=now_s, wide=selection.form == "wide")(things)
    return with_arrays(table, beside, now_s=now_s) if beside else table


def _watch(selection: Selection, cli: Cli) -> int:
    """Show a list while it changes."""
    from holdfast.cli.watching.changes import ChangingList
    from holdfast.cli.watching.lists import Watched, watch_list

    mixed = selection.noun == Noun.JOB and not selection.names and selection.form in TABLES
    beside: Callable[[Client], Sequence[Any]] = partial(_beside, where=selection.where) if mixed else lambda _: []
    return watch_list(
        Watched(ChangingList(selection, beside, cli.now), selection, partial(_table, selection, cli=cli)), cli
    )


def _as_manifests(client: "Client", noun: NounName, things: Sequence[Any], *, single: bool) -> dict[str, Any]:
    """Turn things into manifests that can be applied; several into a Kubernetes List."""
    of_work, read = noun in OF_WORK, READERS[noun].fetched
    manifests = [_as_manifest(read(client, thing.id) if of_work else thing, noun) for thing in things]
    return manifests[0] if single else {"apiVersion": "v1", "kind": "List", "items": manifests}


def _as_manifest(thing: Any, noun: NounName) -> dict[str, Any]:  # noqa: ANN401 - a thing of any kind
    fields = plain(thing)
    if noun in OF_WORK:
        manifest: dict[str, Any] = fields.pop("manifest")
        return {**{key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")}, "status": fields}
    kind = next(kind for kind, noun_of_kind in KINDS.items() if noun_of_kind == noun)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": thing.name}, "spec": fields["spec"]}


def _filters(options: GetOptions, noun: NounName, flags: Flags) -> dict[str, Any]:
    of_jobs = {
        "--queue": ("queue", options.queue),
        "--user": ("user", options.user),
        "--group": ("group", options.group),
        "--jobset": ("job_set", options.jobset),
        "--array": ("array", options.array),
        "--quarantined": ("quarantined", options.quarantined),
    }
    flags_given = {"--state": options.state, "--label": options.label, "--mine": options.mine}
    flags_given |= {flag: value for flag, (_, value) in of_jobs.items()}
    of_sets = {"--state", "--label", "--user", "--group", "--mine"} if noun in OWNERS else set()
    for flag, value in flags_given.items():
        if value and (options.names or (noun != Noun.JOB and flag not in of_sets)):
            flags.wrong(flag, "only filters lists of jobs", hint="holdfast get jobs")
    if options.user is not None and options.mine:
        flags.wrong("--mine", "cannot be set together with --user")
    states_known = OF_WORK.get(noun, OF_WORK[Noun.JOB]).states
    states = [flags.choice("--state", state, states_known) for state in flags.names(options.state)]
    labels = flags.pairs("--label", options.label)
    if noun in OWNERS:
        return {"states": states, "labels": labels, "user": options.user, "group": options.group}
    return {"states": states, "labels": labels, "tasks": False, **dict(of_jobs.values())}


def _beside(
    client: "Client", where: Mapping[str, Any], say: Callable[[str], object] = lambda _: None
) -> "list[ArrayView]":
    """Return the arrays to show among jobs: those that match the same filters."""
    if where["job_set"] or where["array"] or where["quarantined"]:
        return []
    states, queue = where["states"], where["queue"]
    unreadable = partial(tell_unreadable, say, SINGULAR[Noun.ARRAY])
    arrays = client.arrays(labels=where["labels"], user=where["user"], group=where["group"], unreadable=unreadable)
    return [array for array in arrays if (not states or array.state in states) and queue in {None, array.queue}]


def _sets_of(client: "Client", jobs: "Sequence[JobSummary]", where: Mapping[str, Any]) -> "list[JobSetSummary]":
    """Return the job sets to draw: those of the listed jobs and, without filters, those that have no jobs."""
    set_ids, narrowed = {job.job_set for job in jobs}, any(where.values())
    return [job_set for job_set in client.job_sets() if job_set.id in set_ids or not (job_set.jobs or narrowed)]


GET = Command(
    "get",
    GetOptions,
    get,
    "Look",
    examples=(
        "holdfast get jobs --state Failed,Held",
        "holdfast get jobs --mine",
        "holdfast get arrays --user ada",
        "holdfast get jobs --tree",
        "holdfast get jobs --watch",
        "holdfast get job train -o json",
        "holdfast get jobsets",
        "holdfast get queues -o name",
        "holdfast get jobs -o csv > jobs.csv",
        "holdfast get jobs -o custom-columns=NAME:.name,NODE:.node,TEAM:.labels.team",
    ),
)
