"""A long answer goes out in pieces: what has begun cannot be refused any more, and a piece takes little memory."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.http.serving.memory import MemoryGate

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

PIECE = 64 * 1024


def sent(*bodies: bytes) -> list[Message]:
    """Return what a server is given to send where an application answers with these parts."""
    messages: list[Message] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for number, body in enumerate(bodies, start=1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    async def receive() -> Message:
        return {"type": "http.request"}

    async def collect(message: Message) -> None:
        messages.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/"}
    asyncio.run(MemoryGate(app)(scope, receive, collect))
    return messages[1:]


@pytest.mark.parametrize(
    ("bodies", "pieces"),
    [
        ([b""], [0]),
        ([b"x" * 10], [10]),
        ([b"x" * PIECE], [PIECE]),
        ([b"x" * PIECE + b"y"], [PIECE, 1]),
        ([b"x" * PIECE + b"y" * PIECE], [PIECE, PIECE]),
        ([b"x" * (3 * PIECE) + b"end"], [PIECE, PIECE, PIECE, 3]),
        ([b"x" * (PIECE + 5), b"y" * 7], [PIECE, 5, 7]),
    ],
)
def test_an_answer_arrives_whole_whatever_its_length(bodies: list[bytes], pieces: list[int]) -> None:
    messages = sent(*bodies)
    assert [len(message["body"]) for message in messages] == pieces
    assert b"".join(message["body"] for message in messages) == b"".join(bodies)
    assert [message.get("more_body", False) for message in messages] == [True] * (len(messages) - 1) + [False]
