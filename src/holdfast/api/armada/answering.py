"""Answers one gRPC call: reads what is asked, sends messages one after the other, then how it ended.

Python's gRPC hands each message that a stream sends from thread to thread, and waits in between: that costs it, and its
reader, several times what the message does. Here the thread that learns that a message is out begins the next one at
once; and a call that is not sent whole keeps no thread waiting. For this alone it reaches below gRPC's public
interface; where a version has nothing there, threads wait and send.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from holdfast.api.armada.refusals import DETAILS
from holdfast.domain.record import Struct

try:
    from grpc._cython.cygrpc import ReceiveMessageOperation, SendMessageOperation
except ImportError:  # pragma: no cover - another version's
    ReceiveMessageOperation = SendMessageOperation = None

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.api.armada.refusals import ArmadaRefusal

T = TypeVar("T")
Context: TypeAlias = Any
Begins: TypeAlias = Any
Event: TypeAlias = Any
"""Of gRPC: of a call, what begins its parts, and one that is over."""
_NO_FLAGS = 0
_NOTHING_MORE: tuple[None, tuple[()]] = (None, ())
"""What gRPC is told of a message that is out: the call goes on, and nobody waits to be called."""


class GoneError(Exception):
    """Who asked has left."""


class Answer(Struct, gc=True):
    """The answer to a call, while it is given; used on one event loop."""

    context: Context
    """What gRPC says of the call."""
    sent: Iterator[bytes]
    """What is asked: one message, which is waited for."""
    push: Callable[[Any], None]
    """Sends a message and waits until it is out; ``None`` ends the answer."""
    loop: asyncio.AbstractEventLoop
    begun: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether each message is begun where it is learned that the one before is out."""
        return _call_of(self.context) is not None

    async def asked(self) -> bytes:
        """Wait for what is asked.

        Raises:
            GoneError: It does not come.
        """
        if not self.is_direct:
            message = await self.loop.run_in_executor(None, next, self.sent, None)
        else:
            came: asyncio.Future[bytes | None] = self.loop.create_future()
            _call_of(self.context).start_server_batch((ReceiveMessageOperation(_NO_FLAGS),), partial(_came, came))
            message = await came
        if message is None:
            raise GoneError
        return message

    async def send(self, messages: Sequence[bytes]) -> None:
        """Send messages, and wait until the last of them is out.

        Raises:
            GoneError: Nobody reads them any more.
        """
        if not self.is_direct:
            await self.loop.run_in_executor(None, self._push_all, messages)
            return
        if not self.begun:
            self.begun = True
            self.context.send_initial_metadata(())
        future: asyncio.Future[bool] = self.loop.create_future()
        _Chain(_call_of(self.context), iter(messages), future).go_on()
        if not await future:
            raise GoneError

    def _push_all(self, messages: Sequence[bytes]) -> None:
        for message in messages:
            if not self.context.is_active():
                raise GoneError
            self.push(message)

    def end(self) -> None:
        """Say that this was all."""
        self.push(None)

    def refuse(self, rejected: ArmadaRefusal) -> None:
        """End with a refusal."""
        self.context.set_trailing_metadata(((DETAILS, rejected.trailer()),))
        self.context.set_code(rejected.code)
        self.context.set_details(rejected.sentence())
        self.push(None)


class _Chain:
    """Messages that follow each other; the next one begins where it is learned that the one before is out."""

    def __init__(self, call: Begins, messages: Iterator[bytes], future: asyncio.Future[bool]) -> None:
        self._call, self._messages, self._sent = call, messages, future

    def go_on(self, event: Event = None) -> tuple[None, tuple[()]]:
        """Begin the next message, unless the one before could not be sent."""
        if event is not None and not event.success:
            self._over(whole=False)
            return _NOTHING_MORE
        message = next(self._messages, None)
        if message is None:
            self._over(whole=True)
            return _NOTHING_MORE
        try:
            self._call.start_server_batch((SendMessageOperation(message, _NO_FLAGS),), self.go_on)
        except Exception:  # noqa: BLE001 - of whatever class; the call has ended
            self._over(whole=False)
        return _NOTHING_MORE

    def _over(self, *, whole: bool) -> None:
        self._sent.get_loop().call_soon_threadsafe(_settle, self._sent, whole)


def _came(came: asyncio.Future[bytes | None], event: Event) -> tuple[None, tuple[()]]:
    message = event.batch_operations[0].message() if event.success else None
    came.get_loop().call_soon_threadsafe(_settle, came, message)
    return _NOTHING_MORE


def _settle(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _call_of(context: Context) -> Begins:
    """Return what begins the parts of an answer; ``None`` where this version of gRPC keeps it elsewhere."""
    event = getattr(context, "_rpc_event", None)
    call = getattr(event, "call", None)
    return call if SendMessageOperation is not None and hasattr(call, "start_server_batch") else None
