"""What operators gave to whom, kept at hand, so that a request costs no query for it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Via
from holdfast.domain.access.grants import Access, Sight, roles_of
from holdfast.domain.access.tokens import JOB_TOKEN_PREFIX
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import Grants
from holdfast.errors import HoldfastError, Unauthenticated
from holdfast.service.access.job_tokens import bearer
from holdfast.service.access.tokens import by_id, names_one_of, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store

_KNOWN_S = 30.0
_DAY_S = 86_400.0
_MOMENT_S = 0.1
FRESH_S = 0.5
"""How long nobody looks whether they gave something else; what they take away is gone within a second."""


class GivenAccess(Struct, frozen=True):
    """What was given, and in which version of the catalogue."""

    version: int
    access: Access
    grants: Grants
    tokens: Mapping[str, ApiToken]
    """By their ids."""


class AccessBook:
    """Says what was given to whom; safe for threads, as what it keeps is replaced as a whole."""

    def __init__(
        self, store: Store, clock: Clock, owner: Principal, account: Callable[[str], Principal | None] = lambda _: None
    ) -> None:
        """Read from a store.

        Args:
            store: Where it is.
            clock: Says how old is what was read, and whether tokens have expired.
            owner: Whose server it is.
            account: Finds the Unix account of a name, with its groups, which may take a while.
        """
        self._store = store
        self._clock = clock
        self._owner = owner
        self._account = account
        self._kept: tuple[float, GivenAccess] | None = None
        self._accounts: dict[str, tuple[float, Principal | None]] = {}

    def is_at_hand(self) -> bool:
        """Whether somebody can be recognized at once, as nobody need look for a moment what was given."""
        kept = self._kept
        return kept is not None and 0 <= self._clock.now() - kept[0] < FRESH_S - _MOMENT_S

    def recognized(self, principal: Principal) -> Principal:
        """Return somebody with their roles.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        return evolve(principal, roles=roles_of(principal, self._given().access, owner=self._owner))

    def user(self, name: str) -> Principal:
        """Return somebody by name, with groups and number if it is a Unix account; looked up every half minute."""
        now, cached = self._clock.now(), self._accounts.get(name)
        if cached is None or not 0 <= now - cached[0] < _KNOWN_S:
            cached = self._accounts[name] = now, self._account(name)
        principal = cached[1] or Principal(name)
        return evolve(principal, via=Via.TOKEN)

    def shown(self, text: str) -> Principal:
        """Return whose an API token, or the token of a job, is that somebody shows.

        Raises:
            Unauthenticated: It opens nothing; the message says why, as far as that may be known.
            Unavailable: The store cannot be read right now.
        """
        if text.startswith(JOB_TOKEN_PREFIX):
            return bearer(text, self._store, self.user)
        now = self._clock.now()
        tokens = self._given().tokens
        if not names_one_of(text, tokens):  # it may have been made a moment ago
            tokens = self._given(within_s=0.0).tokens
        token = shown(text, tokens, now)
        user = self.user(token.user)
        if user.uid != token.uid:
            msg = f"token {token.name!r} is of an account {token.user} that is not there any more"
            raise Unauthenticated(msg, hint="an account that was made again under that name needs a new token")
        if token.used_at is None or now - token.used_at >= _DAY_S:
            with suppress(HoldfastError):  # a disk may be full, and nobody need be kept out for that
                self._store.use_token(token, now - now % _DAY_S)
        return evolve(user, limit=token.limit)

    def grants(self) -> Grants:
        """Return what was given in single queues, and what is seen of others' jobs."""
        return self._given().grants

    def _given(self, within_s: float = FRESH_S) -> GivenAccess:
        now, kept = self._clock.now(), self._kept
        if kept is not None and 0 <= now - kept[0] < within_s:
            return kept[1]
        version = self._store.catalogue_version()
        accesses = kept[1] if kept is not None and kept[1].version == version else self._read()
        self._kept = now, accesses
        return accesses

    def _read(self) -> GivenAccess:
        catalogue = self._store.catalogue()
        permissions = {queue.name: queue.permissions for queue in catalogue.queues.values() if queue.permissions}
        access = catalogue.access
        grants = Grants(permissions, access.others_see or Sight.DETAILS)
        return GivenAccess(catalogue.version, access, grants, by_id(catalogue.tokens.values()))
