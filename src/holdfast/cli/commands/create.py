"""``holdfast create``: new policies, queues, categories and job sets, which must not exist yet; and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.edits import EDITED, EditOptions, check_target, manifest_of, spec_of, with_limits
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import KINDS, read_manifests
from holdfast.cli.nouns import read_noun
from holdfast.cli.writing import NamedManifest, dry_run_of, write_each, write_manifests

if TYPE_CHECKING:
    from holdfast.cli.context import Cli


def create(options: EditOptions, cli: Cli) -> int:
    """Create retry policies, queues, categories, notifiers or job sets, and submit jobs.

    Reads files, or makes a queue, a domain or a simple retry policy from flags. A name that already exists is
    refused; see apply and update.
    """
    flags = Flags()
    check_target(options, flags, "create")
    flags.finish()
    if options.file:
        manifests = read_manifests(options.file, cli, allowed=tuple(KINDS.values()), lenient=options.lenient)
        return write_manifests(manifests, "create", cli, lenient=options.lenient, dry_run=options.dry_run)
    written = _from_flags(options)
    if options.dry_run:
        return dry_run_of(written, "create", cli)
    with cli.connect() as client:
        write_each(client, written, "create", cli)
    return exit_codes.OK


def _from_flags(options: EditOptions) -> list[NamedManifest]:
    noun = read_noun(options.kind or "", EDITED)
    flags = Flags()
    spec = spec_of(options, noun, flags)
    if options.handler_limit:
        spec["handlerLimits"] = with_limits({}, options.handler_limit, flags)
    flags.finish()
    return [NamedManifest(noun, name, manifest_of(noun, name, spec)) for name in options.names]


CREATE = Command(
    "create",
    EditOptions,
    create,
    "Operate",
    examples=(
        "holdfast create -f policy.yaml",
        "holdfast create queue ml --retry-policy infra,ml-training --weight 2",
        "holdfast create retrypolicy thrice --retry-limit 3 --default-action Retry",
    ),
)
