"""Finds the owners of OpenID Connect tokens by the keys of their issuer.

The keys are cached: a call whose token is signed with a known key does not wait for the issuer. They are read again now
and then, and when a token names an unknown key: by one thread at a time, and not often, so that neither a slow issuer
nor a caller that makes up names of keys delays others.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter, deque
from concurrent.futures import Future
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from jwt import InvalidTokenError, PyJWK, PyJWKError, PyJWS
from jwt.exceptions import InvalidKeyError

from holdfast.domain.access.claims import bearer
from holdfast.domain.access.grants import ROOT_UID
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Unauthenticated, Unavailable
from holdfast.notify.guard import Undelivered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from holdfast.domain.access import Principal
    from holdfast.domain.access.claims import Trust

LONGEST_TOKEN = 16 * 1024
_TYPES = frozenset({"", "jwt", "at+jwt", "application/at+jwt"})
"""A token of another type was made for something else, such as to log somebody out."""
_MOST_KEPT = 1024
_ACCOUNT_S = 30.0
_STALE_S = 600.0
"""How old keys may be before they are read again, in the background."""
_MOST_READS, _WITHIN_S = 3, 30.0
MOST_KEYS = 100
_SHORTEST_RSA = 2048
_BY_KIND: Mapping[str, tuple[str, ...]] = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "P-256": ("ES256",),
    "P-384": ("ES384",),
    "P-521": ("ES512",),
    "Ed25519": ("EdDSA",),
}
"""The algorithms by kind of key; tokens signed with a secret, or not at all, are refused."""
ALGORITHMS = tuple(name for names in _BY_KIND.values() for name in names)
_LIBRARY = PyJWS(algorithms=ALGORITHMS)
_log = logging.getLogger(__name__)
KeysById: TypeAlias = "Mapping[tuple[str | None, str], PyJWK]"
"""By id and algorithm; the only key of an algorithm also without its id."""


class _Parts(Struct, frozen=True):
    """What a token says, before its signature is checked."""

    kid: str | None
    algorithm: str
    claims: Mapping[str, Any]


class Bearers:
    """Checks the tokens of one issuer."""

    def __init__(
        self,
        trust: Trust,
        keys: Keys,
        now: Callable[[], float],
        account: Callable[[str], Principal | None] = lambda _: None,
    ) -> None:
        """Prepare to check tokens.

        Args:
            trust: The issuer and the audience.
            keys: The issuer's keys.
            now: The time.
            account: Finds the Unix account that a user's programs run as. May block.
        """
        self._trust = trust
        self._keys = keys
        self._now = now
        self._account = account
        self._checked: dict[bytes, PyJWK] = {}
        self._accounts: dict[str, tuple[float, Principal | None]] = {}

    async def __call__(self, text: str) -> Principal:
        """Return the owner of a token.

        Raises:
            Unauthenticated: It gives no access; the message says why.
            Unavailable: Its key is unknown, and the issuer cannot be asked.
        """
        parts = _parts(text)
        principal = bearer(parts.claims, self._trust, self._now())  # refused tokens cost no signature check
        key = await self._keys.of(parts.kid, parts.algorithm)
        digest = sha256(text.encode()).digest()
        if self._checked.get(digest) is not key:
            if parts.kid is None and not _is_signed(text, key, parts.algorithm):  # another key may be in use
                key = await self._keys.of(None, parts.algorithm, other_than=key)
            if not _is_signed(text, key, parts.algorithm):
                msg = "the token's signature is not its issuer's"
                raise Unauthenticated(msg, hint="log in again, and copy all of the token")
            while len(self._checked) >= _MOST_KEPT:
                self._checked.pop(next(iter(self._checked)))
            self._checked[digest] = key
        return await self._with_account(principal)

    async def _with_account(self, principal: Principal) -> Principal:
        now, cached = self._now(), self._accounts.get(principal.name)
        if cached is None or not 0 <= now - cached[0] < _ACCOUNT_S:
            read = await asyncio.to_thread(self._account, principal.name)
            while len(self._accounts) >= _MOST_KEPT:
                self._accounts.pop(next(iter(self._accounts)))
            cached = self._accounts[principal.name] = now, read
        account = cached[1]
        return principal if account is None or account.uid == ROOT_UID else evolve(principal, uid=account.uid)


def _parts(text: str) -> _Parts:
    if len(text) > LONGEST_TOKEN:
        msg = f"the token has {len(text)} characters; at most {LONGEST_TOKEN} are read"
        raise Unauthenticated(msg, hint="have the issuer put fewer groups into it")
    try:
        decoded = _LIBRARY.decode_complete(text, options={"verify_signature": False})
        claims = json.loads(decoded["payload"])
    except (InvalidTokenError, ValueError, RecursionError) as error:
        raise _broken() from error
    header = decoded["header"]
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ", "")
    if not isinstance(claims, dict) or not isinstance(kid, str | None) or not isinstance(kind, str):
        raise _broken()
    if algorithm not in ALGORITHMS:
        msg = f"the token is signed with {str(algorithm)[:20]!r}, which is not accepted here"
        raise Unauthenticated(msg, hint=f"have the issuer sign with one of {', '.join(ALGORITHMS)}")
    if kind.lower() not in _TYPES:
        msg = f"the token is of type {kind[:40]!r}, which gives no access"
        raise Unauthenticated(msg, hint="send the ID token, or an access token for this server")
    return _Parts(kid, algorithm, claims)


def _broken() -> Unauthenticated:
    return Unauthenticated(
        "this is not a complete OpenID Connect token", hint="copy all of it, without spaces or line breaks"
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
    """Prepare to check the tokens of an issuer, and begin to read its keys."""
    now, steady = clock
    keys = Keys(trust.issuer, lambda: usable(read(trust.issuer)), steady)
    keys.begin()
    return Bearers(trust, keys, now, account)


def usable(documents: Iterable[Any]) -> KeysById:
    """Return the keys of a set that can check signatures, one for each of their algorithms."""
    pairs = [
        pair for document in list(documents)[:MOST_KEYS] if isinstance(document, dict) for pair in _keys_of(document)
    ]
    keys: dict[tuple[str | None, str], PyJWK] = {(key.key_id, name): key for name, key in pairs if key.key_id}
    alone = Counter(name for name, _ in pairs)
    return keys | {(None, name): key for name, key in pairs if alone[name] == 1}


def _keys_of(document: dict[str, Any]) -> Iterator[tuple[str, PyJWK]]:
    """Yield a key for each of its algorithms, if it can check signatures."""
    kind = document.get("kty") if document.get("kty") == "RSA" else document.get("crv")
    if document.get("use", "sig") != "sig" or "d" in document or not isinstance(document.get("kid"), str | None):
        return
    for name in _BY_KIND.get(str(kind), ()):
        if document.get("alg", name) == name and (key := _key(document, name)) is not None:
            yield name, key


def _key(document: dict[str, Any], algorithm: str) -> PyJWK | None:
    try:
        key = PyJWK(document, algorithm)
    except (PyJWKError, InvalidKeyError, ValueError, TypeError):
        return None
    return key if document["kty"] != "RSA" or key.key.key_size >= _SHORTEST_RSA else None


class Keys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, read: Callable[[], KeysById], steady: Callable[[], float]) -> None:
        """Begin without keys.

        Args:
            issuer: For messages.
            read: Reads them from the issuer. May block.
            steady: A clock that nobody sets.
        """
        self._issuer = issuer
        self._read = read
        self._steady = steady
        self._lock = threading.Lock()
        self._keys: KeysById = {}
        self._read_at = float("-inf")
        self._failure: str | None = None
        self._begun: deque[float] = deque(maxlen=_MOST_READS)
        self._reading: Future[None] | None = None

    def begin(self) -> Future[None] | None:
        """Begin to read the keys, unless that was done too often lately; returns a future of the end."""
        with self._lock:
            now = self._steady()
            if self._reading is not None:
                return self._reading
            if len(self._begun) == _MOST_READS and now - self._begun[0] < _WITHIN_S:
                return None
            self._begun.append(now)
            reading = self._reading = Future[None]()
            reading.set_running_or_notify_cancel()  # a caller that stops waiting does not cancel it for others
        threading.Thread(target=self._renew, args=(reading,), name="oidc-keys", daemon=True).start()
        return reading

    async def of(self, kid: str | None, algorithm: str, *, other_than: PyJWK | None = None) -> PyJWK:
        """Return the key that a token names, or the only one; not ``other_than``, which did not sign the token.

        Raises:
            Unauthenticated: The issuer has no such key.
            Unavailable: The issuer cannot be asked.
        """
        key = self._keys.get((kid, algorithm))
        if key is not None and key is not other_than:
            if self._steady() - self._read_at >= _STALE_S:
                self.begin()
            return key
        if (reading := self.begin()) is not None:
            await asyncio.wrap_future(reading)
        key = self._keys.get((kid, algorithm))
        if key is not None and key is not other_than:
            return key
        if self._failure is not None:
            msg = f"{self._issuer} cannot be asked for the key of this token: {self._failure}"
            raise Unavailable(msg, hint="try again soon; tokens signed with a known key are accepted meanwhile")
        msg = (
            f"the token is signed with a key that {self._issuer} does not have: {kid or 'without a name'}, {algorithm}"
        )
        hint = f"log in again; a new key of the issuer takes effect within {_WITHIN_S:g} s"
        raise Unauthenticated(msg, hint=hint)

    def _renew(self, reading: Future[None]) -> None:
        try:
            keys = self._read()
        except Undelivered as error:
            self._failed(str(error))
        except Exception:  # noqa: BLE001 - waiting callers must hear of any error
            _log.exception("reading the keys of %s failed", self._issuer)
            self._failed("its answer could not be read")
        else:
            self._keys, self._read_at, self._failure = keys, self._steady(), None
        with self._lock:
            self._reading = None
        reading.set_result(None)

    def _failed(self, why: str) -> None:
        if why != self._failure:
            _log.warning("the keys of %s cannot be read: %s", self._issuer, why)
        self._failure = why
