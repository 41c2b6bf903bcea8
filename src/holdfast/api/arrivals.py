"""Waits for the messages of calls by gRPC, each with room kept for the largest that may come.

gRPC hands a message over when all of it is there, and until then says nothing of its size. Most come at once. Whoever
calls without sending holds room, and gives it up to others after a while; at once, where many wait.
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
"""Calls that wait for room; for one more, the message that has been waited for longest is given up at once."""
_PATIENCE_S = 10.0
"""How long a call waits for room."""
_LOOK_S = 0.05
"""How long between two looks at what other doors have given back."""


class Arrivals(Struct, gc=True):
    """The calls of a door whose messages are waited for; used on its event loop."""

    largest: int
    """Bytes of a message that gRPC lets through."""
    request_s: float
    """How long one may take to arrive."""
    most: int | None = None
    """Of how many one is read at a time, if that is not only a matter of room."""
    _reading: dict[asyncio.Timeout, float] = field(default_factory=dict)
    """Since when, the oldest first."""
    _queue: list[object] = field(default_factory=list)
    """Who waits for room. The newest has it first: those who only hold room cannot keep it from arriving."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def message(self, share: MemoryShare, read: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
        """Wait for a message, and have a share hold it; returns ``None`` where a call ends without one.

        Raises:
            TimeoutError: It does not come in time.
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
            while not (self._queue[-1] is place and self._may_begin() and share.fits(self.largest)):
                if asyncio.get_running_loop().time() >= deadline:
                    share.take(self.largest)
                    return
                self._give_up_the_oldest()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _LOOK_S)
        finally:
            self._queue.remove(place)
            self._wake()

    def _may_begin(self) -> bool:
        return self.most is None or len(self._reading) < self.most

    def _give_up_the_oldest(self) -> None:
        now = asyncio.get_running_loop().time()
        oldest, since = next(iter(self._reading.items()), (None, now))
        if oldest is not None and (now - since >= _GRACE_S or len(self._queue) > _MOST_QUEUED):
            del self._reading[oldest]
            oldest.reschedule(now)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
