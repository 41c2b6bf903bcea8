"""Bounds the memory of requests that doors have accepted and not yet answered: as sent, decompressed and decoded.

All doors share one budget. A request that does not fit is refused, or waits where its sender notices. A door that read
past the budget would let one client take the memory of the whole server (``tests/structure/test_bodies.py``).
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Self

from holdfast.errors import InvalidRequest, Unavailable

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from starlette.types import Receive

SIZE = 256 * 1024 * 1024
"""Bytes."""
_LARGE = 64 * 1024
"""Bytes of a body from which on only one body is decompressed and decoded at a time."""


class TooLargeError(Exception):
    """A body is larger than its door accepts."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(f"{size} bytes; at most {largest} are accepted")
        self.size, self.largest = size, largest


class AbandonedError(Exception):
    """The client no longer waits for the answer."""


class MemoryBudget:
    """The bytes that all doors together may hold for requests; used in any thread."""

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.used = 0
        self.refused = 0
        """How many times there was no room."""
        self.lock = threading.Lock()
        self.turn = threading.Lock()
        """Held while a large body is decompressed and decoded: that memory is counted only once it is in use."""

    def share(self) -> MemoryShare:
        """Begin a share for one request."""
        return MemoryShare(self)


class MemoryShare:
    """One request's part of the budget, given back when the last context that uses it ends.

    A client may leave while a thread decodes its request: the memory is free only when both are done.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        self.body: bytes | bytearray = b""
        """What was sent, which the share counts; empty once it is released."""
        self._budget = budget
        self._held = 0
        self._holders = 0
        self._is_over = False

    def __enter__(self) -> Self:
        """Keep the share until the context ends.

        Raises:
            AbandonedError: It was released already.
        """
        with self._budget.lock:
            if self._is_over:
                raise AbandonedError
            self._holders += 1
        return self

    def __exit__(self, *_: object) -> None:
        with self._budget.lock:
            self._holders -= 1
            if self._holders:
                return
            self._is_over = True
        self.release()

    @property
    def most(self) -> int:
        """The most bytes that one request may take at once, which leaves room for another."""
        return self._budget.size // 2

    def turn(self, *, is_packed: bool) -> AbstractContextManager[object]:
        """Return a context for decompressing and decoding, in which only one large or packed body is at a time."""
        return self._budget.turn if is_packed or len(self.body) > _LARGE else nullcontext()

    def try_take(self, count: int) -> bool:
        """Take more bytes if there is room now, and return whether there was.

        Raises:
            InvalidRequest: There can never be room for them.
        """
        with self._budget.lock:
            if count > self.most or self._held + count > self._budget.size:
                msg = "the request is too large: reading it would take more memory than the server has for all requests"
                raise InvalidRequest(msg, hint="send it in parts")
            if self._budget.used + count > self._budget.size:
                return False
            self._budget.used += count
            self._held += count
        return True

    def take(self, count: int) -> None:
        """Take more bytes.

        Raises:
            Unavailable: There is no room for them now.
            InvalidRequest: There can never be room for them.
        """
        if not self.try_take(count):
            self._budget.refused += 1
            msg = "the server has accepted as many requests as it has memory for"
            raise Unavailable(msg, hint="try again in a moment")

    def release(self) -> None:
        """Give back everything.

        The body is emptied, not only dropped: an error may still refer to it while its answer is sent.
        """
        if isinstance(self.body, bytearray):
            self.body.clear()
        self.body = b""
        self.give_back(self._held)

    def give_back(self, count: int) -> None:
        """Give back some bytes."""
        with self._budget.lock:
            self._budget.used -= count
            self._held -= count


async def read_body(receive: Receive, share: MemoryShare, largest: int, announced: str = "") -> None:
    """Read the body of a request into its share.

    Args:
        receive: Receives its parts.
        share: Counts and holds it.
        largest: Bytes that it may have.
        announced: Its length by the request's header, if that says one.

    Raises:
        TooLargeError: It is larger than that.
        AbandonedError: The client left before all of it had arrived.
        Unavailable: There is no room for it now.
    """
    if announced.isdecimal() and int(announced) > largest:
        raise TooLargeError(int(announced), largest)
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise AbandonedError
        part = message.get("body", b"")
        if len(body) + len(part) > largest:
            raise TooLargeError(len(body) + len(part), largest)
        share.take(len(part))
        body += part
        more = message.get("more_body", False)
    share.body = body
