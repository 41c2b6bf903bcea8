"""Answers the door's calls over HTTP with JSON, as Armada's gateway does, on the port of REST.

Calls, callers, rights and the limit of streams are those of gRPC. A stream has one line of JSON for each message, and
ends with the call; a client that reads too slowly is disconnected.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers

from holdfast.api.armada.calls import CALLS, LARGEST_MESSAGE
from holdfast.api.armada.gateway_json import as_json, dump, read, read_query
from holdfast.api.armada.routes import matching
from holdfast.api.budget import AbandonedError, TooLargeError, read_body
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.grpc_serving import LARGEST_OF_STREAM
from holdfast.api.connect.landing import Landing
from holdfast.api.connect.refusals import Code, Rejected, violations_of
from holdfast.api.connect.serving import rejected
from holdfast.api.entries import weight_of_json
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, MutableMapping, Sequence
    from concurrent.futures import Future

    from google.protobuf.message import Message
    from starlette.types import Receive, Scope, Send

    from holdfast.api.budget import MemoryShare
    from holdfast.api.connect.calls import Method
    from holdfast.api.connect.serving import Setup

STALL_S = 30.0
"""How long a client may take to read what it was sent."""
_FIRST_S = 1.0
"""How long the headers of a stream wait for its first message, in case that is a refusal."""
_JSON = (b"content-type", b"application/json")
_HEADERS = {401: ((b"www-authenticate", b"Bearer"),), 503: ((b"retry-after", b"1"),)}
_log = logging.getLogger(__name__)


class Gateway:
    """The door's calls as an ASGI application."""

    def __init__(self, setup: Setup) -> None:
        """Answer from what the door answers gRPC with."""
        self._setup = setup
        self._landing = Landing()
        self._following = setup.following()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; a failure is answered in JSON, too."""
        begun = False

        async def observed(message: MutableMapping[str, Any]) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._answer(scope, receive, observed)
        except TooLargeError as error:
            text = f"grpc: received message larger than max ({error.size} vs. {error.largest})"
            await _refuse(send, Rejected(Code.RESOURCE_EXHAUSTED, text), 413)
        except AbandonedError:
            await _refuse(send, Rejected(Code.CANCELED, "the client has left"))
        except (Rejected, HoldfastError) as error:
            await _refuse(send, rejected(error))
        except Exception:
            _log.exception("%s %r failed", scope["method"], scope["path"])
            if begun:
                raise
            await _refuse(send, Rejected(Code.INTERNAL, "An unexpected error inside Holdfast."))

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("raw_path") or scope["path"].encode()
        routes = matching(path.partition(b"?")[0].decode("ascii", "replace"))
        if not routes:
            await _refuse(send, Rejected(Code.NOT_FOUND, "Not Found"))
            return
        if scope["method"] not in routes:
            allowed = (b"allow", ", ".join(sorted(routes)).encode())
            await _refuse(send, Rejected(Code.UNIMPLEMENTED, "Method Not Allowed"), 405, allowed)
            return
        route, fields = routes[scope["method"]]
        scope["route"] = route  # for the metrics, which count by its path
        method = CALLS.methods[f"/{route.service}/{route.rpc}"]
        if method.call is None and method.stream is None:
            await _refuse(send, Rejected(Code.UNIMPLEMENTED, f"{route.rpc} is not implemented here"))
            return
        call = Rpc(self._setup.backend, await self._setup.caller(scope))
        query = b"" if route.has_body else scope["query_string"]
        with self._setup.budget.share() as share:
            if route.has_body:
                announced = Headers(scope=scope).get("content-length", "")
                largest = LARGEST_MESSAGE if method.stream is None else LARGEST_OF_STREAM
                await read_body(receive, share, largest, announced)
            if method.stream is None:
                await _send(send, 200, await self._called(method, call, fields, share, query))
                return
            message = await self._following.run(_message, method, fields, share, query)
        await self._follow(method.stream(call, message, self._following), receive, send)

    async def _called(
        self, method: Method, call: Rpc, fields: Mapping[str, str], share: MemoryShare, query: bytes
    ) -> bytes:
        def answered() -> Sequence[Message] | Future[Message]:
            with share:
                return self._setup.answer(method, call, _message(method, fields, share, query))

        def encode(messages: Sequence[Message]) -> bytes:
            if not method.is_stream:
                return dump(as_json(messages[0]))
            return b"".join(_line({"result": as_json(message)}) for message in messages)

        return await self._setup.answered(method, len(share.body), answered, encode, self._landing)

    async def _follow(self, stream: AsyncGenerator[Sequence[Message], None], receive: Receive, send: Send) -> None:
        """Send messages until the call ends or the client leaves."""
        sending = asyncio.ensure_future(_Sending(send).send_all(stream))
        gone = asyncio.ensure_future(_until_gone(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sending):
                task.cancel()
            await asyncio.wait({sending, gone})
        if not sending.cancelled():
            sending.result()


class _Sending:
    """Sends a stream of messages to a client, which has limited time to read each."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._begun = False

    async def send_all(self, parts: AsyncGenerator[Sequence[Message], None]) -> None:
        """Send all messages, or the refusal that comes in place of the first.

        Raises:
            Rejected, HoldfastError: The call is refused, and nothing was sent.
        """
        try:
            await self._send_parts(parts)
        except TimeoutError:
            _log.info("a client that follows events does not read them; disconnecting it")
        except (Rejected, HoldfastError) as error:
            if not self._begun:
                raise
            with suppress(TimeoutError):
                await self._push(_line({"error": _in_stream(rejected(error))}))
                await self._send({"type": "http.response.body", "body": b""})
        finally:
            await parts.aclose()

    async def _send_parts(self, parts: AsyncGenerator[Sequence[Message], None]) -> None:
        first = asyncio.ensure_future(anext(parts, None))
        try:
            await asyncio.wait({first}, timeout=_FIRST_S)
            if not first.done():
                await self._begin()
            part = await first
        finally:
            first.cancel()
            await asyncio.wait({first})  # a running generator cannot be closed
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


