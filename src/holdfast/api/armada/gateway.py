"""Answers the door's calls over HTTP with JSON, as Armada's gateway does; it stands on the port of REST.

The calls are those of gRPC, and so are callers, rights and the number of those who may follow events. A stream is one
line of JSON for each message, and ends where the call does; of whoever reads too slowly, it is let go.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import contextmanager, suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import parse_qsl

import grpc
from starlette.datastructures import Headers

from holdfast.api.armada._generated import status
from holdfast.api.armada._generated.pool import PROTOCOL
from holdfast.api.armada.calls import CALLS, STREAMS
from holdfast.api.armada.received import LARGEST_OF_STREAM
from holdfast.api.armada.refusals import ArmadaRefusal
from holdfast.api.armada.routes import matching
from holdfast.api.armada.written import as_json, dump, read, read_query
from holdfast.api.budget import AbandonedError, TooLargeError, read_body
from holdfast.api.connect.calls import Rpc
from holdfast.api.entries import weight_of_json
from holdfast.domain.record import Struct
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence

    from google.protobuf.message import Message
    from starlette.types import Receive, Scope, Send

    from holdfast.api.armada.routes import Route
    from holdfast.api.armada.serving import ArmadaDoor
    from holdfast.api.budget import MemoryShare
    from holdfast.domain.audit import Caller
    from holdfast.service.listeners import Listeners

P = ParamSpec("P")
T = TypeVar("T")
STALL_S = 30.0
"""How long a client may take to read what it was sent before it is let go."""
_FIRST_S = 1.0
"""How long the beginning of a stream waits for its first message, which may be a refusal instead."""
_JSON = (b"content-type", b"application/json")
_STATUS = {
    grpc.StatusCode.CANCELLED: 408,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.UNAVAILABLE: 503,
}
"""As grpc-gateway has them; of all others it is 500."""
_HEADERS = {401: ((b"www-authenticate", b"Bearer"),), 503: ((b"retry-after", b"1"),)}
_log = logging.getLogger(__name__)


class Gateway:
    """The door's calls as an ASGI application."""

    def __init__(self, door: ArmadaDoor, caller: Callable[[Scope], Awaitable[Caller]], largest: int) -> None:
        """Answer by a door.

        Args:
            door: What answers.
            caller: Says who sent a request; refuses strangers.
            largest: Bytes that a body may have.
        """
        self._door = door
        self._caller = caller
        self._largest = largest
        self._listeners = door.listeners_beside()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and say so in JSON if that fails."""
        begun = False

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._answer(scope, receive, noting)
        except TooLargeError as error:
            text = f"grpc: received message larger than max ({error.size} vs. {error.largest})"
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.RESOURCE_EXHAUSTED, text), 413)
        except AbandonedError:
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.CANCELLED, "the client has left"))
        except (ArmadaRefusal, HoldfastError) as error:
            await _refuse(send, _rejected(error))
        except Exception:
            _log.exception("%s %r failed", scope["method"], scope["path"])
            if begun:
                raise
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.INTERNAL, "An unexpected error inside Holdfast."))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        routes = matching(path.partition(b"?")[0].decode("ascii", "replace"))
        if not routes:
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.NOT_FOUND, "Not Found"))
            return
        if scope["method"] not in routes:
            allowed = (b"allow", ", ".join(sorted(routes)).encode())
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.UNIMPLEMENTED, "Method Not Allowed"), 405, allowed)
            return
        route, fields = routes[scope["method"]]
        scope["route"] = route  # for the metrics, which count by its path
        key = route.service, route.rpc
        if key not in CALLS and key not in STREAMS:
            await _refuse(send, ArmadaRefusal(grpc.StatusCode.UNIMPLEMENTED, f"{route.rpc} is not implemented here"))
            return
        call = Rpc(self._door.backend, await self._caller(scope))
        follows = key in STREAMS
        with self._door.budget.share() as share:
            if route.has_body:
                announced = Headers(scope=scope).get("content-length", "")
                await read_body(receive, share, LARGEST_OF_STREAM if follows else self._largest, announced)
            query = b"" if route.has_body else scope["query_string"]
            message = await self._door.run(_message, route, fields, share, query)
            if not follows:
                await _send(send, 200, await self._door.run(self._whole, route, call, message, share))
        if follows:
            await self._follow(route, call, message, receive, send)

    def _whole(self, route: Route, call: Rpc, request: Message, share: MemoryShare) -> bytes:
        """Answer what does not go on."""
        method = PROTOCOL.service(route.service).methods_by_name[route.rpc]
        with share:
            messages = self._door.answer(route.rpc, CALLS[route.service, route.rpc], call, request)
        answers = [{} if message is None else as_json(message) for message in messages]
        return (
            b"".join(_line({"result": answer}) for answer in answers) if method.server_streaming else dump(answers[0])
        )

    async def _follow(self, route: Route, call: Rpc, message: Message, receive: Receive, send: Send) -> None:
        """Send what happens until the call ends, or the client has left."""
        stream = STREAMS[route.service, route.rpc](call, message, _Following(self._door, self._listeners))
        sending = asyncio.ensure_future(_Sending(send).all(stream))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.wait({sending, gone})
        if not sending.cancelled():
            sending.result()


class _Following(Struct, frozen=True):
    """What a call works with that follows what happens, on the event loop of HTTP."""

    door: ArmadaDoor
    listeners: Listeners

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call something that takes its time, in a thread."""
        return await self.door.run(call, *args, **kwargs)

    @contextmanager
    def admitted(self, caller: Caller) -> Iterator[None]:
        """Count as one of somebody's that follows for as long as the context lasts; too many are refused."""
        with self.door.admitted(caller, self.listeners):
            yield

    def stopping(self) -> bool:
        """Whether the server is about to stop."""
        return self.door.stopping()

    async def news(self, after: int) -> None:
        """Wait until there may be an event after this one."""
        await self.door.news(after, self.listeners)


