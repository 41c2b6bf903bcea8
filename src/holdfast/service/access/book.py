"""The roles, permissions and tokens that operators gave, cached so that a request costs no query for them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.domain.access import Principal, Role, Via
from holdfast.domain.access.grants import ROOT_UID, Access, Sight, roles_of
from holdfast.domain.access.people import Limit
from holdfast.domain.access.tokens import JOB_TOKEN_PREFIX
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import Grants
from holdfast.errors import HoldfastError, Unauthenticated
from holdfast.ports.entries import KEYPAIR
from holdfast.service.access.tokens import (
    check_api_token,
    is_unknown,
    principal_of_job_token,
    tokens_by_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.access.tokens import ApiToken
    from holdfast.domain.terms.projects import KeyPair
    from holdfast.ports.clock import Clock
    from holdfast.ports.store import Store

_ACCOUNT_FRESH_S = 30.0
_DAY_S = 86_400.0
_MOMENT_S = 0.1
FRESH_S = 0.5
"""How long the cache is used without looking for changes, so that what operators revoke is gone within a second."""


class GivenAccess(Struct, frozen=True):
    """What operators gave, as of one version of the catalogue."""

    version: int
    access: Access
    grants: Grants
    tokens: Mapping[str, ApiToken]
    """By their ids."""
    keypairs: Mapping[str, KeyPair]
    """By their access keys."""


class AccessBook:
    """Looks up roles, permissions and tokens. Safe for threads: its cache is only ever replaced as a whole."""

    def __init__(
        self, store: Store, clock: Clock, owner: Principal, account: Callable[[str], Principal | None] = lambda _: None
    ) -> None:
        """Start with nothing cached.

        Args:
            store: Has the catalogue.
            clock: The time, for the age of the cache and the expiry of tokens.
            owner: The principal who runs the server.
            account: Finds the Unix account of a name, with its groups; may take a while.
        """
        self._store = store
        self._clock = clock
        self._owner = owner
        self._account = account
        self._kept: tuple[float, GivenAccess] | None = None
        self._accounts: dict[str, tuple[float, Principal | None]] = {}

    def is_at_hand(self) -> bool:
        """Whether the cache stays fresh for a moment, so that recognizing a caller needs no query."""
        kept = self._kept
        return kept is not None and 0 <= self._clock.now() - kept[0] < FRESH_S - _MOMENT_S

    def recognized(self, principal: Principal) -> Principal:
        """Return a principal with their roles.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        return evolve(principal, roles=roles_of(principal, self._given().access, owner=self._owner))

    def user(self, name: str) -> Principal:
        """Return the principal of a name, with groups and uid if it is a Unix account. Accounts are cached for 30 s."""
        now, cached = self._clock.now(), self._accounts.get(name)
        if cached is None or not 0 <= now - cached[0] < _ACCOUNT_FRESH_S:
            cached = self._accounts[name] = now, self._account(name)
        principal = cached[1] or Principal(name)
        return evolve(principal, via=Via.TOKEN)

    def shown(self, text: str) -> Principal:
        """Return the principal behind an API token or the token of a job.

        Raises:
            Unauthenticated: The token is not valid; the message says why, as far as the caller may know.
            Unavailable: The store cannot be read right now.
        """
        if text.startswith(JOB_TOKEN_PREFIX):
            return principal_of_job_token(text, self._store, self.user)
        now = self._clock.now()
        tokens = self._given().tokens
        if is_unknown(text, tokens):  # it may have been created a moment ago
            tokens = self._given(within_s=0.0).tokens
        token = check_api_token(text, tokens, now)
        user = self.user(token.user)
        if user.uid != token.uid:
            msg = f"token {token.name!r} belongs to an account {token.user!r} that no longer exists"
            raise Unauthenticated(msg, hint="an account that was created again under that name needs a new token")
        if token.used_at is None or now - token.used_at >= _DAY_S:
            # A full disk must not lock callers out.
            with suppress(HoldfastError):
                self._store.use_token(token, now - now % _DAY_S)
        return evolve(user, limit=token.limit)

    def signer(self, access_key: str) -> Principal | None:
        """Return the owner of an access key, limited to what it is for; ``None`` if nobody can sign with it.

        Raises:
            Unavailable: The store cannot be read right now.
        """
        keypair = self._given().keypairs.get(access_key)
        if keypair is None:  # it may have been created a moment ago
            keypair = self._given(within_s=0.0).keypairs.get(access_key)
        if keypair is None or not keypair.active:
            return None
        owner = self.user(keypair.owner)
        if owner.uid == ROOT_UID:  # any admin writes keypairs, but only root may act as root
            return None
        return owner if keypair.admin else evolve(owner, limit=Limit(Role.USER))

    def grants(self) -> Grants:
        """Return the permissions of queues, and how much callers see of others' jobs."""
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
        tokens = tokens_by_id(catalogue.tokens.values())
        return GivenAccess(catalogue.version, access, grants, tokens, catalogue.of(KEYPAIR))
