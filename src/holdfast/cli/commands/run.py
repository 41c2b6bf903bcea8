"""``holdfast run``: one job, followed to its end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.manifests import read_policy_specs
from holdfast.cli.options import AfterOption, ExportOption, SecretEnvOption  # noqa: TC001 - the options are looked up when they are read
from holdfast.cli.render.arrays import progress
from holdfast.cli.submission.array_flags import ArrayFlags, array_section, spread_matrix, unused_name
from holdfast.cli.submission.export import exported
from holdfast.cli.submission.job_manifest import JobFlags, RetryFlags, build
from holdfast.cli.submission.secrets import secret_values, sent
from holdfast.cli.watching.follow import ENDED, Follower
from holdfast.cli.watching.interrupts import Interrupts
from holdfast.cli.watching.live import job_line, live_line, waited
from holdfast.cli.watching.pacing import Polling
from holdfast.domain.record import evolve
from holdfast.domain.terms.kinds import ARRAY
from holdfast.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.context import Cli
    from holdfast.cli.watching.live import LiveLine
    from holdfast.client import Client
    from holdfast.wire.arrays import ArrayView
    from holdfast.wire.jobs import JobOutcome, JobSummary, JobView

Text = str | None
_TELL_EVERY_S = 5.0
_PATIENCE_S = 1.0
"""How long a job may wait before the user is told why."""
_ASK_AGAIN_S = 2.0
"""How often a program's own report of its progress is read; executors tell it every few seconds."""


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
    signal: Annotated[
        Text,
        typer.Option(
            metavar="[NAME@]DURATION",
            help="Warn the program this long before its deadline, such as USR2@2m.",
        ),
    ] = None
    checkpointed_exit_code: Annotated[
        Text, typer.Option(metavar="N", help="Exit code that means: saved, run me again; 85 with --signal.")
    ] = None
    on_unknown_end: Annotated[
        Text, typer.Option(metavar="ACTION", help="Retry, hold or fail when nobody knows how it ended; default retry.")
    ] = None
    stall_no_output: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt that prints nothing for this long, such as 10m.")
    ] = None
    stall_no_progress: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt whose progress file does not change for this long.")
    ] = None
    stall_idle_device: Annotated[
        Text, typer.Option(metavar="DURATION", help="End an attempt whose GPUs are idle for this long, such as 15m.")
    ] = None
    cpus: Annotated[Text, typer.Option(metavar="N", help="Cores for each rank, such as 2, 0.5 or 500m.")] = None
    memory: Annotated[Text, typer.Option(metavar="SIZE", help="Memory limit of each rank, such as 2Gi.")] = None
    gpus: Annotated[
        Text, typer.Option(metavar="N", help="GPUs for each rank: a number, a share of one such as 0.25, or 'shared'.")
    ] = None
    gpu_type: Annotated[Text, typer.Option(metavar="PATTERN", help="GPUs of this model only, such as 'A100*'.")] = None
    gpu_memory: Annotated[
        Text, typer.Option(metavar="SIZE", help="GPUs with at least this much memory, such as 40Gi.")
    ] = None
    resource: Annotated[
        list[str],
        typer.Option(
            "--resource",
            metavar="NAME=AMOUNT",
            help="A named resource that each rank needs, such as licence/matlab=1. Repeatable.",
        ),
    ] = field(default_factory=list)
    env: Annotated[
        list[str],
        typer.Option(
            "--env",
            "-e",
            metavar="K[=V]",
            help="Set an environment variable; K alone passes on its current value. Repeatable.",
        ),
    ] = field(default_factory=list)
    export: ExportOption = None
    secret_env: SecretEnvOption = field(default_factory=list)
    label: Annotated[
        list[str],
        typer.Option("--label", "-l", metavar="K=V", help="Label the job, to find it again. Repeatable."),
    ] = field(default_factory=list)
    group: Annotated[
        Text, typer.Option("--group", metavar="GROUP", help="Put it into a group, such as sweeps/7, to find it again.")
    ] = None
    gang: Annotated[Text, typer.Option(metavar="N", help="Ranks that start, fail and restart together.")] = None
    workdir: Annotated[
        Text, typer.Option(metavar="DIR", help="The program's working directory; default the current one.")
    ] = None
    array: Annotated[
        Text, typer.Option(metavar="INDICES", help="Run a task for each index: 0-99, or 0-99%8 for 8 at a time.")
    ] = None
    each: Annotated[
        Text, typer.Option(metavar="FILE", help="Run a task for each line, which replaces {}; '-' is standard input.")
    ] = None
    matrix: Annotated[
        list[str],
        typer.Option(
            metavar="NAME=VALUES...",
            help="Run a task for each combination, such as lr=0.1,0.01 seed=1..5; {lr} is replaced. Repeatable.",
        ),
    ] = field(default_factory=list)
    max_running: Annotated[Text, typer.Option(metavar="N", help="How many tasks of an array run at once.")] = None
    max_failures: Annotated[
        Text, typer.Option(metavar="N", help="Cancel an array when more than N of its tasks fail.")
    ] = None
    success: Annotated[
        Text, typer.Option(metavar="all|any|N", help="Tasks of an array that must succeed; default all.")
    ] = None
    after: AfterOption = field(default_factory=list)
    notify: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[:EVENTS]",
            help="Notify this notifier at the end and on hold, or on these events: end, failure, hold, stall, recovery."
            " Repeatable.",
        ),
    ] = field(default_factory=list)
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the job's id and return at once.")] = False


