"""``holdfast run``: one job, followed to its end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.export import exported
from holdfast.cli.flags import Flags
from holdfast.cli.job_manifest import JobFlags, RetryFlags, build
from holdfast.cli.manifests import read_policy_specs
from holdfast.cli.watching.follow import ENDED, Follower
from holdfast.cli.watching.interrupts import Interrupts
from holdfast.cli.watching.pacing import Pace
from holdfast.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.client import Client
    from holdfast.wire.jobs import JobSummary, JobView

Text = str | None
_PATIENCE_S = 1.0
"""How long a job may wait before the user is told why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What ``run`` can be told."""

    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The program and its arguments, after --.")]
    name: Annotated[Text, typer.Option(help="The job's name; default the program's.")] = None
    queue: Annotated[Text, typer.Option(help="The queue to wait in.")] = None
    priority: Annotated[Text, typer.Option(metavar="N", help="Jobs with a higher priority start first; default 0.")] = (
        None
    )
    retries: Annotated[Text, typer.Option(metavar="N", help="Retry after a failure, up to N times.")] = None
    policy: Annotated[
        list[str],
        typer.Option(metavar="NAME|FILE", help="A stored retry policy, or a file with one. Repeatable, in order."),
    ] = field(default_factory=list)
    retry_on_exit: Annotated[
        list[str],
        typer.Option(metavar="CODES", help="Retry only after these exit codes, such as 137,143."),
    ] = field(default_factory=list)
    no_retry_on_exit: Annotated[
        list[str],
        typer.Option(
            metavar="CODES", help="Never retry after these exit codes; takes precedence over --retry-on-exit."
        ),
    ] = field(default_factory=list)
    backoff: Annotated[Text, typer.Option(metavar="DURATION", help="Delay before the first retry, such as 1s.")] = None
    max_backoff: Annotated[Text, typer.Option(metavar="DURATION", help="Longest delay between retries.")] = None
    multiplier: Annotated[Text, typer.Option(metavar="X", help="Factor by which each delay grows; default 2.")] = None
    timeout: Annotated[Text, typer.Option(metavar="DURATION", help="Longest time one attempt may run.")] = None
    grace: Annotated[Text, typer.Option(metavar="DURATION", help="Time between SIGTERM and SIGKILL; default 10s.")] = (
        None
    )
    cpus: Annotated[Text, typer.Option(metavar="N", help="Cores for each rank, such as 2, 0.5 or 500m.")] = None
    memory: Annotated[Text, typer.Option(metavar="SIZE", help="Memory limit of each rank, such as 2Gi.")] = None
    gpus: Annotated[Text, typer.Option(metavar="N", help="GPUs for each rank.")] = None
    env: Annotated[
        list[str],
        typer.Option(
            "--env",
            "-e",
            metavar="K[=V]",
            help="Set an environment variable; K alone passes on its current value. Repeatable.",
        ),
    ] = field(default_factory=list)
    export: Annotated[
        Text,
        typer.Option(
            metavar="ALL|NONE|NAMES",
            help="Variables of this shell to pass on, such as PATH,CUDA_*; default PATH, VIRTUAL_ENV, CONDA_*,"
            " LD_LIBRARY_PATH and PYTHONPATH.",
        ),
    ] = None
    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Label the job, to find it again. Repeatable."),
    ] = field(default_factory=list)
    gang: Annotated[Text, typer.Option(metavar="N", help="Ranks that start, fail and restart together.")] = None
    workdir: Annotated[
        Text, typer.Option(metavar="DIR", help="The program's working directory; default the current one.")
    ] = None
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the job's id and return at once.")] = False


def run(options: RunOptions, cli: Cli) -> int:
    """Run one job and follow its log.

    No server is needed: with none running, the job runs from the data directory in this process. The exit code is the
    job's own; 128 + N when signal N ended it, 75 when it is held. Ctrl-C asks first; a second Ctrl-C cancels the job.
    """
    manifest = manifest_of(options, cli)
    with cli.connect(drive=not options.detach) as client:
        job = _submit(client, manifest)
        if options.detach:
            cli.stdout.write(f"{job.id}\n")
            cli.note_unserved()
            return exit_codes.OK
        with Interrupts(cli.say, job.id) as interrupts:
            try:
                ended = _follow(client, job.id, interrupts, cli)
            except Unavailable:
                cli.say(f"lost sight of job {job.id}; to see what became of it: holdfast wait {job.id}")
                raise
    return exit_codes.of_job(ended) if interrupts.exit_code is None else interrupts.exit_code


def _submit(client: Client, manifest: dict[str, object]) -> JobSummary:
    """Submit the job; lines of errors are left out, as the person wrote no manifest."""
    try:
        return client.submit(manifest)
    except InvalidRequest as error:
        problems = [replace(problem, line=None) for problem in error.problems]
        raise type(error)(error.message, problems=problems, hint=error.hint) from error


def manifest_of(options: RunOptions, cli: Cli) -> dict[str, object]:
    """Build the manifest; reads policy files and this process's surroundings, changes nothing.

    Raises:
        InvalidRequest: With every flag that is wrong.
    """
    flags = Flags()
    files = [policy for policy in options.policy if _is_file(policy)]
    job = JobFlags(
        command=options.command,
        name=options.name,
        queue=options.queue,
        priority=options.priority,
        gang=options.gang,
        cpus=options.cpus,
        memory=options.memory,
        gpus=options.gpus,
        env=exported(options.export, cli.environ, flags) | flags.pairs("--env", options.env, known=cli.environ),
        labels=flags.pairs("--label", options.label),
        working_dir=str(Path(cli.cwd(), options.workdir or "")),
        timeout=options.timeout,
        grace=options.grace,
    )
    retry = RetryFlags(
        retries=options.retries,
        policies=[policy for policy in options.policy if policy not in files],
        files=read_policy_specs(files, flags),
        retry_on_exit=options.retry_on_exit,
        no_retry_on_exit=options.no_retry_on_exit,
        backoff=options.backoff,
        max_backoff=options.max_backoff,
        multiplier=options.multiplier,
    )
    manifest = build(job, retry, flags)
    flags.finish()
    return manifest


def _is_file(policy: str) -> bool:
    """Tell a file from a stored policy's name: names have no slash and no such ending."""
    return "/" in policy or policy.endswith((".yaml", ".yml", ".json"))


