"""``holdfast run``: one job, followed to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.flags import Flags
from holdfast.cli.render.arrays import progress
from holdfast.cli.submission.array_flags import spread_matrix
from holdfast.cli.submission.job_manifest import manifest_of
from holdfast.cli.submission.run_options import RunOptions
from holdfast.cli.submission.secrets import secret_values, send_secrets
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

_TELL_EVERY_S = 5.0
_PATIENCE_S = 1.0
"""How long a job waits before the user learns why."""
_ASK_AGAIN_S = 2.0
"""How often a program's own report of its progress is read; executors tell it every few seconds."""


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
            manifest["spec"]["env"] = {**manifest["spec"].get("env", {}), **send_secrets(client, secrets)}
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
    """Submit an array and show its progress until it has ended."""
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
    """Submit the job; errors have no line numbers, because the user wrote no manifest."""
    try:
        return client.submit(manifest)
    except InvalidRequest as error:
        problems = [evolve(problem, line=None) for problem in error.problems]
        raise type(error)(error.message, problems=problems, hint=error.hint) from error


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
    """Keeps the live line below the job's output, on a terminal and once the job takes a while."""

    def __init__(self, client: Client, line: LiveLine, now: Callable[[], float]) -> None:
        self._client, self._line, self._now = client, line, now
        self._began = self._refreshed_at = now()
        self._outcome: JobOutcome | None = None

    def draw(self, job: JobView) -> None:
        at = self._now()
        if not self._line.able or at - self._began < _PATIENCE_S:
            return
        if self._outcome is None or self._outcome.state != job.state or at - self._refreshed_at >= _ASK_AGAIN_S:
            self._refreshed_at = at
            self._outcome = next(iter(self._client.job_outcomes(ids=[job.id])), None)
        self._line.draw(f"{job_line(self._outcome or job)}, {waited(at - self._began)}")


class _Pending:
    """Says why a job does not start, once for each reason that lasts."""

    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self._reason = ""
        self._since = cli.now()
        self._printed = ""

    def note(self, job: JobView) -> None:
        reason = job.reason if job.state in {"Queued", "Waiting"} else ""
        if reason != self._reason:
            self._reason, self._since = reason, self._cli.now()
        elif reason and reason != self._printed and self._cli.now() - self._since >= _PATIENCE_S:
            self._printed = reason
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
