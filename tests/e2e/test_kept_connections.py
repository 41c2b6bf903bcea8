"""Calls over one connection that is kept, as the client and every library make them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.e2e.server import Server

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.client import Client

CALLS = 30
DELAYED_S = 0.04
"""How long Linux holds an acknowledgement back, and so what waits for one: the second part of an answer."""


def test_the_calls_of_a_kept_connection_do_not_wait_for_acknowledgements(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        with server.start() as client:
            took = sorted(took_s(client) for _ in range(CALLS))
            assert took[CALLS // 3] < DELAYED_S, took  # a few are not held back on any new connection
    finally:
        server.clean_up()


def took_s(client: Client) -> float:
    """Make a call, and say how long it took."""
    began = time.perf_counter()
    client.version()
    return time.perf_counter() - began
