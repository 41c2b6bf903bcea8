"""A server that has nothing to do does next to nothing."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from tests.e2e.server import Server, wait_until

if TYPE_CHECKING:
    from holdfast.client import Client

_TURNS = 10
_MOST_PER_S = 6.0


def test_an_idle_server_takes_a_turn_once_in_a_while(server: Server) -> None:
    with server.start() as client:
        client.submit({"command": ["true"]})
        wait_until(lambda: list(client.jobs(states=["Succeeded"])), "the job's end")
        before, began = _turns(client), time.monotonic()
        wait_until(lambda: _turns(client) >= before + _TURNS, "a few turns")
        assert time.monotonic() - began > _TURNS / _MOST_PER_S


def _turns(client: Client) -> int:
    found = re.search(r"^holdfast_tick_seconds_count (\S+)", client.metrics(), re.MULTILINE)
    assert found is not None
    return int(float(found[1]))
