"""Says that what is shown may be out of date: that nobody runs jobs which have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from holdfast.cli.context import Cli
    from holdfast.client import Client

MOVING_JOBS = ("Queued", "Running", "BackOff", "Waiting")
"""States that a server would change; a job that is held waits for a person."""
MOVING_SETS = ("Pending", "Running", "Restarting", "Deleting")
MOVING_ARRAYS = ("Queued", "Running", "Stopping", "Deleting")
NOTE = "no server is running, so this may be out of date; start one: holdfast up"


class Stated(Protocol):
    """A job, a job set, an array, or what is said about one."""

    state: str


def note_if_stale(client: Client, cli: Cli, *shown: Stated) -> None:
    """Tell the person when some of these would have gone on with a server; without any, when anything would have."""
    moves = any(one.state in {*MOVING_JOBS, *MOVING_SETS, *MOVING_ARRAYS} for one in shown)
    if (moves or not shown) and not cli.is_looked_after() and (moves or _any_moves(client)):
        cli.say(NOTE)


def _any_moves(client: Client) -> bool:
    jobs, sets = client.jobs(states=MOVING_JOBS, limit=1), client.job_sets(states=MOVING_SETS, limit=1)
    arrays = client.arrays(states=MOVING_ARRAYS, limit=1)
    return any(next(iter(some), None) is not None for some in (jobs, sets, arrays))