def run(options: RunOptions, cli: Cli) -> int:
    """Run one job and follow its log.

    With no server running, the job runs from the data directory in this process. The exit code is the job's own; 128 +
    N when signal N ended it, 75 when it is held. Ctrl-C asks first; a second Ctrl-C cancels the job or array.
    """
    flags = Flags()
    secrets = secret_values(options.secret_env, cli.environ, flags)
    manifest = manifest_of(options, cli, flags)
    with cli.connect(drive=not options.detach, attached=not options.detach) as client:
        if secrets:
            manifest["spec"]["env"] = {**manifest["spec"].get("env", {}), **sent(client, secrets)}
        if "array" in manifest["spec"]:
            return _run_array(client, manifest, cli, detach=options.detach)
        if options.detach:
            cli.stdout.write(f"{_submit(client, manifest).id}\n")
            cli.note_unserved()
            return exit_codes.OK
        with Interrupts(cli.say, "the job") as interrupts:
            job = _submit(client, manifest)
            interrupts.submitted(f"job {job.id}")
            try:
                ended = _follow(client, job.id, interrupts, cli)
            except Unavailable:
                cli.say(f"lost track of job {job.id}; to see how it ended: holdfast wait {job.id}")
                raise
    return exit_codes.of_job(ended) if interrupts.exit_code is None else interrupts.exit_code


def _run_array(client: Client, manifest: dict[str, Any], cli: Cli, *, detach: bool) -> int:
    """Submit an array and tell how far it is until it has ended; Ctrl-C, SIGTERM and SIGHUP are as for a job."""
    if detach:
        cli.stdout.write(f"{client.submit_array(manifest).name}\n")
        cli.note_unserved()
        return exit_codes.OK
    with Interrupts(cli.say, "the array") as interrupts:
        array = client.submit_array(manifest)
        interrupts.submitted(f"array {array.name}")
        cli.say(f"array {array.name} has {array.total} tasks; to look at one: holdfast logs {array.name} --index I")
        ended = _watch_array(client, array.id, interrupts, cli)
    cli.say(f"{ended.name} {ended.state.lower()}: {ended.reason}")
    if interrupts.exit_code is not None:
        return interrupts.exit_code
    return exit_codes.OK if ended.state == "Succeeded" else exit_codes.FAILED


def _watch_array(client: Client, reference: str, interrupts: Interrupts, cli: Cli) -> ArrayView:
    """Show the progress of an array until it has ended, in a live line or every few seconds, and return it."""
    pace, last_line, began = Polling(cli.sleep, first_s=0.05), "", cli.now()
    told_at = began
    with live_line(cli) as (live, above):
        while (array := client.array(reference)).state not in ARRAY.ended:
            if interrupts.wants_cancel():
                client.cancel_array(reference, reason=interrupts.reason)
            line = progress(array)
            live.draw(f"{array.name}: {line}, {waited(cli.now() - began)}")
            if not live.able and line != last_line and cli.now() - told_at >= _TELL_EVERY_S:
                above.say(f"{array.name}: {line}")
                last_line, told_at = line, cli.now()
            pace.rest()
    return array


def _submit(client: Client, manifest: dict[str, object]) -> JobSummary:
    """Submit the job; lines of errors are left out, as the person wrote no manifest."""
    try:
        return client.submit(manifest)
    except InvalidRequest as error:
        problems = [evolve(problem, line=None) for problem in error.problems]
        raise type(error)(error.message, problems=problems, hint=error.hint) from error


