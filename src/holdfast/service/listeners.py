"""Those who follow events: how many there may be, and one query of the store for all of them.

``streams`` reads what each listener gets and sends it. Everything here happens on the event loop, so nothing needs a
lock.
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
"""The shortest time between two looks at the store, and for each listener, as all of them read after each."""
PER_LISTENER_S = 0.005
IDLE_S = 0.25
"""The longest time."""
AFTER_ERROR_S = 1.0
READERS = anyio.CapacityLimiter(4)
"""Threads that read for streams, so that they leave the others to the rest of the API."""


class Places(Struct, gc=True):
    """How many clients may listen at a time, whatever the event loop, and how many do."""

    most: int
    per_person: int | None = None
    """How many anybody may have, also an admin; ``None``: an admin all, others no more than they leave to others."""
    count: int = 0
    _of: Counter[str] = field(default_factory=Counter)
    """How many somebody has, by their names."""
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
                msg = f"{has} clients of {name} follow events already, and the others are for other people"
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
        """Return how many somebody may have now who has so many."""
        if self.per_person is not None:
            return self.per_person
        if Role.ADMIN in principal.roles:
            return self.most
        return (has + self.most - self.count) // 2


class Listeners(Struct, gc=True):
    """How many clients listen on an event loop, what the newest event is, and when all of them are to go."""

    newest: Callable[[], int]
    """Returns the number of the newest event there is; may take its time."""
    most: int
    """How many may listen at a time."""
    stopping: Callable[[], bool] = lambda: False
    per_person: int | None = None
    """How many of one caller; see ``Places``."""
    count: int = 0
    places: Places | None = None
    """Theirs alone unless they share them."""
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
        """Return those of another event loop, who share the places."""
        return Listeners(self.newest, self.most, self.stopping, self.per_person, places=self._shared())

    def _shared(self) -> Places:
        if self.places is None:
            self.places = Places(self.most, self.per_person)
        return self.places

    async def news(self, after: int, within_s: float) -> None:
        """Wait until there is an event after this one, all are to go, or so much time has passed."""
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
        """Look at the store once, and say how long to wait before the next time."""
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