def _follow(client: Client, job_id: str, interrupts: Interrupts, cli: Cli) -> JobView:
    """Print the job's progress until it ends or waits for a person."""
    follower = Follower(client, job_id, cli)
    pending = _Pending(cli)
    pace = Pace(cli.sleep, first_s=0.02, longest_s=0.25)
    while (job := follower.look()).state not in ENDED:
        if interrupts.wants_cancel():
            client.cancel(job_id, reason=interrupts.reason)
        elif job.state == "Held" and interrupts.exit_code is None:
            cli.say(f"job {job_id} is held; to release it: holdfast release {job_id}")
            return job
        pending.note(job)
        pace.rest(news=follower.news)
    if job.state == "Cancelled":
        cli.say(f"cancelled: {job.reason}" if job.reason else "cancelled")
    return job


class _Pending:
    """Says why a job does not start, once for each reason that lasts."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._reason = ""
        self._since = cli.now()
        self._said = ""

    def note(self, job: JobView) -> None:
        reason = job.reason if job.state == "Queued" else ""
        if reason != self._reason:
            self._reason, self._since = reason, self._cli.now()
        elif reason and reason != self._said and self._cli.now() - self._since >= _PATIENCE_S:
            self._said = reason
            self._cli.say(f"waiting: {reason}")


RUN = Command(
    "run",
    RunOptions,
    run,
    "Run work",
    trailing_command=True,
    examples=(
        "holdfast run -- python train.py",
        "holdfast run --retries 3 --backoff 1s --no-retry-on-exit 2 -- ./flaky.sh",
        "holdfast run --gang 4 --memory 2Gi --policy infra -- torchrun train.py",
    ),
)
