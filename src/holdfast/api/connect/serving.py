"""Answers a door's calls by Connect: the client posts a message over HTTP/1.1, beside REST, and gets one back.

A call is answered in a thread, for as long as its client waits. The caller is known before any of the message is read.
"""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from starlette.datastructures import Headers

from holdfast.api.budget import AbandonedError, TooLargeError, read_body
from holdfast.api.connect import compression
from holdfast.api.connect.calls import Rpc
from holdfast.api.connect.following import Following
from holdfast.api.connect.landing import Landing
from holdfast.api.connect.refusals import Code, Rejected, refuse
from holdfast.api.entries import read_message, weight_of_json
from holdfast.domain.record import Struct, field
from holdfast.errors import HoldfastError
from holdfast.service.listeners import Listeners

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import ThreadPoolExecutor

    from starlette.types import Receive, Scope, Send

    from holdfast.api.budget import MemoryBudget, MemoryShare
    from holdfast.api.connect.calls import Method, Methods
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

T = TypeVar("T")
PROTO, JSON = "application/proto", "application/json"
LARGEST_MESSAGE = 64 * 1024 * 1024
"""Bytes, as sent and when decompressed: clients send the files of a workspace in one message."""
_SMALL = 64 * 1024
"""Bytes of a message that may be answered together with others without delaying them much."""
_VERSION = "1"
_LONGEST_TIMEOUT = 10
"""Digits of milliseconds."""
_log = logging.getLogger(__name__)


class Setup(Struct, frozen=True):
    """What a door answers its calls with, by Connect, by gRPC and by a gateway of its own."""

    backend: Backend
    caller: Callable[[Scope], Awaitable[Caller]]
    """Returns the caller of a request over HTTP; refuses strangers."""
    threads: ThreadPoolExecutor
    """Where calls are answered."""
    budget: MemoryBudget
    """Bounds the requests that are accepted and not answered yet."""
    refusal: Callable[[], HoldfastError | None] = lambda: None
    """Returns why nothing may be written now, if so."""
    written: Callable[[], None] = lambda: None
    """Called after each call that may have written something."""
    door: object = None
    """What the methods of one door share beside the backend."""
    together: Callable[[Callable[[], Any]], Future[Any]] | None = None
    """Answers small calls together, if the door has methods for which it does so."""
    listeners: Listeners = field(default_factory=lambda: Listeners(lambda: 0, 0))
    """How many calls may follow events; none unless the door has streams."""

    def following(self) -> Following:
        """Return what streams work with on one more event loop."""
        return Following(self.threads, self.listeners.beside())

    async def answered(
        self,
        method: Method,
        size: int,
        call: Callable[[], Sequence[Message] | Future[Message]],
        encode: Callable[[Sequence[Message]], T],
        landing: Landing,
    ) -> T:
        """Answer a call in another thread; together with others if its method allows that, and its message is small.

        Args:
            method: The method.
            size: Bytes of the message.
            call: Returns the answer.
            encode: Encodes the answer, in that thread, too, as lists are long.
            landing: Hands results to this event loop.

        Raises:
            Rejected, HoldfastError: The call is refused.
        """

        def whole() -> T | Future[Message]:
            answer = call()
            return answer if isinstance(answer, Future) else encode(answer)

        together = self.together if method.together and size <= _SMALL else None
        answer: Any = self.threads.submit(whole) if together is None else together(whole)
        try:
            while isinstance(answer, Future):
                answer = await landing.wait(answer)
            return encode([answer]) if isinstance(answer, Message) else answer
        finally:
            # It holds an error, which refers to this frame, and both would stay until the next collection of garbage.
            del answer

    def answer(self, method: Method, rpc: Rpc, message: Message) -> Sequence[Message] | Future[Message]:
        """Answer a call.

        Raises:
            Rejected, HoldfastError: The call is refused.
        """
        if method.call is None:
            raise Rejected(Code.UNIMPLEMENTED, method.why_not or f"{method.name} is not implemented here")
        refused = None if method.reads else self.refusal()
        if refused is not None:
            raise refused
        result = method.call(rpc, message)
        if isinstance(result, Future):
            return result
        if result is None:
            result = method.response()
        messages = [result] if isinstance(result, Message) else [*result]
        if not method.reads:
            self.written()
        return messages


