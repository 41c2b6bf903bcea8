"""Reaches the API inside this process, without a socket: the same requests, the same answers.

A synchronous client speaks to the asynchronous application through an event loop in another thread.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import httpx
from anyio.from_thread import start_blocking_portal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping
    from typing import Any

    from anyio.from_thread import BlockingPortal

    Message = MutableMapping[str, Any]
    Application = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]


class InProcessTransport(httpx.BaseTransport):
    """Sends a synchronous client's requests to an ASGI application in this process."""

    streams = False
    """An answer comes whole, so nothing that never ends can be read."""

    def __init__(self, app: Application, *, before: Callable[[], None] = lambda: None) -> None:
        """Remember the application; the loop starts with the first request.

        Args:
            app: What answers.
            before: Called before each request; raises what makes asking pointless.
        """
        self._before = before
        # An error in the application is answered by its own handler, as over a socket.
        self._asgi = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._starting = threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request and return the whole answer."""
        self._before()
        request.read()
        return self._running().call(self._answer, request)

    async def _answer(self, request: httpx.Request) -> httpx.Response:
        response = await self._asgi.handle_async_request(request)
        content = await response.aread()
        return httpx.Response(response.status_code, headers=response.headers, content=content)

    def _running(self) -> BlockingPortal:
        with self._starting:
            if self._portal is None:
                self._portal = self._stack.enter_context(start_blocking_portal(name="holdfast-api"))
            return self._portal

    def close(self) -> None:
        """Stop the loop and its thread; double close is fine."""
        with self._starting:
            self._portal = None
            self._stack.close()
