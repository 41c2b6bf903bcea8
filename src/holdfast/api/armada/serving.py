"""Serves the door's calls over gRPC, in a thread with an event loop of its own.

Calls answer in threads; those that follow what happens cost none while they wait.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import grpc
from google.protobuf.message import Message
from grpc_reflection.v1alpha import reflection, reflection_pb2

from holdfast.api.armada import events, health, jobs, logs, nodes, policies, queues, submissions  # noqa: F401 - each registers its calls
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.answering import Answer, GoneError
from holdfast.api.armada.calls import CALLS, SERVICES, STREAMS
from holdfast.api.armada.received import LARGEST_MESSAGE, LARGEST_OF_STREAM, Received
from holdfast.api.armada.refusals import ArmadaRefusal
from holdfast.api.arrivals import Arrivals
from holdfast.api.budget import AbandonedError, MemoryBudget
from holdfast.api.connect import compression
from holdfast.api.connect.calls import Rpc
from holdfast.domain.record import Struct, field
from holdfast.errors import HoldfastError, Unavailable
from holdfast.service.listeners import Listeners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from google.protobuf.descriptor import MethodDescriptor

    from holdfast.api.armada.calls import Call, Stream
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

P = ParamSpec("P")
T = TypeVar("T")
_WORKERS = 8
_BEGINNERS = 2
"""Threads of gRPC, which have calls begun and wait for nothing."""
_REFLECTING = 2
"""Threads for those who ask what there is; each may keep one."""
_STRANGERS = 2
"""Of how many who need not say who they are a message is read at a time."""
_MOST_CALLS = 256
"""At a time, beside those that follow events; more are refused at once."""
_QUIET_S = 15.0
"""How long a call that follows waits before it looks whether it is still wanted."""
_STOPPING_S = 2.0
_HANDSHAKE_MS = 10_000
_READING = ("Get", "Health", "Watch", "Logs")
"""How the names of calls begin that change nothing."""
_log = logging.getLogger(__name__)


class DoorSetup(Struct, frozen=True):
    """What the door works with."""

    backend: Backend
    caller: Callable[[str | None, str], Awaitable[Caller]]
    """Says who calls, from the authorization that was sent and the address it came from; refuses strangers."""
    refusal: Callable[[], HoldfastError | None] = lambda: None
    """Says why nothing may be taken in, if so."""
    written: Callable[[], None] = lambda: None
    """Told after each call that may have written something."""
    stopping: Callable[[], bool] = lambda: False
    watches: int = 1000
    """How many calls may follow events at a time."""
    watches_each: int | None = None
    """How many of them one caller's may be; ``None``: no more than it leaves to others, unless it is an admin."""
    connections: int = 1000
    """How many clients may be connected at a time."""
    request_s: float = 30.0
    """How long a message may take to arrive."""
    budget: MemoryBudget = field(default_factory=MemoryBudget)
    """Of what is accepted, and not answered yet."""
    shown: Callable[[], tuple[bytes, bytes]] | None = None
    """Returns the key and the certificate to show now; ``None``: it speaks in clear."""


