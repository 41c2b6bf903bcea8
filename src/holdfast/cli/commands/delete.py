"""``holdfast delete``: remove job sets, policies, queues and categories."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import KINDS, read_manifests
from holdfast.cli.nouns import OWNERS, SINGULAR, Noun, NounName, read_noun
from holdfast.cli.options import FilesOption, LenientOption, TimeoutOption
from holdfast.cli.targets import do_each, required
from holdfast.cli.things import WRITTEN, resource_writer
from holdfast.cli.watching.follow import ENDED
from holdfast.cli.watching.waiting import WaitGoal, wait_until_gone
from holdfast.cli.writing import NamedManifest, require_names
from holdfast.domain.terms.kinds import JOB_SET
from holdfast.errors import Internal, NotFound

if TYPE_CHECKING:
    from holdfast.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    kind: Annotated[
        str, typer.Argument(metavar="[KIND]", help="jobset, array, retrypolicy, queue, category or notifier.")
    ] = ""
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="One or more names; or KIND/NAME instead of KIND.")
    ] = field(default_factory=list)
    file: FilesOption = field(default_factory=list)
    lenient: LenientOption = False
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Job sets: wait until they are deleted and their programs have stopped."),
    ] = True
    timeout: TimeoutOption = None


def delete(options: DeleteOptions, cli: Cli) -> int:
    """Delete job sets, arrays, retry policies, queues, categories or notifiers.

    The programs of a job set or an array are stopped first; its jobs stay as history. A policy that a queue uses and a
    queue with unfinished jobs are refused. With --file, deletes what the files describe, job sets first, and cancels
    standalone Kubernetes Jobs.
    """
    flags = Flags()
    if bool(options.kind) is bool(options.file):
        flags.wrong("KIND", "give either a kind with names, or files", hint="holdfast delete jobset train")
        flags.finish()
    if options.file:
        return _delete_described(options, flags.duration("--timeout", options.timeout), flags, cli)
    noun = read_noun(options.kind, (*WRITTEN, Noun.ARRAY))
    timeout_s = flags.duration("--timeout", options.timeout)
    if options.timeout and not (options.wait and noun == Noun.JOB_SET):
        flags.wrong("--timeout", "only limits the wait for job sets to be deleted")
    flags.finish()
    names = required(options.names, "holdfast delete queue NAME")
    return _delete(noun, names, cli) if noun != Noun.JOB_SET else _delete_sets(names, options, timeout_s, cli)


def _delete(noun: NounName, names: Sequence[str], cli: Cli) -> int:
    with cli.connect() as client:
        if noun in OWNERS:
            if cli.is_unserved():
                what = OWNERS[noun].noun
                cli.say(f"no server is running; the {what} is deleted when you run `holdfast up`")
            act = client.of(OWNERS[noun]).delete
            return do_each(names, act, cli, what=SINGULAR[noun], done="deletion requested")
        return do_each(names, resource_writer(client, noun).delete, cli, what=SINGULAR[noun], done="deleted")


def _delete_described(options: DeleteOptions, timeout_s: float | None, flags: Flags, cli: Cli) -> int:
    """Delete what files describe, in the reverse order of ``apply``."""
    flags.finish()
    manifests = read_manifests(options.file, cli, allowed=tuple(KINDS.values()), lenient=options.lenient)
    require_names(manifests)
    written = [NamedManifest.of(manifest) for manifest in manifests]
    arrays = [described.name for described in manifests if described.is_array]
    codes = [
        _cancel(
            [described.name for described in written if described.noun == Noun.JOB and described.name not in arrays],
            cli,
        )
    ]
    codes += [_delete(Noun.ARRAY, arrays, cli)] if arrays else []
    for noun in reversed(WRITTEN):
        names = [described.name for described in written if described.noun == noun]
        if names:
            sets = noun == Noun.JOB_SET
            codes.append(_delete_sets(names, options, timeout_s, cli) if sets else _delete(noun, names, cli))
    return next(filter(None, codes), 0)


def _cancel(names: Sequence[str], cli: Cli) -> int:
    def cancel(name: str) -> None:
        if client.job(name).state not in ENDED:
            client.cancel(name, reason="deleted")

    if not names:
        return 0
    with cli.connect() as client:
        return do_each(names, cancel, cli, what=SINGULAR[Noun.JOB], done="cancelled")


def _delete_sets(names: Sequence[str], options: DeleteOptions, timeout_s: float | None, cli: Cli) -> int:
    going: dict[str, str] = {}

    def remove(client: "Client", name: str) -> None:
        job_set = client.delete_job_set(name)
        going[job_set.id] = job_set.name

    with cli.connect(drive=options.wait, attached=options.wait) as client:
        done = None if options.wait else "deletion requested"
        code = do_each(
            names,
            lambda name: remove(client, name),
            cli,
            what=SINGULAR[Noun.JOB_SET],
            done=done,
        )
        if options.wait:
            goal = WaitGoal(timeout_s=timeout_s, kind=JOB_SET)
            return wait_until_gone(lambda: _still_there(client, going, cli), goal, cli) or code
    cli.note_unserved("job sets are deleted", "holdfast delete")
    return code


def _still_there(client: "Client", going: dict[str, str], cli: Cli) -> list[str]:
    """Return the names of the sets that still exist, and print those that are gone."""
    for set_id, name in list(going.items()):
        try:
            client.job_set(set_id)
        except NotFound:
            del going[set_id]
            cli.output().text(f"{SINGULAR[Noun.JOB_SET]} {name} deleted")
        except Internal:  # it is damaged, but it exists
            pass
    return list(going.values())


DELETE = Command(
    "delete",
    DeleteOptions,
    delete,
    "Operate",
    examples=("holdfast delete jobset train", "holdfast delete -f jobset.yaml", "holdfast delete retrypolicy infra"),
)
