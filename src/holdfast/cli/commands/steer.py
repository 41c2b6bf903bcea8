"""``holdfast cancel``, ``hold`` and ``release``: what a user can ask of a job."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.cli import exit_codes
from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.options import JobsArgument, ReasonOption
from holdfast.cli.watching.waiting import Wanted, wait_for
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.wire.jobs import JobSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class SteerOptions:
    """What ``cancel``, ``hold`` and ``release`` can be told."""

    jobs: JobsArgument
    reason: ReasonOption = ""


def cancel(options: SteerOptions, cli: Cli) -> int:
    """Cancel jobs.

    Running programs get SIGTERM and, after their grace period, SIGKILL. A cancelled job is never retried. Without a
    server the command stops the programs itself and ends when they have; it starts no other jobs.
    """
    unserved = cli.is_unserved()
    with cli.connect(drive=unserved, places=False) as client:
        asked: list[str] = []

        def ask(reference: str) -> "JobSummary":
            job = client.cancel(reference, reason=options.reason)
            asked.append(job.id)
            return job

        code = _each(options.jobs, ask, "cancel", cli)
        return code if not unserved else wait_for(client, asked, Wanted(state="Cancelled"), cli) or code


def hold(options: SteerOptions, cli: Cli) -> int:
    """Keep waiting jobs from starting until they are released.

    A job made of pods can be held while it runs, too: its programs get SIGTERM and, after their grace, SIGKILL, and
    new pods are started when it is released.
    """
    with cli.connect() as client:
        return _each(options.jobs, lambda job: client.hold(job, reason=options.reason), "hold", cli)


def release(options: SteerOptions, cli: Cli) -> int:
    """Release held jobs."""
    with cli.connect() as client:
        return _each(options.jobs, lambda job: client.release(job, reason=options.reason), "release", cli)


def _each(jobs: Sequence[str], act: "Callable[[str], JobSummary]", verb: str, cli: Cli) -> int:
    """Ask for every job, also after one refused; the exit code is the first refusal's."""
    code = exit_codes.OK
    for reference in jobs:
        try:
            job = act(reference)
        except HoldfastError as error:
            cli.say(f"error: {reference}: {error}")
            code = code or exit_codes.of_error(error)
        else:
            cli.output().text(f"{job.id} {job.name} {verb} requested")
    return code


CANCEL = Command("cancel", SteerOptions, cancel, "Steer", examples=("holdfast cancel train --reason 'wrong data'",))
HOLD = Command("hold", SteerOptions, hold, "Steer")
RELEASE = Command("release", SteerOptions, release, "Steer")