class ArmadaDoor:
    """The door while it is open."""

    def __init__(self, setup: DoorSetup, host: str, port: int) -> None:
        """Prepare to listen on an address; port 0 is any free one."""
        self._setup = setup
        self._place = f"[{host}]" if ":" in host else host, port
        self._loop = asyncio.new_event_loop()
        self._threads = ThreadPoolExecutor(_WORKERS, thread_name_prefix="armada")
        self._thread = threading.Thread(target=self._loop.run_forever, name="armada-door", daemon=True)
        self._listeners = Listeners(
            setup.backend.store.last_event_seq, setup.watches, setup.stopping, setup.watches_each
        )
        self.arrivals = Arrivals(LARGEST_MESSAGE, setup.request_s)
        self.of_strangers = Arrivals(LARGEST_MESSAGE, setup.request_s, most=_STRANGERS)
        self._server: grpc.Server | None = None
        self._calls = set[asyncio.Task[None]]()
        self.address = ""

    def open(self) -> str:
        """Begin to listen, and return the address.

        Raises:
            Unavailable: The port is taken.
        """
        self._thread.start()
        try:
            self.address = self._open()
        except RuntimeError as error:
            self.close()
            host, port = self._place
            msg = f"port {port} on {host} is taken"
            raise Unavailable(
                msg, hint="choose another with HOLDFAST_ARMADA_LISTEN, or port 0 for any free one"
            ) from error
        return self.address

    def close(self) -> None:
        """Stop listening, after a moment for the calls under way."""
        if self._server is not None:
            self._server.stop(_STOPPING_S).wait()
            asyncio.run_coroutine_threadsafe(self._settled(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _settled(self) -> None:
        """Wait for what was told to end when its call did."""
        if self._calls:
            await asyncio.wait(self._calls, timeout=_STOPPING_S)

    def _open(self) -> str:
        options = [
            ("grpc.max_receive_message_length", LARGEST_MESSAGE),
            ("grpc.max_send_message_length", LARGEST_MESSAGE),
            *compression.IN_GRPC,
            ("grpc.so_reuseport", 0),
            ("grpc.max_allowed_incoming_connections", self._setup.connections),
            ("grpc.server_handshake_timeout_ms", _HANDSHAKE_MS),
        ]
        beginners = ThreadPoolExecutor(_BEGINNERS, thread_name_prefix="armada-beginner")
        server = self._server = grpc.server(beginners, options=options)
        for name in SERVICES:
            server.add_generic_rpc_handlers((self._handlers(name),))
        check = {"Check": _stream(_Handler(self, health.REQUEST, health.Check()))}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(health.SERVICE, check),))
        _add_reflection(server)
        host, port = self._place
        shown, place = self._setup.shown, f"{host}:{port}"
        bound = server.add_insecure_port(place) if shown is None else server.add_secure_port(place, _credentials(shown))
        server.start()
        return f"{host}:{bound}"

    def _handlers(self, service: str) -> grpc.GenericRpcHandler:
        methods = PROTOCOL.service(service).methods
        return grpc.method_handlers_generic_handler(
            service, {method.name: self._handler(service, method) for method in methods}
        )

    def _handler(self, service: str, method: MethodDescriptor) -> grpc.RpcMethodHandler[Any, Any]:
        key, requests, answered = (service, method.name), *_types(method)
        if key in STREAMS:
            answering: _Follows | _Answers = _Follows(self, STREAMS[key])
        else:
            answering = _Answers(self, method.name, CALLS.get(key), answered)
        return _stream(_Handler(self, requests, answering))

    def begin(self, answer: Answer, handler: _Handler) -> None:
        """Have the loop answer a call, until it is answered or who asked has left; called in any thread."""
        self._loop.call_soon_threadsafe(self._begin, answer, handler)

    def _begin(self, answer: Answer, handler: _Handler) -> None:
        if len(self._calls) >= self._setup.watches + _MOST_CALLS:
            answer.refuse(ArmadaRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, "Concurrent RPC limit exceeded!"))
            return
        task = self._loop.create_task(handler.answered(answer))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        if not answer.context.add_callback(lambda: self._loop.call_soon_threadsafe(task.cancel)):
            task.cancel()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """Where calls are answered."""
        return self._loop

    @property
    def budget(self) -> MemoryBudget:
        """What bounds the messages that are accepted."""
        return self._setup.budget

    @property
    def backend(self) -> Backend:
        """What answers."""
        return self._setup.backend

    def listeners_beside(self) -> Listeners:
        """Return those who follow on another event loop; there may be as many together."""
        return self._listeners.beside()

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that takes its time, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **kwargs))

    @contextmanager
    def admitted(self, caller: Caller, listeners: Listeners | None = None) -> Iterator[None]:
        """Count as one of somebody's that follows for as long as the context lasts.

        Raises:
            ArmadaRefusal: Too many do.
        """
        try:
            admitted = (listeners or self._listeners).admitted(caller.principal)
            admitted.__enter__()
        except Unavailable as error:
            raise ArmadaRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, error.message) from error
        try:
            yield
        finally:
            admitted.__exit__(None, None, None)

    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        return self._setup.stopping()

    async def news(self, after: int, listeners: Listeners | None = None) -> None:
        """Wait until there may be an event after this one."""
        await (listeners or self._listeners).news(after, _QUIET_S)

    async def asked(self, context: grpc.ServicerContext) -> Rpc:
        """Say who calls.

        Raises:
            HoldfastError: It is nobody who may.
        """
        metadata = {key: value for key, value in context.invocation_metadata() or () if isinstance(value, str)}
        caller = await self._setup.caller(metadata.get("authorization"), context.peer())
        return Rpc(self._setup.backend, caller)

    def answer(self, name: str, call: Call, rpc: Rpc, message: Message) -> list[Message | None]:
        """Answer a call; what is answered as a stream comes whole.

        Raises:
            ArmadaRefusal, HoldfastError: It is refused.
        """
        reads = name.startswith(_READING)
        refused = None if reads else self._setup.refusal()
        if refused is not None:
            raise refused
        result = call(rpc, message)
        if not reads:
            self._setup.written()
        return [result] if result is None or isinstance(result, Message) else list(result)


