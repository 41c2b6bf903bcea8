"""Brings what threads answer to an event loop: all that came meanwhile at once.

To wake a loop costs a call of the system, and takes turns with the thread that wakes it; a thread that answers many
would do so for each.
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
    """Where answers come in, on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin with none."""
        self._loop = loop
        self._came: deque[tuple[asyncio.Future[Any], Future[Any]]] = deque()
        self._lock = threading.Lock()
        self._is_woken = False

    async def wait(self, future: Future[T]) -> T:
        """Wait for an answer; who is not waited for any more is told."""
        waiting: asyncio.Future[T] = self._loop.create_future()
        future.add_done_callback(partial(self._land, waiting))
        try:
            return await waiting
        except asyncio.CancelledError:
            future.cancel()
            raise
        finally:
            # An error that it holds refers to this frame: the two would keep each other, and what was sent.
            del waiting, future

    def _land(self, waiting: asyncio.Future[Any], future: Future[Any]) -> None:
        self._came.append((waiting, future))
        with self._lock:
            is_woken, self._is_woken = self._is_woken, True
        if not is_woken:
            self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            self._is_woken = False
        while self._came:
            waiting, future = self._came.popleft()
            if waiting.done() or future.cancelled():
                continue
            error = future.exception()
            if error is None:
                waiting.set_result(future.result())
            else:
                waiting.set_exception(error)
