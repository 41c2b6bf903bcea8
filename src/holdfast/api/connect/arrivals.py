"""Receives the messages of gRPC calls, for each of which it first reserves room for the largest message.

gRPC hands over a message only when it is complete, and says nothing of its size before. Most arrive at once. A call
that sends nothing holds its room, and loses it to other calls after a while, or at once if many wait.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from holdfast.api.budget import MemoryShare

_GRACE_S = 3.0
"""How long a message may take to arrive while another call waits for room."""
_MOST_QUEUED = 64
"""Calls that may wait for room; with one more, the oldest unfinished message is given up at once."""
_PATIENCE_S = 10.0
"""How long a call waits for room."""
_LOOK_S = 0.05
"""How often a waiting call checks what other doors have given back."""


class Arrivals(Struct, gc=True):
    """The calls of a door that wait for their messages; used on its event loop."""

    largest: int
    """Bytes of the largest message that gRPC lets through."""
    request_s: float
    """How long a message may take to arrive."""
    most: int | None = None
    """How many messages may be read at a time; ``None``: as many as there is room for."""
    _reading: dict[asyncio.Timeout, float] = field(default_factory=dict)
    """When the reading of each began, the oldest first."""
    _queue: list[object] = field(default_factory=list)
    """Calls that wait for room. The newest gets it first, so that calls that send nothing cannot hold up new ones."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def message(self, share: MemoryShare, read: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
        """Receive a message into a share, and return it; ``None`` if the call ends without one.

        Raises:
            TimeoutError: It does not arrive in time.
            Unavailable: There is no room for it.
        """
        await self._make_room(share)
        kept = self.largest
        try:
            async with asyncio.timeout(self.request_s) as limit:
                self._reading[limit] = asyncio.get_running_loop().time()
                try:
                    body = await read()
                finally:
                    self._reading.pop(limit, None)
            if body is not None:
                share.body = body
                kept -= len(body)
        finally:
            share.give_back(kept)
            self._wake()
        return body

    async def _make_room(self, share: MemoryShare) -> None:
        place = object()
        self._queue.append(place)
        deadline = asyncio.get_running_loop().time() + _PATIENCE_S
        try:
            while not (self._queue[-1] is place and self._may_begin() and share.try_take(self.largest)):
                if asyncio.get_running_loop().time() >= deadline:
                    share.take(self.largest)
                    return
                self._give_up_oldest()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _LOOK_S)
        finally:
            self._queue.remove(place)
            self._wake()

    def _may_begin(self) -> bool:
        return self.most is None or len(self._reading) < self.most

    def _give_up_oldest(self) -> None:
        now = asyncio.get_running_loop().time()
        oldest, since = next(iter(self._reading.items()), (None, now))
        if oldest is not None and (now - since >= _GRACE_S or len(self._queue) > _MOST_QUEUED):
            del self._reading[oldest]
            oldest.reschedule(now)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
