"""Answers a door's calls by gRPC: the same methods, callers and refusals as by Connect, on a port of its own.

The caller is known before a message is waited for, and that no longer than a request may take to arrive. To gRPC each
method is a stream: only so it hands over a call whose message is not there yet.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc

from holdfast.api.connect import compression
from holdfast.api.connect.arrivals import Arrivals
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.landing import Landing
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.serving import decode, rejected
from holdfast.api.connect.trailers import cut, trailers
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

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
_STOPPING_S = 2.0
_MOST_CALLS = 256
_MOST_BEGUN = 1024
"""Calls of which a message is waited for; more are refused."""
_HANDSHAKE_MS = 10_000
_BEYOND = 4
"""The part of the largest message by which gRPC lets through a larger one, so that it is refused here, in words."""
LARGEST_OF_STREAM = 16 * 1024
"""Bytes of a message that is kept for as long as a client follows events."""
_STATUS = {code: grpc.StatusCode[code.name.replace("CANCELED", "CANCELLED")] for code in Code}
_log = logging.getLogger(__name__)


class GrpcSettings(Struct, frozen=True):
    """Where a door listens, and how much its callers may take."""

    loop: asyncio.AbstractEventLoop
    """The event loop of all servers: in one process, gRPC can wait on one without errors in its log."""
    place: tuple[str, int]
    """The address and the port; 0 is any free one."""
    setting: str
    """The name of the setting that says so."""
    connections: int
    """How many clients may be connected at a time."""
    request_s: float
    """How long a message may take to arrive."""
    largest: int
    """Bytes of a message."""
    certificate: Callable[[], tuple[bytes, bytes]] | None = None
    """Returns the current key and certificate; ``None``: the door speaks without TLS."""

    def arrivals(self, most: int | None = None) -> Arrivals:
        """Return the room for messages that are waited for, at most so many at a time."""
        return Arrivals(self.largest + self.largest // _BEYOND, self.request_s, most=most)


class GrpcServer:
    """The calls of a door by gRPC."""

    def __init__(
        self,
        calls: Methods,
        setup: Setup,
        caller: Callable[[str | None, str], Awaitable[Caller]],
        settings: GrpcSettings,
        beside: Sequence[grpc.GenericRpcHandler] = (),
    ) -> None:
        """Prepare to listen.

        Args:
            calls: What is answered.
            setup: What answers.
            caller: Returns the caller, given the authorization and the address that the call came from.
            settings: Where to listen, and how much callers may take.
            beside: What else is answered, without asking for the caller.
        """
        self._calls, self._setup, self._caller, self._settings = calls, setup, caller, settings
        self._beside = beside
        self._arrivals = settings.arrivals()
        self._landing = Landing()
        self._following = setup.following()
        self._server: grpc.aio.Server | None = None
        self._answering = 0

    def open(self) -> str:
        """Begin to listen, and return the address.

        Raises:
            Unavailable: The port is taken.
        """
        try:
            port = asyncio.run_coroutine_threadsafe(self._open(), self._settings.loop).result()
        except RuntimeError as error:
            host, number = self._settings.place
            self.close()
            msg = f"port {number} on {host} is taken"
            hint = f"choose another with {self._settings.setting}, or port 0 for any free one"
            raise Unavailable(msg, hint=hint) from error
        return f"{self._host}:{port}"

    @property
    def _host(self) -> str:
        host, _ = self._settings.place
        return f"[{host}]" if ":" in host else host

    async def _open(self) -> int:
        settings = self._settings
        options = [
            ("grpc.max_receive_message_length", self._arrivals.largest),
            ("grpc.max_send_message_length", settings.largest),
            *compression.IN_GRPC,
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", settings.connections),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ]
        most = self._setup.listeners.most + _MOST_CALLS + _MOST_BEGUN
        server = self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=most)
        for service in self._calls.services:
            methods = [method for method in self._calls.methods.values() if method.service == service]
            handlers = {method.name: self._handler(method) for method in methods}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        server.add_generic_rpc_handlers(self._beside)
        place = f"{self._host}:{settings.place[1]}"
        if settings.certificate is None:
            port = server.add_insecure_port(place)
        else:
            port = server.add_secure_port(place, _credentials(settings.certificate))
        await server.start()
        return port

    def close(self) -> None:
        """Stop listening, after a moment for the calls under way."""
        if self._server is not None:
            asyncio.run_coroutine_threadsafe(self._server.stop(_STOPPING_S), self._settings.loop).result()

    def _handler(self, method: Method) -> grpc.RpcMethodHandler[Any, Any]:
        return handler(method.path, lambda context: self._answer(method, context))

    async def _answer(self, method: Method, context: Context) -> None:
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        caller = await self._caller(metadata.get("authorization"), context.peer())
        call = Rpc(self._setup.backend, caller, self._setup.door)
        with self._setup.budget.share() as share:
            await receive_message(context, share, self._arrivals)
            if method.stream is None:
                for answer in await self._called(method, call, share):
                    await context.write(answer)
                return
            encoding = compression.encoding_of(share.body)
            request = await self._following.run(decode, method.request, share, LARGEST_OF_STREAM, encoding)
        async with aclosing(method.stream(call, request, self._following)) as parts:
            async for part in parts:
                for message in part:
                    await context.write(message.SerializeToString())
                del part  # the next one may be long in coming

    async def _called(self, method: Method, call: Rpc, share: MemoryShare) -> Sequence[bytes]:
        if self._answering >= _MOST_CALLS:
            raise Rejected(Code.RESOURCE_EXHAUSTED, "too many calls are being answered at the moment")
        largest = self._settings.largest

        def answered() -> Sequence[Message] | Future[Message]:
            with share:
                request = decode(method.request, share, largest, encoding)
                return self._setup.answer(method, call, request)

        encoding = compression.encoding_of(share.body)
        size = len(share.body) if encoding == compression.IDENTITY else largest
        self._answering += 1
        try:
            return await self._setup.answered(method, size, answered, _encode, self._landing)
        finally:
            self._answering -= 1


def handler(path: str, answer: Callable[[Context], Awaitable[None]]) -> grpc.RpcMethodHandler[Any, Any]:
    """Return what gRPC calls for a method: errors of ``answer`` end the call as refusals."""

    async def answered(_: object, context: Context) -> None:
        try:
            await answer(context)
        except grpc.aio.BaseError:  # the client has left
            return
        except (Rejected, HoldfastError) as error:
            refused = rejected(error)
        except Exception:  # noqa: BLE001 - an unexpected error ends this call alone
            _log.exception("%s failed", path)
            refused = Rejected(Code.INTERNAL, "An unexpected error inside Holdfast.")
        else:
            return
        await context.abort(_STATUS[refused.code], cut(refused.message), trailers(refused))

    return grpc.stream_stream_rpc_method_handler(answered)


async def receive_message(context: Context, share: MemoryShare, arrivals: Arrivals) -> None:
    """Wait for the message of a call, and have a share hold it.

    Raises:
        Rejected: It does not arrive.
        Unavailable: There is no room for it.
    """

    async def read() -> bytes | None:
        body: object = await context.read()
        return body if isinstance(body, bytes) else None

    try:
        body = await arrivals.message(share, read)
    except TimeoutError as error:
        raise Rejected(Code.CANCELED, "the message of the call does not arrive") from error
    if body is None:
        raise Rejected(Code.INVALID_ARGUMENT, "the call has no message")


def _encode(messages: Sequence[Message]) -> Sequence[bytes]:
    return [message.SerializeToString() for message in messages]


def _credentials(certificate: Callable[[], tuple[bytes, bytes]]) -> grpc.ServerCredentials:
    """Show the current certificate, also after it is renewed."""
    last = certificate()

    def renewed() -> Any:  # noqa: ANN401 - None stands for "as before", which its types do not say
        nonlocal last
        before, last = last, certificate()
        return None if last is before else grpc.ssl_server_certificate_configuration([last])

    first = grpc.ssl_server_certificate_configuration([last])
    return grpc.dynamic_ssl_server_credentials(first, renewed, require_client_authentication=False)
