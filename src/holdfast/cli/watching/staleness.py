"""Warns that output may be out of date, because nobody runs the jobs that have not ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.cli.nouns import OWNERS
from holdfast.domain.terms.kinds import JOB, KINDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.cli.context import Cli
    from holdfast.client import Client

NOTE = "no server is running, so this may be out of date; start one: holdfast up"


class Stated(Protocol):
    """A job, a job set, an array, or the explanation of one."""

    state: str


def note_if_stale(client: Client, cli: Cli, *shown: Stated) -> None:
    """Warn the user if any of these would change with a server; without any, if anything would."""
    moves = any(thing.state in {state for kind in KINDS.values() for state in kind.moving} for thing in shown)
    if (moves or not shown) and not cli.is_looked_after() and (moves or _any_moves(client)):
        cli.say(NOTE)


def _any_moves(client: Client) -> bool:
    lists: Iterator[Iterator[object]] = (client.of(kind).list(states=kind.moving, limit=1) for kind in OWNERS.values())
    jobs = client.jobs(states=JOB.moving, limit=1)
    return any(next(some, None) is not None for some in (jobs, *lists))
