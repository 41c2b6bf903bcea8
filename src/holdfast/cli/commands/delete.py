"""``holdfast delete``: remove job sets, policies, queues and categories."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.each import do_each
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import Noun, read_noun
from holdfast.cli.options import TimeoutOption
from holdfast.cli.targets import required
from holdfast.cli.things import SINGULAR, WRITTEN, resource_writer
from holdfast.cli.watching.waiting import JOB_SETS, Wanted, wait_until_gone
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from holdfast.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """What ``delete`` can be told."""

    kind: Annotated[str, typer.Argument(metavar="KIND", help="jobset, retrypolicy, queue or category.")]
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names; or KIND/NAME, without KIND.")
    ] = field(default_factory=list)
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Job sets: wait until they are deleted and their programs have stopped."),
    ] = True
    timeout: TimeoutOption = None


def delete(options: DeleteOptions, cli: Cli) -> int:
    """Delete job sets, retry policies, queues or categories.

    A job set's programs are stopped first; its jobs stay as history. A policy that a queue names, and a queue with jobs
    that have not ended, are refused.
    """
    flags = Flags()
    noun = read_noun(options.kind, WRITTEN)
    timeout_s = flags.duration("--timeout", options.timeout)
    if options.timeout and not (options.wait and noun is Noun.JOB_SET):
        flags.wrong("--timeout", "has nothing to limit", hint="only the deletion of job sets is waited for")
    flags.finish()
    if noun is Noun.JOB_SET:
        return _delete_sets(options, timeout_s, cli)
    with cli.connect() as client:
        return do_each(
            required(options.names, "holdfast delete queue NAME"),
            resource_writer(client, noun).delete,
            cli,
            what=SINGULAR[noun],
            done="deleted",
        )


def _delete_sets(options: DeleteOptions, timeout_s: float | None, cli: Cli) -> int:
    going: dict[str, str] = {}

    def remove(client: "Client", name: str) -> None:
        found = client.job_set(name)
        client.delete_job_set(found.id)
        going[found.id] = found.name

    with cli.connect(drive=options.wait) as client:
        done = None if options.wait else "deletion requested"
        code = do_each(
            required(options.names, "holdfast delete queue NAME"),
            lambda name: remove(client, name),
            cli,
            what=SINGULAR[Noun.JOB_SET],
            done=done,
        )
        if options.wait:
            wanted = Wanted(timeout_s=timeout_s, kind=JOB_SETS)
            return wait_until_gone(lambda: _still_there(client, going, cli), wanted, cli) or code
    cli.note_unserved("job sets go", "holdfast delete")
    return code


def _still_there(client: "Client", going: dict[str, str], cli: Cli) -> list[str]:
    """Name the sets that are not gone yet; says it of each that has gone."""
    for set_id, name in list(going.items()):
        try:
            client.job_set(set_id)
        except NotFound:
            del going[set_id]
            cli.output().text(f"{SINGULAR[Noun.JOB_SET]} {name} deleted")
    return list(going.values())


DELETE = Command(
    "delete",
    DeleteOptions,
    delete,
    "Operate",
    examples=("holdfast delete jobset train", "holdfast delete retrypolicy infra"),
)
