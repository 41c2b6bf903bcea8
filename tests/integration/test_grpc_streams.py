"""A stream over gRPC: in order, at its reader's pace, and only for as long as it is read."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest

from holdfast.api.armada._generated import event
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.budget import MemoryBudget
from holdfast.api.connect.calls import Methods
from holdfast.api.connect.grpc_serving import GrpcServer, GrpcSettings
from holdfast.api.connect.serving import Setup
from holdfast.domain.access import Principal
from holdfast.domain.audit import Caller

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

MANY = 3_000
TEXT = "x" * 2_000
"""In so many messages more than a connection takes in without its reader."""


class Stage:
    """A server whose one stream sends many messages."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self.over, self.sent = threading.Event(), 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        self.threads = ThreadPoolExecutor(2)
        calls = Methods(PROTOCOL, "api.Event")
        calls.streams("Watch", "api.Event")(self.watch)
        backend: Any = None
        setup = Setup(backend, cast("Any", None), self.threads, MemoryBudget())
        settings = GrpcSettings(self.loop, ("127.0.0.1", 0), "HOLDFAST_TEST", 100, 5.0, 1 << 20)
        self.server = GrpcServer(calls, setup, self.caller, settings)
        self.channel = grpc.insecure_channel(self.server.open())

    async def caller(self, _authorization: str | None, _peer: str) -> Caller:
        """Let anybody in."""
        return Caller(Principal("ann"), 0.0)

    async def watch(
        self, _call: object, request: event.WatchRequest, _following: object
    ) -> AsyncGenerator[Sequence[event.EventStreamMessage], None]:
        """Send the messages in parts, some of them empty; fail where the request says so."""
        try:
            for start in range(0, MANY, 100):
                yield [event.EventStreamMessage(id=f"{n}:{TEXT}") for n in range(start, start + 100)]
                self.sent = start + 100
                yield []
                if request.queue == "broken":
                    raise ZeroDivisionError
        finally:
            self.over.set()

    def read(self, queue: str = "") -> Any:  # noqa: ANN401 - a call of gRPC's
        """Call the stream."""
        call: Any = self.channel.unary_stream("/api.Event/Watch")
        return call(event.WatchRequest(queue=queue).SerializeToString(), timeout=30)

    def close(self) -> None:
        """End all of it."""
        self.channel.close()
        self.server.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.threads.shutdown()
        self.loop.close()


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.close()


def numbers(call: Any) -> list[int]:  # noqa: ANN401 - as above
    return [int(event.EventStreamMessage.FromString(message).id.partition(":")[0]) for message in call]


def test_several_readers_get_all_messages_in_order(stage: Stage) -> None:
    with ThreadPoolExecutor(3) as threads:
        calls = [threads.submit(lambda: numbers(stage.read())) for _ in range(3)]
        assert all(call.result() == list(range(MANY)) for call in calls)


def test_a_reader_that_pauses_is_waited_for_and_one_that_leaves_is_not(stage: Stage) -> None:
    call = stage.read()
    assert next(call)
    assert stage.sent < MANY, "the rest is more than the connection takes"
    call.cancel()
    assert stage.over.wait(30)
    assert stage.sent < MANY


def test_an_unexpected_error_ends_its_stream_alone(stage: Stage) -> None:
    call = stage.read("broken")
    with pytest.raises(grpc.RpcError) as raised:
        numbers(call)
    assert (raised.value.code(), raised.value.details()) == (
        grpc.StatusCode.INTERNAL,
        "An unexpected error inside Holdfast.",
    )
    assert numbers(stage.read()) == list(range(MANY))


def test_calls_whose_message_never_arrives_keep_nobody_waiting(stage: Stage) -> None:
    call: Any = stage.channel.stream_stream("/api.Event/Watch")
    never = threading.Event()
    begun = [call(iter(never.wait, ...), timeout=30) for _ in range(20)]
    assert numbers(stage.read()) == list(range(MANY))
    for waiting in begun:
        waiting.cancel()
    never.set()
