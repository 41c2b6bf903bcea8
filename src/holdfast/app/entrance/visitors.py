"""Identifies the callers at doors, by token and otherwise, and delays the answers to repeated wrong credentials."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import secrets
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.datastructures import Headers

from holdfast.api.http.serving.gates import PRINCIPAL
from holdfast.domain.record import Struct
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from starlette.types import Scope

    from holdfast.api.http.serving.gates import Entrance, WrongTokens
    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

_FORWARDED = frozenset({"forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"})
"""The headers by which a proxy names its client."""
_ID_BYTES = 8


class Visitors(Struct, frozen=True):
    """Identifies the callers at doors."""

    entrance: Entrance
    backend: Backend
    wrong: WrongTokens
    anonymous: Principal | None = None
    """The caller without a token."""

    async def caller(self, authorization: str | None, peer: str) -> Caller:
        """Return the caller of an authorization: a bearer token, or a token as the password of basic authentication.

        Raises:
            Unauthenticated: The authorization gives no access.
            Unavailable: The caller cannot be determined now.
        """
        return await self._caller(authorization, peer, secrets.token_hex(_ID_BYTES))

    async def by_http(self, scope: Scope) -> Caller:
        """Return the caller of a request over HTTP, in the same ways, or by a Unix socket.

        A request without a token has a caller only if it must come from this machine.

        Raises:
            Unauthenticated: The authorization gives no access.
            Unavailable: The caller cannot be determined now.
        """
        state, peer, headers = scope["state"], peer_of(scope), Headers(scope=scope)
        authorization, request_id = headers.get("authorization"), state["request_id"]
        if authorization is None and PRINCIPAL in state:
            return await asyncio.to_thread(self.backend.caller, state[PRINCIPAL], origin=peer, request_id=request_id)
        if self.entrance.hosts is not None or not _FORWARDED.isdisjoint(headers):
            authorization = authorization or ""
        return await self._caller(authorization, peer, request_id)

    async def _caller(self, authorization: str | None, peer: str, request_id: str) -> Caller:
        return await self.identified(self._principal_of(authorization), peer, request_id, is_shown=bool(authorization))

    async def identified(self, owner: Awaitable[Principal], peer: str, request_id: str, *, is_shown: bool) -> Caller:
        """Return the caller whom a token or another credential belongs to.

        Args:
            owner: Finds the principal, or refuses the credential.
            peer: The address that the call came from.
            request_id: The id of the request.
            is_shown: Whether a credential was sent; the answers to repeated wrong ones are delayed.

        Raises:
            Unauthenticated: The credential gives no access.
            Unavailable: The caller cannot be determined now.
        """
        try:
            principal = await owner
        except Unauthenticated:
            if is_shown:
                await self.wrong.wait(_machine(peer))
            raise
        if self.backend.access.is_at_hand():
            return self.backend.caller(principal, origin=peer, request_id=request_id)
        return await asyncio.to_thread(self.backend.caller, principal, origin=peer, request_id=request_id)

    async def _principal_of(self, authorization: str | None) -> Principal:
        own, shown = self.entrance.token, _token_in(authorization or "")
        if own is None or hmac.compare_digest(shown.encode(), own.encode()):
            return self.entrance.owner
        if authorization is None and self.anonymous is not None:
            return self.anonymous
        hint = "send the metadata authorization: Bearer TOKEN, or basic with it as the password"
        if authorization is None:
            hint += "; for calls without one from the server's own machine, set HOLDFAST_DOOR_ANONYMOUS"
        return await self.entrance.whose(shown, self.backend.access.shown, hint)


def peer_of(scope: Scope) -> str:
    """Return the address that a request came from, as gRPC writes it."""
    host, port = scope.get("client") or ("unix", 0)
    return f"{'ipv6:[' if ':' in host else 'ipv4:'}{host}{']' if ':' in host else ''}:{port}"


def _machine(peer: str) -> str:
    """Return a peer, which gRPC writes as ``ipv4:ADDRESS:PORT``, without its port."""
    return unquote(peer).rpartition(":")[0]


def _token_in(authorization: str) -> str:
    """Return the token of an authorization, or an empty string."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""