class _Handler(Struct, frozen=True):
    """What gRPC calls for a method, in a thread of its own, which has the answer begun and goes."""

    door: ArmadaDoor
    sent: type[Message]
    answering: _Follows | _Answers | health.Check

    experimental_non_blocking: ClassVar[bool] = True
    """How gRPC is told that the answer comes later; to it, each is a stream, which for the client is the same."""

    def __call__(
        self, messages: Iterator[bytes], context: grpc.ServicerContext, push: Callable[[bytes | None], None]
    ) -> None:
        """Begin to answer a call."""
        self.door.begin(Answer(context, messages, push, self.door.loop), self)

    async def answered(self, answer: Answer) -> None:
        """Answer a call, and say how that ended; who calls is known before anything of its message is read."""
        try:
            await self._answer(answer)
        except (GoneError, AbandonedError):
            return
        except TimeoutError:
            answer.refuse(ArmadaRefusal(grpc.StatusCode.CANCELLED, "the message of the call does not come"))
        except (ArmadaRefusal, HoldfastError) as error:
            answer.refuse(_rejected(error))
        except Exception as error:  # noqa: BLE001 - what nobody foresaw ends this call alone
            _log.exception("a call failed")
            answer.refuse(ArmadaRefusal(grpc.StatusCode.UNKNOWN, f"Unexpected {type(error)}: {error}"))
        else:
            answer.end()

    async def _answer(self, answer: Answer) -> None:
        if isinstance(self.answering, health.Check):
            with self.door.budget.share() as share:
                await self.door.of_strangers.message(share, answer.asked)
                await self.answering.answer(Received(share, self.sent), answer)
            return
        call = await self.door.asked(answer.context)
        with self.door.budget.share() as share:
            await self.door.arrivals.message(share, answer.asked)
            await self.answering.answer(call, Received(share, self.sent), answer)


class _Answers(Struct, frozen=True):
    """A method that answers at once."""

    door: ArmadaDoor
    name: str
    call: Call | None
    answered: type[Message]

    async def answer(self, call: Rpc, received: Received, answer: Answer) -> None:
        """Answer with all that there is."""
        if self.call is None:
            raise ArmadaRefusal(grpc.StatusCode.UNIMPLEMENTED, f"{self.name} is not implemented here")
        await answer.send(await self.door.run(self._whole, self.call, call, received))

    def _whole(self, call: Call, rpc: Rpc, received: Received) -> Sequence[bytes]:
        with received.share:
            answers = self.door.answer(self.name, call, rpc, received.message())
        return [(message or self.answered()).SerializeToString() for message in answers]


class _Follows(Struct, frozen=True):
    """A method that goes on for as long as somebody reads."""

    door: ArmadaDoor
    call: Stream

    async def answer(self, call: Rpc, received: Received, answer: Answer) -> None:
        """Answer with what happens."""
        request = await self.door.run(received.message, LARGEST_OF_STREAM)
        received.share.release()
        async with aclosing(self.call(call, request, self.door)) as parts:
            async for part in parts:
                await answer.send([message.SerializeToString() for message in part])
                del part  # the next one may be long in coming


def _rejected(error: ArmadaRefusal | HoldfastError) -> ArmadaRefusal:
    rejected = error if isinstance(error, ArmadaRefusal) else ArmadaRefusal.of(error)
    if rejected.code is grpc.StatusCode.INTERNAL:
        _log.error("a call failed: %s", rejected.message)
    return rejected


def _types(method: MethodDescriptor) -> tuple[type[Message], type[Message]]:
    return PROTOCOL.message(method.input_type.full_name), PROTOCOL.message(method.output_type.full_name)


def _credentials(shown: Callable[[], tuple[bytes, bytes]]) -> grpc.ServerCredentials:
    """Show a certificate, and from when it is renewed the new one."""
    last = shown()

    def renewed() -> Any:  # noqa: ANN401 - None is what it takes for "as before", which its types do not say
        nonlocal last
        before, last = last, shown()
        return None if last is before else grpc.ssl_server_certificate_configuration([last])

    first = grpc.ssl_server_certificate_configuration([last])
    return grpc.dynamic_ssl_server_credentials(first, renewed, require_client_authentication=False)


def _stream(handler: _Handler) -> grpc.RpcMethodHandler[Any, Any]:
    return grpc.stream_stream_rpc_method_handler(handler)


class _InThreads(Struct, frozen=True):
    """A method that gRPC calls in threads that are for nothing else, as each who asks may keep one."""

    method: Callable[..., Any]
    experimental_thread_pool: ThreadPoolExecutor

    def __call__(self, request: object, context: grpc.ServicerContext) -> object:
        """Answer."""
        return self.method(request, context)


def _add_reflection(server: grpc.Server) -> None:
    names = (*SERVICES, health.SERVICE, reflection.SERVICE_NAME)
    servicer = reflection.ReflectionServicer(names, pool=PROTOCOL.pool)
    threads = ThreadPoolExecutor(_REFLECTING, thread_name_prefix="armada-reflection")
    handler = grpc.stream_stream_rpc_method_handler(
        _InThreads(servicer.ServerReflectionInfo, threads),
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(reflection.SERVICE_NAME, methods),))
