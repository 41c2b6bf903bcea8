"""Says whose an OpenID Connect token is, by the keys of its issuer.

The keys are kept at hand: no call waits for the issuer whose token is signed with a key that is known. They are read
again now and then, and when a token names a key that is not known: by one thread at a time, and not often, so that
neither a slow issuer nor whoever makes up names of keys costs anybody else anything.
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
"""How old keys may be before they are read again, beside the calls that use them."""
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
"""What is signed with a kind of key; nothing that is signed with a secret, or not at all, is taken."""
ALGORITHMS = tuple(name for names in _BY_KIND.values() for name in names)
_LIBRARY = PyJWS(algorithms=ALGORITHMS)
_log = logging.getLogger(__name__)
KeysById: TypeAlias = "Mapping[tuple[str | None, str], PyJWK]"
"""By their ids and algorithms; the only one of an algorithm also without its id."""


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


def usable(keys_given: Iterable[Any]) -> KeysById:
    """Return the keys of a set that signatures can be checked with, one for each algorithm it may be used with."""
    pairs = [
        pair for key_given in list(keys_given)[:MOST_KEYS] if isinstance(key_given, dict) for pair in _made(key_given)
    ]
    keys: dict[tuple[str | None, str], PyJWK] = {(key.key_id, name): key for name, key in pairs if key.key_id}
    alone = Counter(name for name, _ in pairs)
    return keys | {(None, name): key for name, key in pairs if alone[name] == 1}


def _made(key_given: dict[str, Any]) -> Iterator[tuple[str, PyJWK]]:
    """Make what a key is for each algorithm it may be used with, if it is one to check signatures with."""
    kind = key_given.get("kty") if key_given.get("kty") == "RSA" else key_given.get("crv")
    if key_given.get("use", "sig") != "sig" or "d" in key_given or not isinstance(key_given.get("kid"), str | None):
        return
    for name in _BY_KIND.get(str(kind), ()):
        if key_given.get("alg", name) == name and (key := _key(key_given, name)) is not None:
            yield name, key


def _key(key_given: dict[str, Any], algorithm: str) -> PyJWK | None:
    try:
        key = PyJWK(key_given, algorithm)
    except (PyJWKError, InvalidKeyError, ValueError, TypeError):
        return None
    return key if key_given["kty"] != "RSA" or key.key.key_size >= _SHORTEST_RSA else None


class Keys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, read: Callable[[], KeysById], steady: Callable[[], float]) -> None:
        """Know none yet.

        Args:
            issuer: For messages.
            read: Asks the issuer, which may take a while.
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
        """Have them read, unless that was done too often just now; returns what is done then."""
        with self._lock:
            now = self._steady()
            if self._reading is not None:
                return self._reading
            if len(self._begun) == _MOST_READS and now - self._begun[0] < _WITHIN_S:
                return None
            self._begun.append(now)
            reading = self._reading = Future[None]()
            reading.set_running_or_notify_cancel()  # who waits and goes away does not end it for the others
        threading.Thread(target=self._renew, args=(reading,), name="oidc-keys", daemon=True).start()
        return reading

    async def of(self, kid: str | None, algorithm: str, *, other_than: PyJWK | None = None) -> PyJWK:
        """Return the key that a token names, or the only one, unless it is one that did not sign the token.

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
            msg = f"{self._issuer} cannot be asked for the key of that token: {self._failure}"
            raise Unavailable(msg, hint="try again soon; tokens signed with a key that is known are taken meanwhile")
        msg = (
            f"the token is signed with a key that {self._issuer} does not have: {kid or 'without a name'}, {algorithm}"
        )
        hint = f"log in again; a new key of the issuer is known within {_WITHIN_S:g} s"
        raise Unauthenticated(msg, hint=hint)

    def _renew(self, reading: Future[None]) -> None:
        try:
            keys = self._read()
        except Undelivered as error:
            self._failed(str(error))
        except Exception:  # noqa: BLE001 - whoever waits is told, whatever it was
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
