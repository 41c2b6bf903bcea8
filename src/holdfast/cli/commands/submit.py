"""``holdfast submit``: work from files."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import all_after, all_in_group, read_manifests
from holdfast.cli.nouns import OF_WORK, SINGULAR
from holdfast.cli.options import (
    AfterOption,
    DryRunOption,
    ExportOption,
    FilesOption,
    LenientOption,
    SecretEnvOption,
    TimeoutOption,
)
from holdfast.cli.submission.export import NONE, carrying, exported
from holdfast.cli.submission.secrets import secret_values, send_secrets, with_secrets
from holdfast.cli.submission.sending import Submitted, submit_all
from holdfast.cli.watching.waiting import WaitGoal, wait_for, wait_for_owners
from holdfast.cli.writing import note_unserved, write_manifests
from holdfast.domain.terms.kinds import ARRAY

if TYPE_CHECKING:
    from holdfast.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitOptions:
    file: FilesOption = field(default_factory=list)
    after: AfterOption = field(default_factory=list)
    group: Annotated[
        str | None,
        typer.Option("--group", metavar="GROUP", help="Put all of them into this group, in place of their own."),
    ] = None
    export: ExportOption = None
    secret_env: SecretEnvOption = field(default_factory=list)
    lenient: LenientOption = False
    dry_run: DryRunOption = False
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until every job and job set has ended.")] = False
    timeout: TimeoutOption = None
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FORMAT", help="Output format: text (id and name), name (job/ID), id or json."
        ),
    ] = "text"


def submit(options: SubmitOptions, cli: Cli) -> int:
    """Submit the jobs, arrays and job sets in files.

    Prints one line per job set, then one per job, in the order of the files. Either every job is accepted or none is.
    Jobs and arrays run with the variables that --export names, and in the working directory of this shell, unless they
    say otherwise. Job sets and Kubernetes Jobs run as written. With --wait the exit code is 0 when all succeeded and 1
    otherwise.
    """
    flags = Flags()
    form = flags.choice("--output", options.output, ("text", "name", "id", "json"))
    timeout_s = flags.duration("--timeout", options.timeout)
    if not options.file:
        flags.wrong("--file", "is required", hint="holdfast submit -f jobs.yaml")
    if options.timeout and not options.wait:
        flags.wrong("--timeout", "needs --wait")
    env = exported(options.export, cli, flags)
    secrets = secret_values(options.secret_env, cli.environ, flags)
    flags.finish()
    manifests = read_manifests(options.file, cli, allowed=tuple(OF_WORK), lenient=options.lenient)
    manifests = all_in_group(all_after(manifests, options.after), options.group)
    if options.export != NONE:
        manifests = carrying(manifests, env, cli)
    if secrets:
        with_secrets(manifests, {})
    if options.dry_run:
        return write_manifests(manifests, "create", cli, lenient=options.lenient, dry_run=True)
    with cli.connect(drive=options.wait, attached=options.wait) as client:
        if secrets:
            manifests = with_secrets(manifests, send_secrets(client, secrets))
        submitted = submit_all(client, manifests, cli, lenient=options.lenient)
        _print(submitted, form, cli)
        if options.wait:
            return _wait(client, submitted, timeout_s, cli)
    if submitted.jobs or submitted.arrays:
        cli.note_unserved()
    else:
        note_unserved(submitted.owners[0].noun, cli)
    return exit_codes.OK


def _print(submitted: Submitted, form: str, cli: Cli) -> None:
    """Print before waiting, so that a reader can start at once."""
    owners = [(item.id, item.name, f"{SINGULAR[item.noun]}/{item.name}") for item in submitted.owners]
    owners += [(str(item.id), str(item.name), f"array/{item.name}") for item in submitted.arrays]
    things = [*owners, *((str(job.id), job.name, f"job/{job.id}") for job in submitted.jobs)]
    if form == "json":
        cli.output().document({"items": [{"id": one_id, "name": name} for one_id, name, _ in things]}, form)
    else:
        lines = {"text": "{0} {1}\n", "name": "{2}\n", "id": "{0}\n"}[form]
        cli.stdout.writelines(lines.format(*thing) for thing in things)
    cli.stdout.flush()


def _wait(client: "Client", submitted: Submitted, timeout_s: float | None, cli: Cli) -> int:
    """Wait for jobs, then for arrays and job sets with the time that is left."""
    begun, jobs = cli.now(), submitted.jobs
    code = (
        wait_for(client, [str(job.id) for job in jobs], WaitGoal(timeout_s=timeout_s), cli) if jobs else exit_codes.OK
    )
    if submitted.arrays and code != exit_codes.TIMED_OUT:
        names = [str(thing.name) for thing in submitted.arrays]
        goal = WaitGoal(timeout_s=_left(timeout_s, begun, cli), kind=ARRAY)
        code = wait_for_owners(client, names, goal, cli) or code
    for noun in dict.fromkeys(thing.noun for thing in submitted.owners):
        if code == exit_codes.TIMED_OUT:
            break
        goal = WaitGoal(timeout_s=_left(timeout_s, begun, cli), kind=OF_WORK[noun])
        code = (
            wait_for_owners(client, [thing.id for thing in submitted.owners if thing.noun == noun], goal, cli) or code
        )
    return code


def _left(timeout_s: float | None, begun: float, cli: Cli) -> float | None:
    return None if timeout_s is None else max(0.0, timeout_s - (cli.now() - begun))


SUBMIT = Command(
    "submit",
    SubmitOptions,
    submit,
    "Run work",
    examples=(
        "holdfast submit -f jobs.yaml --wait",
        "generate-jobs | holdfast submit -f -",
        "holdfast submit -f report.yaml --after sweep:ended",
        "holdfast submit -f jobset.yaml --wait",
    ),
)
