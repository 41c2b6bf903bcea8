"""Sends events as they happen, as server-sent events.

Decides how often the store is asked, how long a client may take to read, and how many may listen; each client
costs one part of the log in memory at most, and no thread while it waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import structlog
from anyio import to_thread
from fastapi.responses import Response

from holdfast.errors import HoldfastError, Unavailable
from holdfast.wire.events import EVENT_STREAM
from holdfast.wire.render_events import event_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio import CancelScope
    from starlette.types import Receive, Scope, Send

    from holdfast.domain.events import StoredEvent
    from holdfast.service.events import EventPart

_log = structlog.get_logger(__name__)

MOST_STREAMS = 100
"""Clients at a time."""
HEARTBEAT_S = 15.0
STALL_S = 30.0
"""How long a client may take to read what it was sent before it is let go."""
NEWS_S = 0.05
IDLE_S = 0.25
"""The longest time between two looks at the store."""
_AFTER_ERROR_S = 1.0
_RETRY_MS = 1000
_READERS = anyio.CapacityLimiter(4)
"""Threads that read for streams, so that they leave the others to the rest of the API."""


@dataclass(slots=True)
class Streams:
    """How many clients listen, and when all of them are to go."""

    stopping: Callable[[], bool] = lambda: False
    count: int = 0

    def admit(self) -> None:
        """Check that one more client may listen.

        Raises:
            Unavailable: Too many do.
        """
        if self.count >= MOST_STREAMS:
            msg = f"{MOST_STREAMS} clients follow events already"
            raise Unavailable(msg, hint="read pages instead: Accept: application/json")


class EventStream(Response):
    """An answer that goes on until the client leaves or the server stops."""

    media_type = EVENT_STREAM

    def __init__(self, streams: Streams, read: Callable[[int], EventPart], after: int) -> None:
        """Remember how to read the events after a place, and where to begin."""
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._streams = streams
        self._read = read
        self._after = after
        self._quiet_s, self._pause_s = 0.0, NEWS_S

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events until somebody ends it."""
        del scope
        self._streams.count += 1
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with anyio.create_task_group() as group:
                group.start_soon(_until_gone, receive, group.cancel_scope)
                await self._send_all(send)
                group.cancel_scope.cancel()
        finally:
            self._streams.count -= 1

    async def _send_all(self, send: Send) -> None:
        try:
            await _push(send, f"retry: {_RETRY_MS}\n\n: hello\n\n")
            while not self._streams.stopping():
                await self._send_next(send)
            await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            _log.info("a client that follows events does not read them; it is let go", after=self._after)
        except HoldfastError as error:
            _log.warning("events cannot be read; a client that follows them is let go", error=str(error))

    async def _send_next(self, send: Send) -> None:
        """Send what there is, or a sign of life when there was nothing for long; then rest."""
        part = await self._next()
        if part is None:
            await anyio.sleep(_AFTER_ERROR_S)
            return
        if part.events:
            await _push(send, "".join(map(frame, part.events)))
            self._quiet_s, self._pause_s = 0.0, NEWS_S
        elif self._quiet_s >= HEARTBEAT_S:
            await _push(send, f": heartbeat\nid: {self._after}\n\n")
            self._quiet_s = 0.0
        if not part.full:
            await anyio.sleep(self._pause_s)
            self._quiet_s += self._pause_s
            self._pause_s = min(self._pause_s * 2, IDLE_S)

    async def _next(self) -> EventPart | None:
        """Read the next part in a thread; ``None`` when the store has no time."""
        try:
            part = await to_thread.run_sync(self._read, self._after, limiter=_READERS)
        except Unavailable:
            return None
        self._after = part.next_after
        return part


def frame(event: StoredEvent) -> str:
    """Write one server-sent event."""
    return f"id: {event.seq}\nevent: {event.type.name}\ndata: {event_view(event).model_dump_json()}\n\n"


async def _push(send: Send, text: str) -> None:
    """Send text to a client that has only so long to read it."""
    with anyio.fail_after(STALL_S):
        await send({"type": "http.response.body", "body": text.encode(), "more_body": True})


async def _until_gone(receive: Receive, scope: CancelScope) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
