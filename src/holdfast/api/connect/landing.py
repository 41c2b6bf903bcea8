"""Hands results of threads to an event loop, all that have arrived at once.

Waking a loop costs a system call, and the GIL changes hands with the thread that wakes it: a thread that answers many
calls wakes it once for all of them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class Landing:
    """The results on their way to one event loop."""

    def __init__(self) -> None:
        """Begin with none."""
        self._arrived: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._is_woken = False

    async def wait(self, future: Future[T]) -> T:
        """Wait for a result; cancel the future if the waiting is cancelled."""
        waiting: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        future.add_done_callback(partial(self._land, waiting))
        try:
            return await waiting
        except asyncio.CancelledError:
            future.cancel()
            raise
        finally:
            # An error that it holds refers to this frame: the two would keep each other, and the request, in memory.
            del waiting, future

    def _land(self, waiting: asyncio.Future[Any], future: Future[Any]) -> None:
        self._arrived.append((waiting, future))
        with self._lock:
            is_woken, self._is_woken = self._is_woken, True
        if not is_woken:
            waiting.get_loop().call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            self._is_woken = False
        while self._arrived:
            waiting, future = self._arrived.popleft()
            if waiting.done() or future.cancelled():
                continue
            error = future.exception()
            if error is None:
                waiting.set_result(future.result())
            else:
                waiting.set_exception(error)
