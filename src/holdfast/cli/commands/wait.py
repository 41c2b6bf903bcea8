"""``holdfast wait``: until jobs, job sets or arrays have ended, or are in a state."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.cli.command import Command
from holdfast.cli.context import Cli
from holdfast.cli.flags import Flags
from holdfast.cli.nouns import OF_WORK, Noun
from holdfast.cli.options import TimeoutOption
from holdfast.cli.selection import AllOption, ChooseOptions, Selected, read_choice, select
from holdfast.cli.targets import job_or_set
from holdfast.cli.watching.waiting import TERMINAL, WaitGoal, wait_for, wait_for_owners
from holdfast.domain.terms.kinds import ARRAY, JOB

if TYPE_CHECKING:
    from holdfast.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitOptions(ChooseOptions):
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="[KIND] [NAME]...",
            help="Jobs: ids, names (the newest of that name), or starts of ids; or a KIND, jobset or array, and names.",
        ),
    ] = field(default_factory=list)
    until: Annotated[
        str,
        typer.Option(
            "--for", metavar="STATE", help="The state to wait for, such as Running or Held; default terminal, any end."
        ),
    ] = TERMINAL
    every: AllOption = False
    timeout: TimeoutOption = None


def wait(options: WaitOptions, cli: Cli) -> int:
    """Wait until jobs, job sets or arrays have ended.

    The exit code is 0 when all succeeded (or reached the state of --for), 1 when some job failed, was cancelled, or can
    no longer reach that state, and 124 when the time ran out first. A job set has succeeded when it is Completed. Jobs
    and arrays can also be selected by label, queue, state, cause or age.

    At the end it prints a line for each, or for the first 20 jobs. Ctrl-C leaves the jobs as they are.
    """
    flags = Flags()
    chosen = read_choice(
        options,
        flags,
        names=options.what,
        every=options.every,
        states=JOB.states,
        others={Noun.ARRAY: ARRAY.awaited},
    )
    target = job_or_set(options.what)
    state = flags.choice("--for", options.until, (TERMINAL, *OF_WORK[target.noun].awaited))
    timeout_s = flags.duration("--timeout", options.timeout)
    flags.finish()
    with cli.connect(drive=True, attached=True) as client:
        if chosen is not None:
            return _wait_for_chosen(client, select(client, chosen, cli), WaitGoal(state, timeout_s), cli)
        if target.noun != Noun.JOB:
            return wait_for_owners(client, target.names, WaitGoal(state, timeout_s, OF_WORK[target.noun]), cli)
        states = client.states(target.names)
        ids = [job if job in states else client.job(job).id for job in target.names]
        return wait_for(client, ids, WaitGoal(state, timeout_s), cli)


def _wait_for_chosen(client: "Client", targets: Sequence[Selected], goal: WaitGoal, cli: Cli) -> int:
    code = wait_for(client, [target.id for target in targets if target.noun == Noun.JOB], goal, cli)
    arrays = [target.id for target in targets if target.noun == Noun.ARRAY]
    state = goal.state if goal.state in ARRAY.awaited else TERMINAL
    return code or wait_for_owners(client, arrays, replace(goal, state=state, kind=ARRAY), cli)


WAIT = Command(
    "wait",
    WaitOptions,
    wait,
    "Look",
    examples=(
        "holdfast wait train --timeout 1h",
        "holdfast wait jobset train --timeout 1h",
        "holdfast wait -l team=vision --since 1d",
    ),
)
