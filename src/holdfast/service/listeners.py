"""Limits how many clients follow events, and wakes all of them by one query of the store.

The doors read and send each listener's events. A ``Listeners`` is used on one event loop, so it needs no lock.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from holdfast.domain.access.people import Role
from holdfast.domain.record import Struct, field
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from holdfast.domain.access.people import Principal

NEWS_S = 0.05
"""The shortest time between two queries; grows with the listeners, as all of them read after each."""
PER_LISTENER_S = 0.005
IDLE_S = 0.25
"""The longest time."""
AFTER_ERROR_S = 1.0
READERS = anyio.CapacityLimiter(4)
"""The threads that read for streams, so that the other threads stay free for the rest of the API."""


class Places(Struct, gc=True):
    """Limits how many clients may listen at a time, on all event loops together."""

    most: int
    per_person: int | None = None
    """How many anybody may have, also an admin; ``None``: an admin all, others no more than they leave to others."""
    count: int = 0
    _of: Counter[str] = field(default_factory=Counter)
    """How many each caller has, by name."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def hold(self, principal: Principal) -> Iterator[None]:
        """Take one of them until the context ends.

        Nobody but an admin has more than are left after that: the first may have half, the next half of the rest. So
        there is room for whoever has none, however many others want all they can have.

        Raises:
            Unavailable: There is none left.
        """
        name = principal.name
        hint = "read pages instead: Accept: application/json"
        with self._lock:
            if self.count >= self.most:
                msg = f"{self.most} clients follow events already"
                raise Unavailable(msg, hint=hint)
            has = self._of[name]
            if has and has >= self._share(principal, has):
                msg = f"{has} clients of {name} follow events already, and the remaining places are for other callers"
                raise Unavailable(msg, hint=hint)
            self.count += 1
            self._of[name] += 1
        try:
            yield
        finally:
            with self._lock:
                self.count -= 1
                self._of[name] -= 1
                if not self._of[name]:
                    del self._of[name]

    def _share(self, principal: Principal, has: int) -> int:
        """Return how many a caller with ``has`` places may have now."""
        if self.per_person is not None:
            return self.per_person
        if Role.ADMIN in principal.roles:
            return self.most
        return (has + self.most - self.count) // 2


class Listeners(Struct, gc=True):
    """The clients that listen on one event loop."""

    newest: Callable[[], int]
    """Returns the number of the newest event there is; may take its time."""
    most: int
    """How many may listen at a time."""
    stopping: Callable[[], bool] = lambda: False
    per_person: int | None = None
    """How many of one caller; see ``Places``."""
    count: int = 0
    places: Places | None = None
    """By default not shared with other event loops."""
    _seen: int = -1
    _turn: asyncio.Event = field(default_factory=asyncio.Event)
    _watching: asyncio.Task[None] | None = None

    @contextmanager
    def admitted(self, principal: Principal) -> Iterator[None]:
        """Let one more client listen, until the context ends; see ``Places.hold``.

        Raises:
            Unavailable: Too many do.
        """
        with self._shared().hold(principal):
            self.count += 1
            if self._watching is None:
                self._watching = asyncio.create_task(self._watch())
            try:
                yield
            finally:
                self.count -= 1

    def beside(self) -> Listeners:
        """Return the listeners of another event loop, which share the places."""
        return Listeners(self.newest, self.most, self.stopping, self.per_person, places=self._shared())

    def _shared(self) -> Places:
        if self.places is None:
            self.places = Places(self.most, self.per_person)
        return self.places

    async def news(self, after: int, within_s: float) -> None:
        """Wait until there is an event after ``after``, the server stops, or ``within_s`` have passed."""
        with anyio.move_on_after(within_s):
            while self._seen <= after and not self.stopping():
                await self._turn.wait()

    async def _watch(self) -> None:
        try:
            while self.count and not self.stopping():
                pause_s = await self._look()
                await anyio.sleep(pause_s)
        finally:
            self._watching = None
            self._wake()

    async def _look(self) -> float:
        """Query the store once; returns how long to wait before the next query."""
        try:
            newest = await to_thread.run_sync(self.newest, limiter=READERS)
        except HoldfastError:
            return AFTER_ERROR_S
        if newest <= self._seen:
            return IDLE_S
        self._seen = newest
        self._wake()
        return max(NEWS_S, self.count * PER_LISTENER_S)

    def _wake(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()