def manifest_of(options: RunOptions, cli: Cli, flags: Flags) -> dict[str, Any]:
    """Build the manifest; ``flags`` has what is known to be wrong already. Reads policy files and surroundings.

    Raises:
        InvalidRequest: With every flag that is wrong.
    """
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
        gpu_type=options.gpu_type,
        gpu_memory=options.gpu_memory,
        named=flags.pairs("--resource", options.resource),
        env=exported(options.export, cli, flags) | flags.pairs("--env", options.env, defaults=cli.environ),
        labels=flags.pairs("--label", options.label),
        group=options.group,
        working_dir=str(Path(cli.cwd(), options.workdir or "")),
        timeout=options.timeout,
        grace=options.grace,
        signal=options.signal,
        checkpointed_exit_code=options.checkpointed_exit_code,
        on_unknown_end=options.on_unknown_end,
        stall_no_output=options.stall_no_output,
        stall_no_progress=options.stall_no_progress,
        stall_idle_device=options.stall_idle_device,
        after=options.after,
        notify=options.notify,
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
    array = ArrayFlags(
        array=options.array,
        each=options.each,
        matrix=options.matrix,
        max_running=options.max_running,
        max_failures=options.max_failures,
        success=options.success,
    )
    section = array_section(array, flags, cli.stdin)
    if section is not None:
        manifest["spec"]["array"] = section
        manifest["metadata"].setdefault("name", unused_name(options.command[0]))
    flags.finish()
    return manifest


def _is_file(policy: str) -> bool:
    """Tell a file from a stored policy's name: names have no slash and no such ending."""
    return "/" in policy or policy.endswith((".yaml", ".yml", ".json"))


def _follow(client: Client, job_id: str, interrupts: Interrupts, cli: Cli) -> JobView:
    """Print the job's progress until it ends or waits for a person."""
    with live_line(cli) as (line, above):
        follower, pending, status = Follower(client, job_id, above), _Pending(above), _StatusLine(client, line, cli.now)
        pace = Polling(cli.sleep, first_s=0.02, longest_s=0.25)
        while (job := follower.look()).state not in ENDED:
            if interrupts.wants_cancel():
                client.cancel(job_id, reason=interrupts.reason)
            elif job.state == "Held" and interrupts.exit_code is None:
                above.say(f"job {job_id} is held; to release it: holdfast release {job_id}")
                return job
            pending.note(job)
            status.draw(job)
            pace.rest(news=follower.news)
        if job.state == "Cancelled":
            above.say(f"cancelled: {job.reason}" if job.reason else "cancelled")
        return job


class _StatusLine:
    """Keeps the live line below what the job prints; on a terminal only, and once the job takes a while."""

    def __init__(self, client: Client, line: LiveLine, now: Callable[[], float]) -> None:
        self._client, self._line, self._now = client, line, now
        self._began = self._asked = now()
        self._known: JobOutcome | None = None

    def draw(self, job: JobView) -> None:
        at = self._now()
        if not self._line.able or at - self._began < _PATIENCE_S:
            return
        if self._known is None or self._known.state != job.state or at - self._asked >= _ASK_AGAIN_S:
            self._asked = at
            self._known = next(iter(self._client.job_outcomes(ids=[job.id])), None)
        self._line.draw(f"{job_line(self._known or job)}, {waited(at - self._began)}")


class _Pending:
    """Says why a job does not start, once for each reason that lasts."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._reason = ""
        self._since = cli.now()
        self._said = ""

    def note(self, job: JobView) -> None:
        reason = job.reason if job.state in {"Queued", "Waiting"} else ""
        if reason != self._reason:
            self._reason, self._since = reason, self._cli.now()
        elif reason and reason != self._said and self._cli.now() - self._since >= _PATIENCE_S:
            self._said = reason
            self._cli.say(f"the job {reason}" if job.state == "Waiting" else f"waiting: {reason}")


RUN = Command(
    "run",
    RunOptions,
    run,
    "Run work",
    trailing_command=True,
    rewrite=spread_matrix,
    examples=(
        "holdfast run -- python train.py",
        "holdfast run --retries 3 --backoff 1s --no-retry-on-exit 2 -- ./flaky.sh",
        "holdfast run --matrix lr=0.1,0.01 seed=1..5 --max-running 4 -- python train.py --lr {lr} --seed {seed}",
        "holdfast run --after prep --after fetch:ended -- python train.py",
        "holdfast run --gang 4 --memory 2Gi --policy infra -- torchrun train.py",
    ),
)