class Connect:
    """The calls of a door as an ASGI application."""

    def __init__(self, calls: Methods, setup: Setup, *, largest: int = LARGEST_MESSAGE) -> None:
        """Answer these calls; a message may have ``largest`` bytes."""
        self._calls = calls
        self._setup = setup
        self._largest = largest
        self._landing = Landing()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        try:
            body, headers = await self._answer(scope, receive)
        except _HttpError as error:
            await _send(send, error.http, b"", error.headers)
        except TooLargeError as error:
            await _refuse(send, compression.too_large(error.largest))
        except AbandonedError:
            await _refuse(send, Rejected(Code.CANCELED, "the client has left"))
        except (Rejected, HoldfastError) as error:
            await _refuse(send, rejected(error))
        except Exception:  # noqa: BLE001 - what nobody foresaw ends this call alone
            _log.exception("%s %r failed", scope["method"], scope["path"])
            await _refuse(send, Rejected(Code.INTERNAL, "An unexpected error inside Holdfast."))
        else:
            await _send(send, 200, body, headers)

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        method, headers = self._calls.methods.get(scope["path"]), Headers(scope=scope)
        if method is None:
            services = ", ".join(self._calls.services)
            raise Rejected(Code.UNIMPLEMENTED, f"there is no method {scope['path']!r} in the services {services}")
        scope["route"] = method  # for the metrics, which count by its path
        if scope["method"] != "POST":
            raise _HttpError(405, (b"allow", b"POST"))
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in {PROTO, JSON}:
            raise _HttpError(415, (b"accept-post", f"{PROTO}, {JSON}".encode()))
        timeout_s = _timeout_of(headers)
        caller = await self._setup.caller(scope)
        call = Rpc(self._setup.backend, caller, self._setup.door, headers.get("host", ""), scope.get("scheme", "http"))
        try:
            async with asyncio.timeout(timeout_s):
                with self._setup.budget.share() as share:
                    await read_body(receive, share, self._largest, headers.get("content-length", ""))
                    return await self._called(method, call, kind, headers, share)
        except TimeoutError as error:
            raise Rejected(Code.DEADLINE_EXCEEDED, f"{method.name} took longer than its caller waits") from error

    async def _called(
        self, method: Method, call: Rpc, kind: str, headers: Headers, share: MemoryShare
    ) -> tuple[bytes, list[tuple[bytes, bytes]]]:
        encoding = headers.get("content-encoding", "").strip().lower() or compression.IDENTITY
        accepted = compression.chosen(headers.get("accept-encoding", ""))

        def answered() -> Sequence[Message] | Future[Message]:
            with share:
                request = decode(method.request, share, self._largest, encoding, kind)
                return self._setup.answer(method, call, request)

        size = len(share.body) if encoding == compression.IDENTITY else self._largest
        body = await self._setup.answered(
            method, size, answered, lambda messages: encode(messages[0], kind), self._landing
        )
        answer_headers = [(b"content-type", kind.encode()), (b"accept-encoding", ", ".join(compression.NAMES).encode())]
        if accepted != compression.IDENTITY and len(body) >= compression.LEAST:
            loop = asyncio.get_running_loop()
            body = await loop.run_in_executor(self._setup.threads, compression.compress, accepted, body)
            answer_headers.append((b"content-encoding", accepted.encode()))
        return body, answer_headers


class _HttpError(Exception):
    """A request is not one of Connect; it is answered by an HTTP status alone."""

    def __init__(self, http: int, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(http)
        self.http, self.headers = http, [*headers]


def _timeout_of(headers: Headers) -> float | None:
    """Return how many seconds the client waits; ``None`` if it does not say.

    Raises:
        Rejected: The header is malformed, or the client speaks another version of the protocol.
    """
    version, timeout = headers.get("connect-protocol-version", _VERSION), headers.get("connect-timeout-ms")
    if version != _VERSION:
        refuse(f"connect-protocol-version must be {_VERSION!r}, not {version!r}")
    if timeout is None:
        return None
    if not (timeout.isascii() and timeout.isdecimal() and len(timeout) <= _LONGEST_TIMEOUT):
        refuse(f"connect-timeout-ms must be a number of at most {_LONGEST_TIMEOUT} digits, not {timeout!r}")
    return int(timeout) / 1000


def decode(
    kind_of_message: type[Message],
    share: MemoryShare,
    largest: int,
    encoding: str = compression.IDENTITY,
    kind: str = PROTO,
) -> Message:
    """Decompress and decode the body of a share, in the thread that answers the call.

    Args:
        kind_of_message: The message to decode.
        share: Holds the body, and counts the memory that this takes.
        largest: Bytes that the message may have once it is decompressed.
        encoding: How the body is compressed.
        kind: The content type: Protocol Buffers or JSON.

    Raises:
        Rejected: The body is too large, or is not such a message.
        Unavailable: There is not enough memory now.
        InvalidRequest: There never is.
    """
    with share, share.turn(is_packed=encoding != compression.IDENTITY):
        compression.decompress(encoding, share, largest)
        try:
            if kind == PROTO:
                return read_message(kind_of_message, share)
            share.take(2 * len(share.body) + weight_of_json(share.body))
            return json_format.Parse(share.body.decode() or "{}", kind_of_message())
        except (DecodeError, json_format.ParseError, ValueError, TypeError, RecursionError) as error:
            reason = str(error).encode("utf-8", "replace").decode()
            message = f"the message is not a {kind_of_message.DESCRIPTOR.full_name}: {reason}"
            raise Rejected(Code.INVALID_ARGUMENT, message) from error


def encode(message: Message, kind: str) -> bytes:
    """Encode a message as Protocol Buffers or JSON."""
    return message.SerializeToString() if kind == PROTO else json_format.MessageToJson(message, indent=None).encode()


def rejected(error: Rejected | HoldfastError) -> Rejected:
    """Return the refusal for an error, and log it if it is an internal one."""
    refusal = error if isinstance(error, Rejected) else Rejected.of(error)
    if refusal.code is Code.INTERNAL:
        _log.error("a call failed: %s", refusal.message)
    return refusal


async def _refuse(send: Send, error: Rejected) -> None:
    headers = [(b"content-type", JSON.encode())]
    if error.code is Code.UNAUTHENTICATED:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.code is Code.UNAVAILABLE:
        headers.append((b"retry-after", b"1"))
    elif error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, round(error.retry_after_s))).encode()))
    await _send(send, error.code.http, json.dumps(error.as_json()).encode(), headers)


async def _send(send: Send, http: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    start: dict[str, Any] = {"type": "http.response.start", "status": http}
    length = (b"content-length", str(len(body)).encode())
    await send({**start, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