def _message(method: Method, fields: Mapping[str, str], share: MemoryShare, query: bytes) -> Message:
    """Return the message of a call: its body, or else its query, and the fields in its path.

    Raises:
        Rejected: It cannot be read.
        HoldfastError: It takes more memory than there is.
    """
    with share, share.turn(is_packed=False):
        share.take(2 * len(share.body) + weight_of_json(share.body))
        message = method.request()
        read(bytes(share.body), message)
        read_query(parse_qsl(query.decode("ascii", "replace"), keep_blank_values=True), message)
        for name, value in fields.items():
            setattr(message, name, value)
        return message


async def _refuse(send: Send, error: Rejected, code: int | None = None, *headers: tuple[bytes, bytes]) -> None:
    """Answer with a refusal."""
    answer: dict[str, Any] = {"error": error.message, "message": error.message, "code": error.code.number}
    if error.problems:
        answer["details"] = [_details(error)]
    http = code or _http_of(error)
    await _send(send, http, dump(answer), *headers, *_HEADERS.get(http, ()))


def _details(error: Rejected) -> dict[str, Any]:
    request = violations_of(error.problems)
    return {"@type": f"type.googleapis.com/{request.DESCRIPTOR.full_name}", **as_json(request)}


def _in_stream(error: Rejected) -> dict[str, Any]:
    """Return an error in the middle of a stream."""
    http = _http_of(error)
    status = {"grpc_code": error.code.number, "http_code": http, "message": error.message}
    return {**status, "http_status": HTTPStatus(http).phrase}


def _http_of(error: Rejected) -> int:
    return HTTPStatus.REQUEST_TIMEOUT if error.code is Code.CANCELED else error.code.http  # as grpc-gateway has it


def _line(value: object) -> bytes:
    return dump(value) + b"\n"


async def _send(send: Send, http: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": http, "headers": [_JSON, length, *headers]})
    await send({"type": "http.response.body", "body": body})


async def _until_gone(receive: Receive) -> None:
    """Wait until the client leaves."""
    while (await receive())["type"] != "http.disconnect":
        pass
