"""Looks again and again, also while the server is away and after it comes back at another address."""

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
"""Looks at a directory without a server before checking again for one."""


def reached(look: Callable[[Client], object], cli: Cli) -> Iterator[str]:
    """Look once for each item of the iterator, for ever.

    Args:
        look: Sends the requests.
        cli: How to connect.

    Yields:
        A notice: ``AWAY`` if the look failed, ``NOTE`` if nobody runs the jobs, or an empty string.
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
