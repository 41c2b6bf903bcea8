"""Looks again and again, also when the server is away for a while or comes back at another address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.watching.staleness import NOTE
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.cli.context import Cli
    from holdfast.client import Client

AWAY = "the server cannot be reached; trying again"
_UNSERVED_LOOKS = 5
"""After so many looks at a directory without a server, see whether there is one."""


def reached(look: Callable[[Client], object], cli: Cli) -> Iterator[str]:
    """Look whenever the next is asked for, for ever.

    Args:
        look: Asks for whatever is wanted.
        cli: How to reach Holdfast.

    Yields:
        What is to be said of the look: ``AWAY`` where it failed, that nobody runs the jobs, or nothing.
    """
    while True:
        try:
            yield from _while_there(look, cli)
        except Unavailable:
            yield AWAY


def _while_there(look: Callable[[Client], object], cli: Cli) -> Iterator[str]:
    with cli.connect() as client:
        served = client.connection.streams
        notice = "" if served or cli.is_looked_after() else NOTE
        looks = 0
        while served or looks < _UNSERVED_LOOKS:
            look(client)
            looks += 1
            yield notice
