"""The keys of an issuer, kept at hand: no call waits for the issuer whose token is signed with a key that is known.

They are read again now and then, and when a token names a key that is not known: by one thread at a time, and not
often, so that neither a slow issuer nor whoever makes up names of keys costs anybody else anything.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeAlias

from jwt import PyJWK, PyJWKError
from jwt.exceptions import InvalidKeyError

from holdfast.errors import Unauthenticated, Unavailable
from holdfast.notify.trouble import Undelivered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

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
_log = logging.getLogger(__name__)

Known: TypeAlias = "Mapping[tuple[str | None, str], PyJWK]"
"""By their ids and algorithms; the only one of an algorithm also without its id."""


def usable(given: Iterable[Any]) -> Known:
    """Return the keys of a set that signatures can be checked with, one for each algorithm it may be used with."""
    pairs = [pair for one in list(given)[:MOST_KEYS] if isinstance(one, dict) for pair in _made(one)]
    found: dict[tuple[str | None, str], PyJWK] = {(key.key_id, name): key for name, key in pairs if key.key_id}
    alone = Counter(name for name, _ in pairs)
    return found | {(None, name): key for name, key in pairs if alone[name] == 1}


def _made(given: dict[str, Any]) -> Iterator[tuple[str, PyJWK]]:
    """Make what a key is for each algorithm it may be used with, if it is one to check signatures with."""
    kind = given.get("kty") if given.get("kty") == "RSA" else given.get("crv")
    if given.get("use", "sig") != "sig" or "d" in given or not isinstance(given.get("kid"), str | None):
        return
    for name in _BY_KIND.get(str(kind), ()):
        if given.get("alg", name) == name and (key := _key(given, name)) is not None:
            yield name, key


def _key(given: dict[str, Any], algorithm: str) -> PyJWK | None:
    try:
        key = PyJWK(given, algorithm)
    except (PyJWKError, InvalidKeyError, ValueError, TypeError):
        return None
    return key if given["kty"] != "RSA" or key.key.key_size >= _SHORTEST_RSA else None


class Keys:
    """The keys of one issuer."""

    def __init__(self, issuer: str, read: Callable[[], Known], steady: Callable[[], float]) -> None:
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
        self._known: Known = {}
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
        found = self._known.get((kid, algorithm))
        if found is not None and found is not other_than:
            if self._steady() - self._read_at >= _STALE_S:
                self.begin()
            return found
        if (reading := self.begin()) is not None:
            await asyncio.wrap_future(reading)
        found = self._known.get((kid, algorithm))
        if found is not None and found is not other_than:
            return found
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
            known = self._read()
        except Undelivered as error:
            self._failed(str(error))
        except Exception:  # noqa: BLE001 - whoever waits is told, whatever it was
            _log.exception("reading the keys of %s failed", self._issuer)
            self._failed("its answer could not be read")
        else:
            self._known, self._read_at, self._failure = known, self._steady(), None
        with self._lock:
            self._reading = None
        reading.set_result(None)

    def _failed(self, why: str) -> None:
        if why != self._failure:
            _log.warning("the keys of %s cannot be read: %s", self._issuer, why)
        self._failure = why
