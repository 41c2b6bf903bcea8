"""/tokens: create, list and revoke API tokens."""

from typing import Any

from holdfast.api.http.endpoints.endpoint import Endpoints, Name, Reply
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.audit import Caller
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.tokens import NewToken, Tokens
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.catalogue import TokenBody, TokenMade, TokenPage, TokenView

_TOKENS = Endpoints("tokens")
ENDPOINTS = (_TOKENS,)


def _fields(token: ApiToken, now: float) -> dict[str, Any]:
    return {
        "name": token.name,
        "user": token.user,
        "role": token.role.value,
        "scopes": [*map(str, token.scopes)],
        "state": token.state(now),
        "created_at": timestamp(token.created_at),
        "created_by": token.created_by,
        "expires_at": optional_timestamp(token.expires_at),
        "used_on": "" if token.used_at is None else timestamp(token.used_at).partition("T")[0],
    }


@_TOKENS.add("GET", "/tokens", TokenPage, summary="List API tokens")
def list_tokens(backend: Backend, caller: Caller) -> TokenPage:
    """List your own tokens, or all of them if you are an admin, by name."""
    return TokenPage(items=[TokenView(**_fields(api_token, caller.at)) for api_token in Tokens(backend).list(caller)])


@_TOKENS.add("POST", "/tokens", TokenMade, 409, 413, summary="Create an API token", status=201)
def create_token(backend: Backend, caller: Caller, body: TokenBody) -> Reply:
    """Create a token; only this answer shows its text."""
    request = NewToken(body.name, body.user, body.role, body.scopes, body.expires_s)
    token, text = Tokens(backend).create(caller, request)
    return Reply(TokenMade(**_fields(token, caller.at), token=text), 201)


@_TOKENS.add("POST", "/tokens/{name}/revoke", TokenView, 404, summary="Revoke an API token")
def revoke_token(backend: Backend, caller: Caller, name: Name) -> TokenView:
    """Revoke a token: from now on it gives no access."""
    return TokenView(**_fields(Tokens(backend).revoke(caller, name), caller.at))
