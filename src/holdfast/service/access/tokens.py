"""Makes API tokens, and tells whose one is that somebody shows."""

from __future__ import annotations

import hmac
import re
import secrets
from hashlib import sha256
from typing import TYPE_CHECKING

from holdfast.domain.access.tokens import API_TOKEN_PREFIX
from holdfast.domain.units import format_duration
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.domain.access.tokens import ApiToken

_ID_BYTES, _SECRET_BYTES, _SECRET_LENGTH = 6, 32, 43
_FORM = re.compile(rf"{API_TOKEN_PREFIX}([0-9a-f]{{{2 * _ID_BYTES}}})_([A-Za-z0-9_-]{{{_SECRET_LENGTH}}})")
_NOBODYS = "0" * 64
_UNKNOWN = "this server does not know that token"


def new_secret() -> tuple[str, str, str]:
    """Return the id of a new token, its whole text, and what is kept of that."""
    key, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    return key, f"{API_TOKEN_PREFIX}{key}_{secret}", _digest(secret)


def by_id(tokens: Iterable[ApiToken]) -> Mapping[str, ApiToken]:
    """Return tokens by their ids."""
    return {token.id: token for token in tokens}


def names_one_of(text: str, tokens: Mapping[str, ApiToken]) -> bool:
    """Whether a text has the form of a token, and the id of one of these; true also for what has no such form."""
    form = _FORM.fullmatch(text)
    return form is None or form[1] in tokens


def shown(text: str, tokens: Mapping[str, ApiToken], now: float) -> ApiToken:
    """Return the token that somebody shows.

    Whether there is one of that id is told only to who has its secret.

    Raises:
        Unauthenticated: It is none, nobody knows it, or it opens nothing any more.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        length = len(API_TOKEN_PREFIX) + 2 * _ID_BYTES + 1 + _SECRET_LENGTH
        msg = f"that is no whole API token: one has {length} characters and begins with {API_TOKEN_PREFIX}"
        raise Unauthenticated(msg, hint="copy all of it, without spaces or line breaks")
    token = tokens.get(form[1])
    if not hmac.compare_digest(_digest(form[2]), _NOBODYS if token is None else token.digest) or token is None:
        raise Unauthenticated(_UNKNOWN, hint="holdfast token list, on the server, shows those it knows")
    hint = "holdfast token create makes a new one"
    if token.revoked_at is not None:
        msg = f"token {token.name!r} of {token.user} was revoked"
        raise Unauthenticated(msg, hint=hint)
    if token.expires_at is not None and token.over(now):
        ago = format_duration(max(1.0, round(now - token.expires_at)))
        msg = f"token {token.name!r} of {token.user} expired {ago} ago by this server's clock, which may be wrong"
        raise Unauthenticated(msg, hint=f"{hint}; if it should still be valid, check the server's clock: date")
    return token


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
