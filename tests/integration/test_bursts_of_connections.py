"""More callers come between two turns of a busy server's loop than it may have connections."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
import uvicorn

from holdfast.app.connections import CountedConnection, Doorway, Server, Shares, bounds, protocol
from holdfast.app.entrance.network import Certificates
from tests.e2e.server import PATIENCE_S
from tests.e2e.test_network import issue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MOST, CALLERS = 100, 700
CLEAR, HELLO = b"GET / HTTP/1.1\r\n", bytes.fromhex("1603010200010001fc0303")
"""The beginning of a request and of a handshake."""


class Counting(Doorway):
    """Counts the connections that are open whenever another has come in."""

    def __init__(self, shares: Shares) -> None:
        super().__init__(shares)
        self.made: list[CountedConnection] = []
        self.counts: list[int] = []

    def enter(self, caller: CountedConnection) -> bool:
        """Count it too, from when it is accepted."""
        self.made.append(caller)
        self.counts.append(self.open())
        return super().enter(caller)

    def open(self) -> int:
        """Return how many are open."""
        return sum(1 for one in self.made if one.fileno() >= 0)


async def nothing(_scope: object, _receive: object, _send: object) -> None:
    """Answer: no request ever comes whole."""


async def become(true: Callable[[], bool]) -> None:
    """Look in every turn of the loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not true():  # noqa: ASYNC110 - what is waited for is turns of the loop
            await asyncio.sleep(0)


@pytest.mark.parametrize("by_tls", [False, True], ids=["requests", "handshakes"])
def test_a_burst_of_one_caller_takes_little_more_than_its_share(tmp_path: Path, by_tls: bool) -> None:  # noqa: FBT001 - of the test
    allowed = bounds(MOST, PATIENCE_S)
    guarded = protocol(allowed, whole=())
    guarded.doorway = doorway = Counting(Shares(allowed.most, allowed.at_once))
    shown = Certificates(*issue(tmp_path)) if by_tls else None

    async def serve(listening: socket.socket, callers: ExitStack) -> None:
        config = uvicorn.Config(nothing, lifespan="off", ws="none", backlog=allowed.at_once)
        config.load()
        server = Server(config, guarded, shown)
        server.lifespan = config.lifespan_class(config)
        await server.startup([listening])
        await become(lambda: len(doorway.made) == CALLERS and doorway.open() <= MOST // 2)
        callers.close()
        await become(lambda: not doorway.open())
        for one in server.servers:
            one.close()

    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listening, ExitStack() as callers:
        for _ in range(CALLERS):
            caller = callers.enter_context(socket.create_connection(listening.getsockname()))
            caller.sendall(HELLO if by_tls else CLEAR)
        asyncio.run(serve(listening, callers))
    assert max(doorway.counts) <= MOST * 3 // 4, "its share, and those that are being closed"