class _Sending:
    """Sends a stream of messages to somebody who has limited time to read each."""

    def __init__(self, send: Send) -> None:
        """Begin with nothing sent."""
        self._send = send
        self._begun = False

    async def all(self, parts: AsyncGenerator[Sequence[Message], None]) -> None:
        """Send all of them, or the refusal that comes in place of the first.

        Raises:
            ArmadaRefusal, HoldfastError: It is refused, and nothing was sent.
        """
        try:
            await self._each(parts)
        except TimeoutError:
            _log.info("a client that follows events does not read them; disconnecting it")
        except (ArmadaRefusal, HoldfastError) as error:
            if not self._begun:
                raise
            with suppress(TimeoutError):
                await self._push(_line({"error": _in_stream(_rejected(error))}))
                await self._send({"type": "http.response.body", "body": b""})
        finally:
            await parts.aclose()

    async def _each(self, parts: AsyncGenerator[Sequence[Message], None]) -> None:
        first = asyncio.ensure_future(anext(parts, None))
        try:
            await asyncio.wait({first}, timeout=_FIRST_S)
            if not first.done():
                await self._begin()
            part = await first
        finally:
            first.cancel()
            await asyncio.wait({first})  # nobody may end a generator that works
        while part is not None:
            await self._push(b"".join(_line({"result": as_json(message)}) for message in part))
            part = await anext(parts, None)
        await self._begin()
        await self._send({"type": "http.response.body", "body": b""})

    async def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            await self._send({"type": "http.response.start", "status": 200, "headers": [_JSON]})

    async def _push(self, text: bytes) -> None:
        async with asyncio.timeout(STALL_S):
            await self._begin()
            await self._send({"type": "http.response.body", "body": text, "more_body": True})


def _message(route: Route, fields: Mapping[str, str], share: MemoryShare, query: bytes) -> Message:
    """Return what a call was sent.

    Raises:
        ArmadaRefusal: It cannot be read.
        HoldfastError: It takes more memory than there is.
    """
    with share, share.turn(is_packed=False):
        share.take(2 * len(share.body) + weight_of_json(share.body))
        return _read_message(route, fields, bytes(share.body), query)


def _read_message(route: Route, fields: Mapping[str, str], body: bytes, query: bytes) -> Message:
    method = PROTOCOL.service(route.service).methods_by_name[route.rpc]
    message = PROTOCOL.message(method.input_type.full_name)()
    read(body, message)
    read_query(parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True), message)
    for name, value in fields.items():
        setattr(message, name, value)
    return message


def _rejected(error: ArmadaRefusal | HoldfastError) -> ArmadaRefusal:
    rejected = error if isinstance(error, ArmadaRefusal) else ArmadaRefusal.of(error)
    if rejected.code is grpc.StatusCode.INTERNAL:
        _log.error("a call failed: %s", rejected.message)
    return rejected


async def _refuse(send: Send, error: ArmadaRefusal, code: int | None = None, *headers: tuple[bytes, bytes]) -> None:
    """Answer with a refusal."""
    answer: dict[str, Any] = {"error": error.message, "message": error.message, "code": error.code.value[0]}
    if error.problems:
        answer["details"] = [_details(error)]
    http = code or _http_of(error)
    await _send(send, http, dump(answer), *headers, *_HEADERS.get(http, ()))


def _details(error: ArmadaRefusal) -> dict[str, Any]:
    whole = status.Status.FromString(error.details())
    request = status.BadRequest()
    whole.details[0].Unpack(request)
    return {"@type": whole.details[0].type_url, **as_json(request)}


def _in_stream(error: ArmadaRefusal) -> dict[str, Any]:
    """Return what is told of an error in the middle of a stream."""
    http = _http_of(error)
    status = {"grpc_code": error.code.value[0], "http_code": http, "message": error.message}
    return {**status, "http_status": HTTPStatus(http).phrase}


def _http_of(error: ArmadaRefusal) -> int:
    return _STATUS.get(error.code, 500)


def _line(value: object) -> bytes:
    return dump(value) + b"\n"


async def _send(send: Send, http: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": http, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _until_gone(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass
