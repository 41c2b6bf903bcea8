"""``holdfast wait``: until jobs or job sets have ended, or are in a state."""

from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import Noun
from holdfast.cli.options import TimeoutOption
from holdfast.cli.targets import job_or_set
from holdfast.cli.watching.waiting import JOB_SETS, JOB_STATES, SET_STATES, TERMINAL, Wanted, wait_for, wait_for_sets


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions:
    """What ``wait`` can be told."""

    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] NAME...",
            help="Jobs: ids, names (the newest of that name), or starts of ids; with the KIND jobset, job sets.",
        ),
    ]
    state: Annotated[
        str,
        typer.Option("--for", metavar="STATE", help="terminal, or a state such as Running or Held."),
    ] = TERMINAL
    timeout: TimeoutOption = None


def wait(options: WaitOptions, cli: Cli) -> int:
    """Wait until jobs or job sets have ended.

    The exit code is 0 when all succeeded (or reached the state of --for), 1 when some job failed, was cancelled, or
    can no longer reach that state, and 124 when the time ran out first. A job set has succeeded when it is Completed.
    """
    target = job_or_set(options.what)
    flags = Flags()
    states = SET_STATES if target.noun is Noun.JOB_SET else JOB_STATES
    state = flags.choice("--for", options.state, (TERMINAL, *states))
    timeout_s = flags.duration("--timeout", options.timeout)
    flags.finish()
    with cli.connect(drive=True) as client:
        if target.noun is Noun.JOB_SET:
            return wait_for_sets(client, target.names, Wanted(state, timeout_s, JOB_SETS), cli)
        known = client.states(target.names)
        ids = [job if job in known else client.job(job).id for job in target.names]
        return wait_for(client, ids, Wanted(state, timeout_s), cli)


WAIT = Command(
    "wait",
    WaitOptions,
    wait,
    "Look",
    examples=("holdfast wait train --timeout 1h", "holdfast wait jobset train --timeout 1h"),
)
