"""What every request passes before its endpoint: its id, the token, whether anything is taken in, the body's size.

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
        """Says whose a token is; the hint how one is shown."""

        def __call__(self, text: str, *, hint: str) -> Awaitable[Principal]:
            """Return it, or refuse."""
            ...


PEER = "peer"
"""In a request's state: the number of the account at the other end of a Unix socket."""
PRINCIPAL = "principal"
"""In a request's state: who was let in, if that is not the owner."""
JOBS_ONLY = "jobs_only"
"""In a request's state: it came in by the port that is for the programs of jobs alone."""
_KNOWN_S = 30.0
"""How long an account is known by its number before its name and groups are looked up again."""
_FREE_TRIES, _FIRST_WAIT_S, _LONGEST_WAIT_S, _FORGOTTEN_S, _MOST_PEERS = 10, 0.001, 2.0, 60.0, 512
_MOST_WAITING, _MOST_NAMES = 64, 256
_HINT = "send the header: Authorization: Bearer TOKEN"
_DOTS = 2
"""In a token of OpenID Connect."""
REQUEST_ID = "x-request-id"
_LONGEST_REQUEST_ID = 128
_ID_BYTES = 8
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
WARNING = "holdfast-warning"
"""The header that says what a reader of a server that may not write should know."""
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
LARGEST_BODY = 16 * 1024 * 1024
"""Bytes; 10,000 manifests of 1.6 kB each."""


class Entrance(Struct, frozen=True):
    """Who is let in."""

    owner: Principal
    """Whose server it is, which all are taken for who are let in."""
    token: str | None = None
    """What callers must show; ``None`` lets everyone in."""
    peer: Callable[[int], Principal] | None = None
    """Who connects by a Unix socket, by the number of the account; refuses who is not let in. It may take a while."""
    account: Callable[[str], Principal | None] = lambda _: None
    """Finds the Unix account of a token's user by its name."""
    as_submitters: bool = False
    """Whether programs run as who submits them, so that whoever does needs a Unix account."""
    hosts: frozenset[str] | None = None
    """What the server may be called, besides addresses; ``None``: anything, as only this machine reaches it."""
    is_group: Callable[[str], bool] = lambda _: True
    """Whether the machine has a group of a name; it may take a while."""
    issued: Callable[[str], Awaitable[Principal]] | None = None
    """Says whose a token of the trusted issuer is, if one is trusted."""

    async def whose(self, text: str, shown: Callable[[str], Principal], hint: str) -> Principal:
        """Return whose a token is, other than the server's own.

        Args:
            text: The token.
            shown: Says whose an API token is, which may take a while.
            hint: How a token is shown.

        Raises:
            Unauthenticated: It opens nothing.
            Unavailable: Nobody can say now.
        """
        if text.startswith((API_TOKEN_PREFIX, JOB_TOKEN_PREFIX)):
            return await to_thread.run_sync(shown, text)
        if text.count(".") != _DOTS:
            raise Unauthenticated(hint=hint)
        if self.issued is None:
            msg = "this server takes no tokens of OpenID Connect: it trusts no issuer"
            raise Unauthenticated(msg, hint="HOLDFAST_OIDC_ISSUER says whose it takes; an API token will do, too")
        return await self.issued(text)


class RequestIdGate:
    """Gives every request an id, the caller's own where it sent one, and returns both that and our revision."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before ``app``."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            header = Headers(scope=scope).get(REQUEST_ID, "")
            fit_for_a_log = header.isascii() and header.isprintable() and len(header) <= _LONGEST_REQUEST_ID
            request_id = header if header and fit_for_a_log else secrets.token_hex(_ID_BYTES)
            scope.setdefault("state", {})["request_id"] = request_id
            send = _with_header(send, (REQUEST_ID, request_id), (REVISION_HEADER, str(REVISION)))
        await self._app(scope, receive, send)


class JobsGate:
    """Lets only those who show the token of a job in by the port that is for them: it speaks in clear."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before ``app``."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        is_theirs = scope["type"] == "http" and JOBS_ONLY in scope.get("state", {})
        if is_theirs and scope["path"] not in OPEN_PATHS and not _token_of_job(scope):
            msg = "only programs of jobs come in here, by the token of theirs"
            await respond(Unauthenticated(msg, hint="others find the server where it listens to them"))(
                scope, receive, send
            )
            return
        await self._app(scope, receive, send)


def _token_of_job(scope: Scope) -> str:
    """Return the token of a job that is shown, empty where that is none."""
    scheme, _, text = Headers(scope=scope).get("authorization", "").partition(" ")
    shown = text.strip() if scheme.lower() == "bearer" else ""
    return shown if shown.startswith(JOB_TOKEN_PREFIX) else ""


