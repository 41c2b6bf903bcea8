"""The gates that every request passes before its endpoint: its id, access, whether the server accepts writes, its size.

All are plain ASGI, so that no request gets past them, not even one for an unknown path.
"""

from __future__ import annotations

import hmac
import secrets
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from holdfast.api.entries import weight_of_json, weight_of_yaml
from holdfast.api.http.serving.browser import SignIn
from holdfast.api.http.serving.errors import respond, respond_status
from holdfast.domain.access.tokens import API_TOKEN_PREFIX, JOB_TOKEN_PREFIX
from holdfast.domain.record import Struct
from holdfast.domain.units import format_memory
from holdfast.errors import HoldfastError, InvalidRequest, Refused, Unauthenticated, Unavailable
from holdfast.wire.base import REVISION, REVISION_HEADER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from holdfast.api.budget import MemoryBudget, MemoryShare
    from holdfast.domain.access import Principal

    class TokenOwner(Protocol):
        """Finds the owner of a token, or refuses it with the hint, which says how to send one."""

        def __call__(self, text: str, *, hint: str) -> Awaitable[Principal]:
            """Return the owner."""
            ...


PEER = "peer"
"""In a request's state: the account number of the process at the other end of a Unix socket."""
PRINCIPAL = "principal"
"""In a request's state: the caller, if that is not the owner."""
JOBS_ONLY = "jobs_only"
"""In a request's state: it came by the port that is only for the programs of jobs."""
_KNOWN_S = 30.0
"""How long an account's name and groups are cached."""
_FREE_TRIES, _FIRST_WAIT_S, _LONGEST_WAIT_S, _FORGOTTEN_S, _MOST_PEERS = 10, 0.001, 2.0, 60.0, 512
_MOST_WAITING, _MOST_NAMES = 64, 256
_HINT = "send the header: Authorization: Bearer TOKEN"
_DOTS = 2
"""In an OpenID Connect token."""
REQUEST_ID = "x-request-id"
_LONGEST_REQUEST_ID = 128
_ID_BYTES = 8
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
WARNING = "holdfast-warning"
"""The header of answers that says why this server may not write."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
LARGEST_BODY = 16 * 1024 * 1024
"""Bytes; 10,000 manifests of 1.6 kB each."""


class Entrance(Struct, frozen=True):
    """Who is let in."""

    owner: Principal
    """The owner of the server, whom everyone counts as who is let in without a name."""
    token: str | None = None
    """The token that callers must send; ``None`` lets everyone in."""
    peer: Callable[[int], Principal] | None = None
    """Finds the caller on a Unix socket by account number, or refuses them. May block."""
    account: Callable[[str], Principal | None] = lambda _: None
    """Finds the Unix account of a token's user by name."""
    as_submitters: bool = False
    """Whether programs run as their submitters, who therefore need Unix accounts."""
    hosts: frozenset[str] | None = None
    """Host names of the server, besides addresses; ``None`` allows any name, as only this machine can connect."""
    is_group: Callable[[str], bool] = lambda _: True
    """Whether the machine has a group of this name. May block."""
    issued: Callable[[str], Awaitable[Principal]] | None = None
    """Finds the owner of a token of the trusted issuer, if there is one."""

    async def whose(self, text: str, shown: Callable[[str], Principal], hint: str) -> Principal:
        """Return whose a token is, other than the server's own.

        Args:
            text: The token.
            shown: Finds the owner of an API token or a job's token. May block.
            hint: How to send a token.

        Raises:
            Unauthenticated: The token gives no access.
            Unavailable: The owner cannot be determined now.
        """
        if text.startswith((API_TOKEN_PREFIX, JOB_TOKEN_PREFIX)):
            return await to_thread.run_sync(shown, text)
        if text.count(".") != _DOTS:
            raise Unauthenticated(hint=hint)
        if self.issued is None:
            msg = "this server accepts no OpenID Connect tokens: it trusts no issuer"
            raise Unauthenticated(msg, hint="send an API token, or set HOLDFAST_OIDC_ISSUER on the server")
        return await self.issued(text)


