"""``holdfast wait``: until jobs have ended, or are in a state."""

from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.options import JobsArgument, TimeoutOption
from holdfast.cli.waiting import JOB_STATES, TERMINAL, Wanted, wait_for


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """What ``wait`` can be told."""

    jobs: JobsArgument
    state: Annotated[
        str,
        typer.Option("--for", metavar="STATE", help="terminal, or a state such as Running or Held."),
    ] = TERMINAL
    timeout: TimeoutOption = None


def wait(options: WaitOptions, cli: Cli) -> int:
    """Wait until jobs have ended.

    The exit code is 0 when all succeeded (or came into the state of --for), 1 when some job failed, was cancelled, or
    can no longer come into that state, and 124 when the time ran out first.
    """
    flags = Flags()
    state = flags.choice("--for", options.state, (TERMINAL, *JOB_STATES))
    timeout_s = flags.duration("--timeout", options.timeout)
    flags.finish()
    with cli.connect(drive=True) as client:
        known = client.states(options.jobs)
        ids = [job if job in known else client.job(job).id for job in options.jobs]
        return wait_for(client, ids, Wanted(state=state, timeout_s=timeout_s), cli)


WAIT = Command("wait", WaitOptions, wait, "Look", examples=("holdfast wait train --timeout 1h",))
