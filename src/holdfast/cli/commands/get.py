"""``holdfast get``: lists, and single things."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.job_manifest import API_VERSION
from holdfast.cli.manifests import KINDS
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.printing import GET_FORMATS, plain, print_thing, print_things
from holdfast.cli.render.catalogue import settings_table
from holdfast.cli.things import READERS, SINGULAR, WRITTEN, table_of
from holdfast.cli.watching.waiting import JOB_STATES, SET_STATES

if TYPE_CHECKING:
    from holdfast.client import Client


_SET_STATES = (*SET_STATES, "Deleting", "Unmanaged")


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """What ``get`` can be told."""

    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND", help="jobs, jobsets, queues, retrypolicies, categories, nodes, settings or audit."
        ),
    ]
    names: Annotated[
        list[str], typer.Argument(metavar="[NAME...]", help="Only these names; for a job or a job set also its id.")
    ] = field(default_factory=list)
    state: Annotated[
        list[str],
        typer.Option(
            "--state", "-s", metavar="STATE", help="Jobs, or job sets, in this state. Repeatable; commas work."
        ),
    ] = field(default_factory=list)
    queue: Annotated[str | None, typer.Option("--queue", "-q", metavar="QUEUE", help="Jobs of this queue.")] = None
    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Jobs, or job sets, with this label. Repeatable; all hold."),
    ] = field(default_factory=list)
    jobset: Annotated[str | None, typer.Option("--jobset", metavar="NAME", help="Jobs of this job set.")] = None
    quarantined: Annotated[
        bool, typer.Option("--quarantined", help="Jobs that Holdfast itself failed to look after.")
    ] = False
    limit: Annotated[str | None, typer.Option("--limit", metavar="N", help="Print at most N; default all.")] = None
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FORMAT", help="How to print: table, wide, json, yaml or name."),
    ] = "table"


def get(options: GetOptions, cli: Cli) -> int:
    """List jobs, job sets, queues, retry policies, categories or nodes, or get some of them.

    Prints everything unless --limit is given; as JSON or YAML a list is {"items": [...]}. A single job
    as JSON contains everything known about it. -o wide adds columns. As YAML, job sets, queues, retry policies and
    categories are manifests that can be applied again; what else is known of a job set is in its status.

    TOOK is counted from the first start of a program to the last end, or until now while the job runs; waiting before
    that does not count.
    """
    flags = Flags()
    noun = read_noun(options.kind)
    form = flags.choice("--output", options.output, GET_FORMATS)
    limit = flags.integer("--limit", options.limit)
    where = _filters(options, noun, flags)
    flags.finish()
    with cli.connect() as client:
        if noun is Noun.SETTINGS:
            print_thing(
                cli.output(),
                client.settings(),
                form,
                table=lambda found: settings_table(found[0]),
                name=lambda _: str(noun),
            )
            return exit_codes.OK
        things = (
            _fetched(client, noun, options.names)
            if options.names
            else _listed(client, noun, where, limit, full=form == "wide")
        )
    table = table_of(noun, now_s=cli.clock(), wide=form == "wide")
    name = partial(_name, noun)
    if form == "yaml" and noun in WRITTEN:
        with cli.connect() as client:
            cli.output().document(_as_manifests(client, noun, things, single=len(options.names) == 1), form)
    elif len(options.names) == 1:
        print_thing(cli.output(), things[0], form, table=table, name=name)
    else:
        print_things(cli.output(), things, form, table=table, name=name)
    return exit_codes.OK


def _name(noun: Noun, thing: Any) -> str:  # noqa: ANN401 - a thing of any kind
    """Name a thing so that other commands understand it; several jobs may have one name, so they have their id."""
    named = thing.id if noun in {Noun.JOB, Noun.AUDIT} else thing.name
    return f"{SINGULAR[noun]}/{named}"


def _as_manifests(client: "Client", noun: Noun, things: Sequence[Any], *, single: bool) -> dict[str, Any]:
    """Write things as manifests that can be applied; several as a list of Kubernetes."""
    found = [_as_manifest(client.job_set(thing.id) if noun is Noun.JOB_SET else thing, noun) for thing in things]
    return found[0] if single else {"apiVersion": "v1", "kind": "List", "items": found}


def _as_manifest(thing: Any, noun: Noun) -> dict[str, Any]:  # noqa: ANN401 - a thing of any kind
    known = plain(thing)
    if noun is Noun.JOB_SET:
        manifest: dict[str, Any] = known.pop("manifest")
        return {**{key: manifest[key] for key in ("apiVersion", "kind", "metadata", "spec")}, "status": known}
    kind = next(kind for kind, one in KINDS.items() if one is noun)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": thing.name}, "spec": known["spec"]}


def _filters(options: GetOptions, noun: Noun, flags: Flags) -> dict[str, Any]:
    given = {
        "--state": options.state,
        "--queue": options.queue,
        "--label": options.label,
        "--jobset": options.jobset,
        "--quarantined": options.quarantined,
    }
    of_sets = {"--state", "--label"} if noun is Noun.JOB_SET else set()
    for flag, value in given.items():
        if value and (options.names or (noun is not Noun.JOB and flag not in of_sets)):
            flags.wrong(flag, "only filters lists of jobs", hint="holdfast get jobs")
    known = _SET_STATES if noun is Noun.JOB_SET else JOB_STATES
    states = [flags.choice("--state", state, known) for state in flags.names(options.state)]
    labels = flags.pairs("--label", options.label)
    if noun is Noun.JOB_SET:
        return {"states": states, "labels": labels}
    wanted: dict[str, Any] = {"states": states, "queue": options.queue, "labels": labels, "job_set": options.jobset}
    return {**wanted, "quarantined": options.quarantined}


def _fetched(client: "Client", noun: Noun, names: Sequence[str]) -> Sequence[Any]:
    return [READERS[noun].fetched(client, name) for name in names]


def _listed(client: "Client", noun: Noun, where: dict[str, Any], limit: int | None, *, full: bool) -> Sequence[Any]:
    if noun is Noun.JOB_SET:
        return list(client.job_sets(**where, limit=limit))
    if noun is Noun.JOB:
        return list((client.full_jobs if full else client.jobs)(**where, limit=limit))
    return list(READERS[noun].listed(client))[:limit]


GET = Command(
    "get",
    GetOptions,
    get,
    "Look",
    examples=(
        "holdfast get jobs --state Failed,Held",
        "holdfast get job train -o json",
        "holdfast get jobsets",
        "holdfast get queues -o name",
    ),
)
