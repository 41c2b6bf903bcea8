"""Says whose an OpenID Connect token is that somebody shows."""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from jwt import InvalidTokenError, PyJWS

from holdfast.app.entrance.oidc.keys import ALGORITHMS, Keys, usable
from holdfast.domain.access.claims import bearer
from holdfast.domain.access.grants import ROOT_UID
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Unauthenticated

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from jwt import PyJWK

    from holdfast.domain.access import Principal
    from holdfast.domain.access.claims import Trust

LONGEST_TOKEN = 16 * 1024
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
"""A token of another type was made for something else, such as to log somebody out."""
_MOST_KEPT = 1024
_ACCOUNT_S = 30.0
_LIBRARY = PyJWS(algorithms=ALGORITHMS)


class _Parts(Struct, frozen=True):
    """What a token says; nobody knows yet whether it is true."""

    kid: str | None
    algorithm: str
    claims: Mapping[str, Any]


class Bearers:
    """Knows the tokens of one issuer."""

    def __init__(
        self,
        trust: Trust,
        keys: Keys,
        now: Callable[[], float],
        account: Callable[[str], Principal | None] = lambda _: None,
    ) -> None:
        """Take tokens.

        Args:
            trust: Whose, and for whom.
            keys: What they are signed with.
            now: The time.
            account: Finds the Unix account that somebody's programs run as, which may take a while.
        """
        self._trust = trust
        self._keys = keys
        self._now = now
        self._account = account
        self._checked: dict[bytes, PyJWK] = {}
        self._accounts: dict[str, tuple[float, Principal | None]] = {}

    async def __call__(self, text: str) -> Principal:
        """Return whose a token is.

        Raises:
            Unauthenticated: It opens nothing; the message says why.
            Unavailable: Its key is not known, and the issuer cannot be asked.
        """
        parts = _parts(text)
        principal = bearer(parts.claims, self._trust, self._now())  # what cannot be taken costs no signature
        key = await self._keys.of(parts.kid, parts.algorithm)
        digest = sha256(text.encode()).digest()
        if self._checked.get(digest) is not key:
            if parts.kid is None and not _is_signed(text, key, parts.algorithm):  # it may be another by now
                key = await self._keys.of(None, parts.algorithm, other_than=key)
            if not _is_signed(text, key, parts.algorithm):
                msg = "the token's signature is not its issuer's"
                raise Unauthenticated(msg, hint="log in again, and copy all of the token")
            while len(self._checked) >= _MOST_KEPT:
                self._checked.pop(next(iter(self._checked)))
            self._checked[digest] = key
        return await self._with_account(principal)

    async def _with_account(self, principal: Principal) -> Principal:
        now, known = self._now(), self._accounts.get(principal.name)
        if known is None or not 0 <= now - known[0] < _ACCOUNT_S:
            found = await asyncio.to_thread(self._account, principal.name)
            while len(self._accounts) >= _MOST_KEPT:
                self._accounts.pop(next(iter(self._accounts)))
            known = self._accounts[principal.name] = now, found
        account = known[1]
        return principal if account is None or account.uid == ROOT_UID else evolve(principal, uid=account.uid)


def _parts(text: str) -> _Parts:
    if len(text) > LONGEST_TOKEN:
        msg = f"the token has {len(text)} characters; at most {LONGEST_TOKEN} are read"
        raise Unauthenticated(msg, hint="have the issuer put fewer groups into it")
    try:
        told = _LIBRARY.decode_complete(text, options={"verify_signature": False})
        claims = json.loads(told["payload"])
    except (InvalidTokenError, ValueError, RecursionError) as error:
        raise _broken() from error
    header = told["header"]
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ", "")
    if not isinstance(claims, dict) or not isinstance(kid, str | None) or not isinstance(kind, str):
        raise _broken()
    if algorithm not in ALGORITHMS:
        msg = f"the token is signed by {str(algorithm)[:20]!r}, which is not taken here"
        raise Unauthenticated(msg, hint=f"have the issuer sign by one of {', '.join(ALGORITHMS)}")
    if kind.lower() not in _TYPES:
        msg = f"the token is a {kind[:40]!r}, which opens nothing"
        raise Unauthenticated(msg, hint="send the ID token, or an access token for this server")
    return _Parts(kid, algorithm, claims)


def _broken() -> Unauthenticated:
    return Unauthenticated(
        "that is no whole token of OpenID Connect", hint="copy all of it, without spaces or line breaks"
    )


def _is_signed(text: str, key: PyJWK, algorithm: str) -> bool:
    try:
        _LIBRARY.decode_complete(text, key, [algorithm])
    except InvalidTokenError:
        return False
    return True


def bearers(
    trust: Trust,
    read: Callable[[str], Any],
    clock: tuple[Callable[[], float], Callable[[], float]],
    account: Callable[[str], Principal | None],
) -> Bearers:
    """Take the tokens of an issuer, and begin to read its keys."""
    now, steady = clock
    keys = Keys(trust.issuer, lambda: usable(read(trust.issuer)), steady)
    keys.begin()
    return Bearers(trust, keys, now, account)
