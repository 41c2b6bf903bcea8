"""Answers a door's calls by gRPC: the same methods, callers and refusals as by Connect, on a port of its own.

Only this machine reaches it; others come in by Connect, at the address of the server.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

import grpc

from holdfast.api.connect.calls import Asked
from holdfast.api.connect.landing import Landing
from holdfast.api.connect.refusals import Code, Rejected
from holdfast.api.connect.serving import LARGEST_MESSAGE, PROTO, read, rejected
from holdfast.errors import HoldfastError, Unavailable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from concurrent.futures import Future

    from google.protobuf.message import Message

    from holdfast.api.connect.calls import Calls, Method
    from holdfast.api.connect.serving import Setup
    from holdfast.domain.audit import Caller

_STOPPING_S = 2.0
_MOST_CALLS = 256
_ROOM = 1_500
"""Bytes of a sentence: clients take 8 KiB of headers, with all there is, and drop the answer for more."""
_STATUS = {code: grpc.StatusCode[code.name.replace("CANCELED", "CANCELLED")] for code in Code}
_log = logging.getLogger(__name__)


class GrpcServer:
    """The calls of a door by gRPC, in a thread with an event loop of its own."""

    def __init__(
        self, calls: Calls, setup: Setup, caller: Callable[[str | None, str], Awaitable[Caller]], place: tuple[str, int]
    ) -> None:
        """Prepare to listen.

        Args:
            calls: What is answered.
            setup: What answers.
            caller: Says who calls, from the authorization that was sent and the address it came from.
            place: The address and the port; 0 is any free one.
        """
        self._calls, self._setup, self._caller = calls, setup, caller
        self._host, self._port = place
        self._loop = asyncio.new_event_loop()
        self._landing = Landing(self._loop)
        self._thread = threading.Thread(target=self._loop.run_forever, name="fluster-grpc", daemon=True)
        self._server: grpc.aio.Server | None = None

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
            ("grpc.max_receive_message_length", LARGEST_MESSAGE),
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
            ("grpc.so_reuseport", 0),
        ]
        server = self._server = grpc.aio.server(options=options, maximum_concurrent_rpcs=_MOST_CALLS)
        for service in self._calls.services:
            methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
                method.name: grpc.unary_unary_rpc_method_handler(self._handler(method))
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

    def _handler(self, method: Method) -> Callable[[bytes, grpc.aio.ServicerContext[bytes, bytes]], Awaitable[bytes]]:
        async def answered(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            try:
                return await self._answer(method, body, context)
            except (Rejected, HoldfastError) as error:
                refused = rejected(error)
            except Exception:  # noqa: BLE001 - what nobody foresaw ends this call alone
                _log.exception("%s failed", method.path)
                refused = Rejected(Code.INTERNAL, "An unexpected error inside Holdfast.")
            return await context.abort(_STATUS[refused.code], _cut(refused.message))

        return answered

    async def _answer(self, method: Method, body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        caller = await self._caller(metadata.get("authorization"), context.peer())
        asked = Asked(self._setup.backend, caller, self._setup.door)

        def answered() -> Message | Future[Message]:
            return self._setup.answer(method, asked, read(method.sent, PROTO, body))

        return (await self._setup.answered(method, len(body), answered, self._landing)).SerializeToString()


def _cut(sentence: str) -> str:
    """Return a sentence as headers have room for it."""
    whole = sentence.encode("utf-8", "replace")
    # Percent-encoded, a byte may take three.
    room = _ROOM if sentence.isascii() and "%" not in sentence else _ROOM // 3
    return sentence if len(whole) <= room else f"{whole[:room].decode(errors='ignore')}..."