class PeerGate:
    """Lets callers in by a Unix socket whom the operating system knows; they need no token.

    Who shows the token of a job is that job and no more, whatever its account may do.
    """

    def __init__(
        self, app: ASGIApp, *, peer: Callable[[int], Principal], now: Callable[[], float], owner_of: TokenOwner
    ) -> None:
        """Stand before ``app``; ``owner_of`` tells whose a token is."""
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
                column_element = self._owner_of(shown, hint=_HINT) if shown else self._who(uid)
                scope["state"][PRINCIPAL] = await column_element
            except HoldfastError as error:
                await respond(error)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _who(self, uid: int) -> Principal:
        cached, now = self._principals.get(uid), self._now()
        if cached is None or not 0 <= now - cached[0] < _KNOWN_S:
            cached = self._principals[uid] = now, await to_thread.run_sync(self._peer, uid)
        return cached[1]


class DoorGate:
    """Stands before whatever asks for a token in our way: doors have their own ways to show one, and to refuse."""

    def __init__(self, app: ASGIApp, *, doors: Mapping[str, ASGIApp]) -> None:
        """Stand before ``app``; ``doors`` are by how their paths begin, and may be opened and closed later."""
        self._app = app
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        path = scope["path"] if scope["type"] == "http" else ""
        door = next((door for prefix, door in self._doors.items() if path.startswith(prefix)), self._app)
        await door(scope, receive, send)


class HostGate:
    """Takes only requests for a name of ours, and none that a page of another place makes a browser send.

    A page can have a name of its own lead to us; that we are called by an address proves that no name does.
    """

    def __init__(self, app: ASGIApp, *, hosts: frozenset[str]) -> None:
        """Stand before ``app``."""
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
        name = _name_in(host)
        if name not in self._hosts and not _is_address(name):
            return Refused(f"this server is not called {name!r}", hint="if it is, add the name to HOLDFAST_HOSTS")
        if origin is not None and origin.partition("://")[2].lower() != host.lower():
            return Refused(f"a page of {origin!r} may not use this server")
        return None


@lru_cache(maxsize=_MOST_NAMES)
def _name_in(host: str) -> str:
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
    """Makes those wait who show one wrong token after another, each by its address; remembers a bounded number."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin with nobody."""
        self._now = now
        self._tries: dict[str, tuple[float, int]] = {}
        self._waiting = 0

    async def wait(self, peer: str) -> None:
        """Have somebody wait who has shown one more wrong token; only so many, as each of them holds a call."""
        delay_s = self.delay_s(peer)
        if self._waiting < _MOST_WAITING:
            self._waiting += 1
            try:
                await anyio.sleep(delay_s)
            finally:
                self._waiting -= 1

    def delay_s(self, peer: str) -> float:
        """Note one more wrong token, and return how long its answer is to wait."""
        at, count = self._tries.pop(peer, (0.0, 0))
        now = self._now()
        count = count + 1 if 0 <= now - at < _FORGOTTEN_S else 1
        if len(self._tries) >= _MOST_PEERS:
            self._tries.pop(next(iter(self._tries)))
        self._tries[peer] = now, count
        return 0.0 if count <= _FREE_TRIES else min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(count, _MOST_PEERS))


class TokenGate:
    """Lets only callers with the token in, and who is known; the token itself is not kept, only its hash."""

    def __init__(self, app: ASGIApp, *, token: str, now: Callable[[], float], owner_of: TokenOwner) -> None:
        """Stand before ``app``; ``owner_of`` tells whose another token is, and its hint how one is shown."""
        self._app = app
        self._owner_of = owner_of
        self._wrong = WrongTokens(now)
        self._digest = sha256(token.encode()).digest()
        self._sign_in = SignIn(self._digest, now)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or self._may(scope):
            await self._app(scope, receive, send)
        elif self._sign_in.is_asked(scope):
            await self._sign_in.answer(scope, receive, send, is_token=self._is_token)
        else:
            await self._another_token(scope, receive, send)

    async def _another_token(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the user of an API token or of the issuer in, or refuse; whoever guesses is made to wait."""
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

    def _may(self, scope: Scope) -> bool:
        return (
            PRINCIPAL in scope.get("state", {}) or self._knows(Headers(scope=scope)) or self._sign_in.lets_read(scope)
        )

    def _knows(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(token.strip())

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(sha256(text.encode()).digest(), self._digest)


class WriteGate:
    """Takes nothing in while this server may not write, and says so beside every answer."""

    def __init__(
        self, app: ASGIApp, *, refusal: Callable[[], HoldfastError | None], written: Callable[[], None]
    ) -> None:
        """Stand before ``app``; ``refusal`` says why nothing may be taken in, if so; ``written`` is told what was."""
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
    async def named(message: Message) -> None:
        if message["type"] == "http.response.start":
            added = [(name.encode(), text.encode("ascii", "replace").replace(b"\n", b" ")) for name, text in headers]
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return named


class SizeGate:
    """Stops reading a body that is too large, alone or beside all others, whether or not its length was announced."""

    def __init__(self, app: ASGIApp, *, budget: MemoryBudget, largest: int = LARGEST_BODY) -> None:
        """Stand before ``app``."""
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
            # The one kind of exception that the framework does not take for a body that cannot be parsed.
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
