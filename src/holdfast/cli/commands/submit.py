"""``holdfast submit``: jobs from files."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import read_manifests
from holdfast.cli.nouns import Noun
from holdfast.cli.options import FilesOption, TimeoutOption
from holdfast.cli.submission import submit_jobs
from holdfast.cli.waiting import Wanted, wait_for

if TYPE_CHECKING:
    from holdfast.wire.jobs import BulkItem


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    """What ``submit`` can be told."""

    file: FilesOption = field(default_factory=list)
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until every job has ended.")] = False
    timeout: TimeoutOption = None
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FORMAT", help="What to print: name (id and name), id, or json."),
    ] = "name"


def submit(options: SubmitOptions, cli: Cli) -> int:
    """Submit the jobs of some files.

    Prints one line per job, in the order of the files. Either every job is accepted or none is: what does not
    fit into one request of 10,000 is checked as a whole before the first is sent. With --wait the exit code is 0 when
    all succeeded and 1 otherwise.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, ("name", "id", "json"))
    timeout_s = flags.duration("--timeout", options.timeout)
    if not options.file:
        flags.wrong("--file", "is required", hint="holdfast submit -f jobs.yaml")
    if options.timeout and not options.wait:
        flags.wrong("--timeout", "has nothing to limit", hint="add --wait")
    flags.finish()
    manifests = read_manifests(options.file, cli, allowed=(Noun.JOB,))
    with cli.connect(drive=options.wait) as client:
        jobs = submit_jobs(client, manifests)
        _print(jobs, form, cli)
        if options.wait:
            return wait_for(client, [str(job.id) for job in jobs], Wanted(timeout_s=timeout_s), cli)
    cli.note_unserved()
    return exit_codes.OK


def _print(jobs: Sequence["BulkItem"], form: str, cli: Cli) -> None:
    """Print before waiting, so that a reader can start at once."""
    if form == "json":
        cli.output().document({"items": [{"id": job.id, "name": job.name} for job in jobs]}, form)
    else:
        cli.stdout.writelines(f"{job.id}\n" if form == "id" else f"{job.id} {job.name}\n" for job in jobs)
    cli.stdout.flush()


SUBMIT = Command(
    "submit",
    SubmitOptions,
    submit,
    "Run work",
    examples=("holdfast submit -f jobs.yaml --wait", "generate-jobs | holdfast submit -f -"),
)
