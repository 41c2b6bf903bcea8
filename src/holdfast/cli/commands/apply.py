"""``holdfast apply``: create or change what some files describe, and submit their jobs."""

from dataclasses import dataclass, field

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import KINDS, read_manifests
from holdfast.cli.nouns import Noun
from holdfast.cli.options import DryRunOption, FilesOption
from holdfast.cli.submission import submit_jobs
from holdfast.cli.writing import Written, print_dry_run, write_each


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    """What ``apply`` can be told."""

    file: FilesOption = field(default_factory=list)
    dry_run: DryRunOption = False


def apply(options: ApplyOptions, cli: Cli) -> int:
    """Create or change what files describe.

    Retry policies, then queues, then categories are created or replaced; jobs are submitted last, each time anew.
    """
    flags = Flags()
    if not options.file:
        flags.wrong("--file", "is required", hint="holdfast apply -f policies.yaml")
    flags.finish()
    manifests = read_manifests(options.file, cli, allowed=tuple(KINDS.values()))
    jobs = [manifest for manifest in manifests if manifest.noun is Noun.JOB]
    written = [Written.of(manifest) for manifest in manifests if manifest.noun is not Noun.JOB]
    if options.dry_run:
        return print_dry_run([*written, *(Written(Noun.JOB, job.name, job.value, job) for job in jobs)], cli)
    with cli.connect() as client:
        write_each(client, written, "apply", cli)
        for job in submit_jobs(client, jobs):
            cli.output().text(f"job {job.id} {job.name} submitted")
    if jobs:
        cli.note_unserved()
    return exit_codes.OK


APPLY = Command("apply", ApplyOptions, apply, "Operate", examples=("holdfast apply -f policies.yaml -f queues.yaml",))
