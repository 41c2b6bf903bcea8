"""Sends events as they happen, as server-sent events.

A client that reads too slowly is disconnected, and an idle stream sends heartbeats. Each client costs at most one part
of the log in memory, and no thread and no query while it waits.
"""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from fastapi.responses import Response

from holdfast.api.http.serving.errors import respond
from holdfast.errors import HoldfastError, Unavailable
from holdfast.service.listeners import AFTER_ERROR_S, READERS
from holdfast.wire.events import EVENT_STREAM
from holdfast.wire.render_events import event_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio import CancelScope
    from starlette.types import Receive, Scope, Send

    from holdfast.domain.access import Principal
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.service.listeners import Listeners
    from holdfast.service.operations.events import EventPart

_log = logging.getLogger(__name__)

HEARTBEAT_S = 15.0
STALL_S = 30.0
"""How long a client may take to read what it was sent before it is disconnected."""
_RETRY_MS = 1000


class EventStream(Response):
    """An answer that continues until the client leaves or the server stops."""

    media_type = EVENT_STREAM

    def __init__(
        self, listeners: Listeners, principal: Principal, read: Callable[[int], EventPart], after: int
    ) -> None:
        """Follow events from ``after`` on; ``read`` returns those after an id."""
        self._principal = principal
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._listeners = listeners
        self._read = read
        self._after = after
        self._sent_at = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until the client leaves or the server stops."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._listeners.admitted(self._principal))
            except Unavailable as error:
                await respond(error)(scope, receive, send)
                return
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await self._send_all(send)
                group.cancel_scope.cancel()

    async def _send_all(self, send: Send) -> None:
        try:
            await self._push(send, f"retry: {_RETRY_MS}\n\n: hello\n\n")
            while not self._listeners.stopping():
                await self._send_next(send)
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            _log.info("a client that follows events does not read them; disconnecting it after %s", self._after)
        except HoldfastError as error:
            _log.warning("events cannot be read; disconnecting a client that follows them: %s", error)

    async def _send_next(self, send: Send) -> None:
        """Send the next events, or a heartbeat after a long silence; then wait for news."""
        part = await self._next()
        if part is None:
            await anyio.sleep(AFTER_ERROR_S)
            return
        if part.events:
            await self._push(send, "".join(map(frame, part.events)))
        elif self._quiet_s() >= HEARTBEAT_S:
            await self._push(send, f": heartbeat\nid: {self._after}\n\n")
        if not part.full:
            await self._listeners.news(part.last, HEARTBEAT_S - self._quiet_s())

    def _quiet_s(self) -> float:
        return anyio.current_time() - self._sent_at

    async def _push(self, send: Send, text: str) -> None:
        """Send text to a client that has limited time to read it."""
        with anyio.fail_after(STALL_S):
            await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
        self._sent_at = anyio.current_time()

    async def _next(self) -> EventPart | None:
        """Read the next part in a thread; ``None`` if the store cannot answer now."""
        try:
            part = await to_thread.run_sync(self._read, self._after, limiter=READERS)
        except Unavailable:
            return None
        self._after = part.next_after
        return part


def frame(event: StoredEvent) -> str:
    """Write one server-sent event."""
    return f"id: {event.seq}\nevent: {event.type.name}\ndata: {event_view(event).model_dump_json()}\n\n"


async def _until_gone(receive: Receive, scope: CancelScope) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