class RequestIdGate:
    """Gives every request an id, the caller's own if it sent one, and answers with it and the API's revision."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            header = Headers(scope=scope).get(REQUEST_ID, "")
            fit_for_a_log = header.isascii() and header.isprintable() and len(header) <= _LONGEST_REQUEST_ID
            request_id = header if header and fit_for_a_log else secrets.token_hex(_ID_BYTES)
            scope.setdefault("state", {})["request_id"] = request_id
            send = _with_header(send, (REQUEST_ID, request_id), (REVISION_HEADER, str(REVISION)))
        await self._app(scope, receive, send)


class JobsGate:
    """Accepts only tokens of jobs on the port for programs of jobs, which is not encrypted."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        is_theirs = scope["type"] == "http" and JOBS_ONLY in scope.get("state", {})
        if is_theirs and scope["path"] not in OPEN_PATHS and not _token_of_job(scope):
            msg = "this port accepts only programs of jobs, with the token of their job"
            await respond(Unauthenticated(msg, hint="use the server's own address"))(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _token_of_job(scope: Scope) -> str:
    """Return the job's token that a request sends, or an empty string."""
    scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
    shown = text.strip() if scheme.lower() == "bearer" else ""
    return shown if shown.startswith(JOB_TOKEN_PREFIX) else ""


class PeerGate:
    """Identifies callers on a Unix socket by their account, without a token.

    A caller that sends a job's token is that job and no more, whatever its account may do.
    """

    def __init__(
        self, app: ASGIApp, *, peer: Callable[[int], Principal], now: Callable[[], float], owner_of: TokenOwner
    ) -> None:
        self._app = app
        self._peer = peer
        self._now = now
        self._owner_of = owner_of
        self._principals: dict[int, tuple[float, Principal]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        uid = scope.get("state", {}).get(PEER) if scope["type"] == "http" else None
        if uid is not None and scope["path"] not in OPEN_PATHS:
            try:
                shown = _token_of_job(scope)
                principal = self._owner_of(shown, hint=_HINT) if shown else self._principal_of(uid)
                scope["state"][PRINCIPAL] = await principal
            except HoldfastError as error:
                await respond(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _principal_of(self, uid: int) -> Principal:
        cached, now = self._principals.get(uid), self._now()
        if cached is None or not 0 <= now - cached[0] < _KNOWN_S:
            cached = self._principals[uid] = now, await to_thread.run_sync(self._peer, uid)
        return cached[1]


class DoorGate:
    """Hands requests to doors before the API asks for a token: doors check tokens, and refuse, in their own way."""

    def __init__(self, app: ASGIApp, *, doors: Mapping[str, ASGIApp], pages: Mapping[str, ASGIApp]) -> None:
        """``doors`` is by path prefix, ``pages`` by path; doors may be opened and closed later."""
        self._app = app
        self._doors = doors
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        await self._door_of(scope)(scope, receive, send)

    def _door_of(self, scope: Scope) -> ASGIApp:
        path = scope["path"] if scope["type"] == "http" else ""
        page = self._pages.get(path)
        if page is not None and scope["method"] == "GET" and "text/html" not in Headers(scope=scope).get("accept", ""):
            return page
        return next((door for prefix, door in self._doors.items() if path.startswith(prefix)), self._app)


class HostGate:
    """Accepts only requests for a name of this server, and none that a page from elsewhere makes a browser send.

    A page can make its own host name resolve to this server (DNS rebinding). A request to an address uses no
    name, and is therefore accepted.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        why = self._refusal(scope) if scope["type"] == "http" and PEER not in scope.get("state", {}) else None
        if why is None:
            await self._app(scope, receive, send)
        else:
            await respond(why)(scope, receive, send)

    def _refusal(self, scope: Scope) -> HoldfastError | None:
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        name = _host_name(host)
        if name not in self._hosts and not _is_address(name):
            return Refused(f"{name!r} is not a name of this server", hint="if it is, add it to HOLDFAST_HOSTS")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return Refused(f"a page of {origin!r} may not use this server")
        return None


@lru_cache(maxsize=_MOST_NAMES)
def _host_name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


@lru_cache(maxsize=_MOST_NAMES)
def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class WrongTokens:
    """Delays the answers to repeated wrong tokens by client address; remembers a bounded number of addresses."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._tries: dict[str, tuple[float, int]] = {}
        self._waiting = 0

    async def wait(self, peer: str) -> None:
        """Delay a client that has sent one more wrong token; only so many at once, as each holds a call."""
        delay_s = self.delay_s(peer)
        if self._waiting < _MOST_WAITING:
            self._waiting += 1
            try:
                await anyio.sleep(delay_s)
            finally:
                self._waiting -= 1

    def delay_s(self, peer: str) -> float:
        """Count one more wrong token, and return how long its answer is delayed."""
        at, count = self._tries.pop(peer, (0.0, 0))
        now = self._now()
        count = count + 1 if 0 <= now - at < _FORGOTTEN_S else 1
        if len(self._tries) >= _MOST_PEERS:
            self._tries.pop(next(iter(self._tries)))
        self._tries[peer] = now, count
        return 0.0 if count <= _FREE_TRIES else min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(count, _MOST_PEERS))


class TokenGate:
    """Lets in callers with the server's token, of which only the hash is kept, and those with a token of their own."""

    def __init__(self, app: ASGIApp, *, token: str, now: Callable[[], float], owner_of: TokenOwner) -> None:
        self._app = app
        self._owner_of = owner_of
        self._wrong = WrongTokens(now)
        self._digest = sha256(token.encode()).digest()
        self._sign_in = SignIn(self._digest, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._is_let_in(scope):
            await self._app(scope, receive, send)
        elif self._sign_in.wants_form(scope):
            await self._sign_in.answer(scope, receive, send, is_token=self._is_token)
        else:
            await self._another_token(scope, receive, send)

    async def _another_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let in the owner of another token, or refuse it; answers to repeated wrong tokens are delayed."""
        scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
        shown = text.strip() if scheme.lower() == "bearer" else ""
        try:
            scope.setdefault("state", {})[PRINCIPAL] = await self._owner_of(shown, hint=_HINT)
        except HoldfastError as error:
            refusal = error
        else:
            await self._app(scope, receive, send)
            return
        if text and isinstance(refusal, Unauthenticated):
            await self._wrong.wait((scope.get("client") or ("",))[0])
        await respond(refusal)(scope, receive, send)

    def _is_let_in(self, scope: Scope) -> bool:
        return (
            PRINCIPAL in scope.get("state", {})
            or self._has_token(Headers(scope=scope))
            or self._sign_in.lets_read(scope)
        )

    def _has_token(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(token.strip())

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(sha256(text.encode()).digest(), self._digest)


class WriteGate:
    """Refuses writes while this server may not write, and says so with every other answer."""

    def __init__(
        self, app: ASGIApp, *, refusal: Callable[[], HoldfastError | None], written: Callable[[], None]
    ) -> None:
        self._app = app
        self._refusal = refusal
        self._written = written

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        why = self._refusal() if scope["type"] == "http" else None
        if why is None:
            await self._app(scope, receive, send)
            if scope["type"] == "http" and scope["method"] not in _READING:
                self._written()
        elif scope["method"] not in _READING:
            await respond(why)(scope, receive, send)
        else:
            await self._app(scope, receive, _with_header(send, (WARNING, why.message)))


def _with_header(send: Send, *headers: tuple[str, str]) -> Send:
    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), text.encode("ascii", "replace").replace(b"\n", b" ")) for name, text in headers]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_with_headers


class SizeGate:
    """Stops reading a body that is too large, alone or with all others, whether or not its length was announced."""

    def __init__(self, app: ASGIApp, *, budget: MemoryBudget, largest: int = LARGEST_BODY) -> None:
        self._app = app
        self._budget = budget
        self._largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._largest:
            await respond_status(413, self._detail())(scope, receive, send)
            return
        weight = weight_of_yaml if "yaml" in headers.get("content-type", "").lower() else weight_of_json
        with self._budget.share() as share:
            await self._app(scope, self._counted(receive, share, weight), send)

    def _counted(self, receive: Receive, share: MemoryShare, weight: Callable[[bytes], int]) -> Receive:
        left = self._largest

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            part = message.get("body", b"")
            left -= len(part)
            # The framework takes any other exception for a body that cannot be parsed.
            if left < 0:
                raise HTTPException(413, self._detail())
            try:
                share.take(len(part) + weight(part))
            except InvalidRequest as error:
                raise HTTPException(413, f"{error.message}; {error.hint}") from error
            except Unavailable as error:
                raise HTTPException(503, f"{error.message}; {error.hint}") from error
            return message

        return counted

    def _detail(self) -> str:
        return f"the body is larger than {format_memory(self._largest)}; send it in parts"
