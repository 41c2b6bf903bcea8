"""Answers a door's calls by gRPC: the same methods, callers and refusals as by Connect, on a port of its own.

Only this machine reaches it; others come in by Connect, at the address of the server. Who calls is known before a
message is waited for, and that no longer than a request may take to arrive.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING, TypeAlias

import grpc

from holdfast.api.arrivals import Arrivals
from holdfast.api.connect import compression
from holdfast.api.connect._generated import status
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.landing import Landing
from holdfast.api.connect.refusals import Code, Rejected, described, violations_of
from holdfast.api.connect.serving import LARGEST_MESSAGE, PROTO, read, rejected
from holdfast.api.trailers import DETAILS, cut, fitting
from holdfast.domain.record import Struct
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Future

    from google.protobuf.message import Message

    from holdfast.api.budget import MemoryShare
    from holdfast.api.connect.calls import Method, Methods
    from holdfast.api.connect.serving import Setup
    from holdfast.domain.audit import Caller
    from holdfast.errors import Problem

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
_STOPPING_S = 2.0
_MOST_CALLS = 256
_MOST_BEGUN = 1024
"""Calls of which a message is waited for; more are refused."""
_HANDSHAKE_MS = 10_000
_BEYOND = 16 * 1024 * 1024
"""Bytes above the largest message that gRPC lets through, so that it is refused here, as its sender's mistake."""
_STATUS = {code: grpc.StatusCode[code.name.replace("CANCELED", "CANCELLED")] for code in Code}
_log = logging.getLogger(__name__)


class GrpcSettings(Struct, frozen=True):
    """Where a door listens, and how much its callers may take."""

    place: tuple[str, int]
    """The address and the port; 0 is any free one."""
    connections: int
    """At a time."""
    request_s: float
    """How long a message may take to arrive."""


class GrpcServer:
    """The calls of a door by gRPC, in a thread with an event loop of its own."""

    def __init__(
        self,
        calls: Methods,
        setup: Setup,
        caller: Callable[[str | None, str], Awaitable[Caller]],
        listening: GrpcSettings,
    ) -> None:
        """Prepare to listen.

        Args:
            calls: What is answered.
            setup: What answers.
            caller: Says who calls, from the authorization that was sent and the address it came from.
            listening: Where, and how much callers may take.
        """
        self._calls, self._setup, self._caller = calls, setup, caller
        self._host, self._port = listening.place
        self._limits = listening
        self._arrivals = Arrivals(LARGEST_MESSAGE + _BEYOND, listening.request_s)
        self._loop = asyncio.new_event_loop()
        self._landing = Landing(self._loop)
        self._thread = threading.Thread(target=self._loop.run_forever, name="fluster-grpc", daemon=True)
        self._server: grpc.aio.Server | None = None
        self._answering = 0

    def open(self) -> str:
        """Begin to listen, and return the address.

        Raises:
            Unavailable: The port is taken.
        """
        self._thread.start()
        try:
            port = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result()
        except RuntimeError as error:
            self.close()
            msg = f"port {self._port} on {self._host} is taken"
            hint = "choose another with HOLDFAST_FLUSTER_LISTEN, or port 0 for any free one"
            raise Unavailable(msg, hint=hint) from error
        return f"{self._place}:{port}"

    @property
    def _place(self) -> str:
        return f"[{self._host}]" if ":" in self._host else self._host

    async def _open(self) -> int:
        options = [
            ("grpc.max_receive_message_length", self._arrivals.largest),
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
            *compression.IN_GRPC,
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", self._limits.connections),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ]
        server = self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=_MOST_CALLS + _MOST_BEGUN)
        for service in self._calls.services:
            methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
                method.name: grpc.stream_stream_rpc_method_handler(self._handler(method))
                for method in self._calls.methods.values()
                if method.service == service
            }
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
        port = server.add_insecure_port(f"{self._place}:{self._port}")
        await server.start()
        return port

    def close(self) -> None:
        """Stop listening, after a moment for the calls under way."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(_STOPPING_S), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _handler(self, method: Method) -> Callable[[object, Context], Awaitable[None]]:
        async def answered(_: object, context: Context) -> None:  # to gRPC a stream: only so it is there from the start
            try:
                await context.write(await self._answer(method, context))
            except (Rejected, HoldfastError) as error:
                refused = rejected(error)
            except Exception:  # noqa: BLE001 - what nobody foresaw ends this call alone
                _log.exception("%s failed", method.path)
                refused = Rejected(Code.INTERNAL, "An unexpected error inside Holdfast.")
            else:
                return
            await context.abort(_STATUS[refused.code], cut(refused.message), _beside(refused))

        return answered

    async def _answer(self, method: Method, context: Context) -> bytes:
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        caller = await self._caller(metadata.get("authorization"), context.peer())
        with self._setup.budget.share() as share:
            await self._message(context, share)
            return await self._called(method, Rpc(self._setup.backend, caller, self._setup.door), share)

    async def _called(self, method: Method, call: Rpc, share: MemoryShare) -> bytes:
        if self._answering >= _MOST_CALLS:
            raise Rejected(Code.RESOURCE_EXHAUSTED, "too many calls are being answered at the moment")

        def answered() -> Message | Future[Message]:
            with share:
                with share.turn(is_packed=is_packed):
                    compression.decompress(encoding, share, LARGEST_MESSAGE)
                    request = read(method.sent, PROTO, share)
                return self._setup.answer(method, call, request)

        encoding = compression.encoding_of(share.body)
        is_packed = encoding != compression.IDENTITY
        size = LARGEST_MESSAGE if is_packed else len(share.body)
        self._answering += 1
        try:
            return await self._setup.answered(method, size, answered, _told, self._landing)
        finally:
            self._answering -= 1

    async def _message(self, context: Context, share: MemoryShare) -> None:
        """Wait for what is asked.

        Raises:
            Rejected: It does not come, or is too large.
            Unavailable: There is no room for it.
        """

        async def read() -> bytes | None:
            body: object = await context.read()
            return body if isinstance(body, bytes) else None

        try:
            body = await self._arrivals.message(share, read)
        except TimeoutError as error:
            raise Rejected(Code.CANCELED, "the message of the call does not come") from error
        if body is None:
            raise Rejected(Code.INVALID_ARGUMENT, "the call has no message")
        if len(body) > LARGEST_MESSAGE:
            raise compression.too_large(LARGEST_MESSAGE)


def _beside(refused: Rejected) -> tuple[tuple[str, bytes], ...]:
    """Return what stands beside a sentence, as headers have room for it."""

    def written(message: str, problems: Sequence[Problem]) -> bytes:
        whole = status.Status(code=_STATUS[refused.code].value[0], message=message)
        whole.details.add().Pack(violations_of(problems))
        return whole.SerializeToString()

    if not refused.problems:
        return ()
    return ((DETAILS, fitting(refused.message, refused.problems, described, written)),)


def _told(message: Message) -> bytes:
    return message.SerializeToString()
