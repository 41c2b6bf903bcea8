"""Bounds the memory of everything that doors have accepted and not yet answered: as sent, decompressed and decoded.

All doors share one budget. What does not fit is refused, or waits where its sender notices: a door that reads past it
would let whoever sends much take the memory of the whole server (``tests/structure/test_bodies.py``).
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
"""Bytes of a body that is opened only while no other such body is."""


class TooLargeError(Exception):
    """A body is larger than its door takes."""

    def __init__(self, size: int, largest: int) -> None:
        """Remember how large it is, as far as is known, and how large it may be."""
        super().__init__(f"{size} bytes, and at most {largest} are taken")
        self.size, self.largest = size, largest


class AbandonedError(Exception):
    """Nobody waits for the answer any more."""


class MemoryBudget:
    """The bytes that all doors together may hold for requests; used in any thread."""

    def __init__(self, size: int = SIZE) -> None:
        """Begin with nothing taken."""
        self.size = size
        self.used = 0
        self.refused = 0
        """How many times there was no room."""
        self.lock = threading.Lock()
        self.turn = threading.Lock()
        """Of those who decompress and decode: what they need meanwhile is large, and counted only once it is there."""

    def share(self) -> MemoryShare:
        """Begin the share of one request."""
        return MemoryShare(self)


class MemoryShare:
    """What one request holds of the budget, given back when the last context that works with it ends.

    A client may leave while a thread decodes what it sent: the memory is free only after both are through.
    """

    def __init__(self, budget: MemoryBudget) -> None:
        """Begin with nothing."""
        self.body: bytes | bytearray = b""
        """What was sent, which counts in the share; nothing more once it is given back."""
        self._budget = budget
        self._held = 0
        self._holders = 0
        self._is_over = False

    def __enter__(self) -> Self:
        """Hold it.

        Raises:
            AbandonedError: It was given back.
        """
        with self._budget.lock:
            if self._is_over:
                raise AbandonedError
            self._holders += 1
        return self

    def __exit__(self, *_: object) -> None:
        """Let it go."""
        with self._budget.lock:
            self._holders -= 1
            if self._holders:
                return
            self._is_over = True
        self.release()

    @property
    def most(self) -> int:
        """How many bytes one request may ever take at once, so that there is room for another."""
        return self._budget.size // 2

    def turn(self, *, is_packed: bool) -> AbstractContextManager[object]:
        """Wait until nobody else opens a body that is large, or may become so."""
        return self._budget.turn if is_packed or len(self.body) > _LARGE else nullcontext()

    def fits(self, count: int) -> bool:
        """Take more bytes if there is room; says whether there was.

        Raises:
            InvalidRequest: There can never be so much.
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
            InvalidRequest: There can never be.
        """
        if not self.fits(count):
            self._budget.refused += 1
            msg = "the server has accepted as much as it has memory for"
            raise Unavailable(msg, hint="try again in a moment")

    def release(self) -> None:
        """Give back everything.

        What was sent is emptied, not only let go: an error may still refer to it while its answer is on the way.
        """
        if isinstance(self.body, bytearray):
            self.body.clear()
        self.body = b""
        self.give_back(self._held)

    def give_back(self, count: int) -> None:
        """Give back bytes that are not needed any more."""
        with self._budget.lock:
            self._budget.used -= count
            self._held -= count


async def read_body(receive: Receive, share: MemoryShare, largest: int, announced: str = "") -> None:
    """Read the body of a request into its share.

    Args:
        receive: Where it comes from.
        share: What counts it.
        largest: Bytes that it may have.
        announced: The length that its header has, if any.

    Raises:
        TooLargeError: It is larger.
        AbandonedError: The client left before all of it was there.
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
