"""Reaches the API inside this process, without a socket: the same requests, the same answers.

A synchronous client speaks to the asynchronous application through an event loop in another thread.
"""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from anyio import Event
from anyio.from_thread import start_blocking_portal

from holdfast.client.transport import Answer, Request, Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping
    from typing import Any

    from anyio.from_thread import BlockingPortal

    Message = MutableMapping[str, Any]
    Application = Callable[
        [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
    ]


class InProcessTransport(Transport):
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
        self._app = app
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._starting = threading.Lock()

    def send(self, request: Request, timeout_s: float) -> Answer:  # noqa: ARG002 - nothing gets lost on the way
        """Send one request and return the whole answer."""
        self._before()
        return self._running().call(_answer, self._app, request)

    def stream(self, request: Request, timeout_s: float) -> Iterator[Answer]:
        """Send one request and yield the whole answer."""
        yield self.send(request, timeout_s)

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


async def _answer(app: Application, request: Request) -> Answer:
    asked = [{"type": "http.request", "body": request.body or b"", "more_body": False}]
    told: list[Message] = []
    over = Event()

    async def receive() -> Message:
        if asked:
            return asked.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        told.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            over.set()

    with suppress(Exception):  # an error in the application is answered by its own handler, as over a socket
        await app(_scope(request), receive, send)
    status = next((message["status"] for message in told if message["type"] == "http.response.start"), 500)
    return Answer(status, b"".join(message.get("body", b"") for message in told))


def _scope(request: Request) -> Message:
    path, _, query = request.target.partition("?")
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in request.headers.items()],
        "client": ("127.0.0.1", 0),
        "server": ("holdfast", 80),
    }
