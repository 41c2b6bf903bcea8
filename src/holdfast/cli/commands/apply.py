"""``holdfast apply``: create or change what some files describe, and submit their jobs."""

from dataclasses import dataclass, field

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import KINDS, read_manifests
from holdfast.cli.options import DryRunOption, FilesOption, LenientOption
from holdfast.cli.writing import write_manifests


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyOptions:
    file: FilesOption = field(default_factory=list)
    lenient: LenientOption = False
    dry_run: DryRunOption = False


def apply(options: ApplyOptions, cli: Cli) -> int:
    """Create or change what the files describe.

    Categories, policies, notifiers and queues are written first, then job sets. Jobs are submitted last, anew each
    time; of an array that exists only the limits are changed. Kubernetes manifests of JobSets and Jobs are accepted,
    too.
    """
    flags = Flags()
    if not options.file:
        flags.wrong("--file", "is required", hint="holdfast apply -f policies.yaml")
    flags.finish()
    manifests = read_manifests(options.file, cli, allowed=tuple(KINDS.values()), lenient=options.lenient)
    return write_manifests(manifests, "apply", cli, lenient=options.lenient, dry_run=options.dry_run)


APPLY = Command(
    "apply",
    ApplyOptions,
    apply,
    "Operate",
    examples=("holdfast apply -f policies.yaml -f queues.yaml", "holdfast apply -f jobset.yaml"),
)
