"""Checks for free memory before work that cannot be refused later.

Parts of the framework are written in Rust, which aborts the whole process, with every other request in it, when it gets
no memory. Large objects are therefore made in Python, which raises ``MemoryError``, and no request begins while little
memory is free.
"""

from __future__ import annotations

import asyncio
import mmap
from typing import TYPE_CHECKING

from holdfast.api.http.serving.errors import short_of_memory

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_ROOM = 16 * 1024 * 1024
"""Bytes that must be free for each unanswered request: a few times what a full page takes."""
_PIECE = 64 * 1024
"""Bytes of an answer handed to the server at a time: it copies them, and waits until they are sent."""
_PATIENCE_S, _PAUSE_S = 30.0, 0.05
"""How long an answer that has begun waits for memory for its next piece, and how long between two checks."""


def require_memory(requests: int = 1) -> None:
    """Check that there is enough memory for so many requests; takes microseconds.

    Raises:
        MemoryError: There is not enough.
    """
    try:
        mmap.mmap(-1, _ROOM * requests, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except OSError as error:
        raise MemoryError from error


class MemoryGate:
    """Refuses requests while little memory is free, with an answer that needs next to none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._unanswered: set[int] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and count it until its answer begins."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = id(scope)

        async def begin(message: Message) -> None:
            self._unanswered.discard(request)
            await _send_in_pieces(message, send)

        try:
            require_memory(len(self._unanswered) + 1)
            self._unanswered.add(request)
        except MemoryError:
            await short_of_memory(scope["method"], scope["path"])(scope, receive, send)
            return
        try:
            await self._app(scope, receive, begin)
        finally:
            self._unanswered.discard(request)


async def _send_in_pieces(message: Message, send: Send) -> None:
    body, place = message.get("body", b""), 0
    while len(body) - place > _PIECE:
        await _wait_for_room()
        await send({**message, "body": body[place : place + _PIECE], "more_body": True})
        place += _PIECE
    await send({**message, "body": body[place:]} if place else message)


async def _wait_for_room() -> None:
    """Wait until there is memory for all copies of a piece: an answer that has begun cannot be refused."""
    for _ in range(int(_PATIENCE_S / _PAUSE_S)):
        try:
            bytearray(4 * _PIECE)
        except MemoryError:
            await asyncio.sleep(_PAUSE_S)
        else:
            return
