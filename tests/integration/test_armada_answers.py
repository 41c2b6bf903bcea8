"""How a call of Armada's door is answered over a connection: in order, at the reader's pace, not for nobody."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from holdfast.api.armada.answering import Answer, GoneError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 3_000
SIZE = 2_000
"""Together more than a connection takes in without its reader."""


class Public:
    """What another version of gRPC may have: nothing but its public interface."""

    def __init__(self, context: grpc.ServicerContext) -> None:
        """Stand before a context."""
        self.is_active, self.send_initial_metadata = context.is_active, context.send_initial_metadata


class Sender:
    """A server whose one call answers with many messages."""

    experimental_non_blocking = True

    def __init__(self, *, public: bool) -> None:
        """Listen on a free port."""
        self.public, self.fast, self.ended = public, False, list[str]()
        self.asked = b""
        self.over = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.server = grpc.server(ThreadPoolExecutor(1))
        handler: Any = grpc.stream_stream_rpc_method_handler(self)
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("a.Sender", {"Send": handler}),))
        self.channel = grpc.insecure_channel(f"127.0.0.1:{self.server.add_insecure_port('127.0.0.1:0')}")
        self.server.start()

    def __call__(
        self, sent: Iterator[bytes], context: grpc.ServicerContext, push: Callable[[bytes | None], None]
    ) -> None:
        """Begin to answer."""
        given = Public(context) if self.public else context
        answer = Answer(given, sent, push, self.loop)
        self.fast = answer.is_direct
        asyncio.run_coroutine_threadsafe(self.answer(answer), self.loop)

    async def answer(self, answer: Answer) -> None:
        """Answer in three parts, one of them empty."""
        messages = [f"{number:08}".encode() * (SIZE // 8) for number in range(MANY)]
        try:
            self.asked = await answer.asked()
            for part in (messages[: MANY // 2], [], messages[MANY // 2 :]):
                await answer.send(part)
            answer.end()
            self.ended.append("whole")
        except GoneError:
            self.ended.append("gone")
        self.over.set()

    async def settled(self) -> None:
        """Wait for what ends with its call."""
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        await self.loop.shutdown_default_executor()

    def close(self) -> None:
        """End all of it."""
        self.channel.close()
        self.server.stop(0).wait()
        asyncio.run_coroutine_threadsafe(self.settled(), self.loop).result(30)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture(params=[False, True], ids=["as it is", "public interface alone"])
def sender(request: pytest.FixtureRequest) -> Iterator[Sender]:
    made = Sender(public=request.param)
    yield made
    made.close()


def asked(sender: Sender) -> Any:  # noqa: ANN401 - a call of gRPC's
    call: Any = sender.channel.unary_stream("/a.Sender/Send")
    return call(b"what", timeout=30)


def test_this_version_of_grpc_has_what_makes_answers_fast(sender: Sender) -> None:
    list(asked(sender))
    assert sender.fast is not sender.public


def test_messages_come_in_order_and_none_is_lost(sender: Sender) -> None:
    assert [int(one[:8]) for one in asked(sender)] == list(range(MANY))
    assert sender.over.wait(30), "it says so after its reader has the end"
    assert (sender.asked, sender.ended) == (b"what", ["whole"])


def test_several_readers_get_each_all_of_it(sender: Sender) -> None:
    with ThreadPoolExecutor(4) as threads:
        read = [threads.submit(lambda: [int(one[:8]) for one in asked(sender)]) for _ in range(4)]
        assert all(each.result() == list(range(MANY)) for each in read)


def test_who_does_not_read_is_waited_for_and_who_leaves_is_not(sender: Sender) -> None:
    call = asked(sender)
    assert next(call)
    assert not sender.ended, "there is more than the connection takes"
    call.cancel()
    assert sender.over.wait(30)
    assert sender.ended == ["gone"]


def test_a_call_without_a_message_is_nobodys(sender: Sender) -> None:
    call: Any = sender.channel.stream_stream("/a.Sender/Send")
    never = threading.Event()
    begun = [call(iter(never.wait, ...), timeout=30) for _ in range(3 if sender.public else 100)]
    assert [int(one[:8]) for one in asked(sender)] == list(range(MANY)), "they keep nobody else waiting"
    for each in begun:
        each.cancel()
    never.set()
