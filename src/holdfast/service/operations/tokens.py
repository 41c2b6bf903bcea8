"""Creates, lists and revokes the credentials of callers: API tokens, and the keypairs of callers that sign."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.access import Role
from holdfast.domain.access.grants import ROOT_UID, Right
from holdfast.domain.access.people import ROLES
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import Reach, reach
from holdfast.domain.sessions.model import named_id
from holdfast.domain.suggestion import closest
from holdfast.domain.terms.entries import KEYPAIR as KEYPAIR_INFO
from holdfast.domain.terms.projects import KeyPair
from holdfast.errors import Forbidden, InvalidRequest, NotFound, Problem
from holdfast.ports.entries import KEYPAIR
from holdfast.service.access.asking import asks
from holdfast.service.access.keypairs import new_access_key
from holdfast.service.access.scopes import read_scopes
from holdfast.service.access.tokens import new_secret
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

LONGEST_S = 3650 * 86_400
LONGEST_NAME = 63
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class NewToken(Struct, frozen=True):
    """A request for a new token."""

    name: str
    user: str | None = None
    """``None``: the caller."""
    role: str | None = None
    """``None``: the user's own role."""
    scopes: Sequence[str] = ()
    """See ``read_scopes``."""
    expires_s: float | None = None


def require_may_make(principal: Principal, user: Principal, credentials: str = "tokens") -> None:
    """Check that a caller may make credentials of a user.

    Raises:
        Forbidden: The caller may not.
    """
    if principal.limit is not None and principal.limit.scopes:
        msg = f"a token with a scope cannot create {credentials}"
        raise Forbidden(msg, hint="use a token without a scope")
    if user.name != principal.name and reach(principal, Right.CHANGE, Subject.TOKEN) is not Reach.ALL:
        msg = f"{principal.name} may not create {credentials} of {user.name}"
        raise Forbidden(msg, hint=f"ask an admin or {user.name}")
    if user.uid == ROOT_UID and principal.uid != ROOT_UID:
        msg = f"{principal.name} may not create {credentials} of root, whose programs may do everything on the machine"
        raise Forbidden(msg, hint="ask root")


class Tokens(Struct, frozen=True):
    """The API tokens."""

    backend: Backend

    @asks(Right.WATCH, Subject.TOKEN)
    def list(self, caller: Caller) -> Sequence[ApiToken]:
        """List the caller's tokens by name, or all if the caller may see them."""
        tokens = self.backend.store.catalogue().tokens
        every = reach(caller.principal, Right.WATCH, Subject.TOKEN) is Reach.ALL
        return [tokens[name] for name in sorted(tokens) if every or tokens[name].user == caller.principal.name]

    @asks(Right.CHANGE, Subject.TOKEN)
    def create(self, caller: Caller, request: NewToken) -> tuple[ApiToken, str]:
        """Create a token; returns also its text, which cannot be read again.

        Raises:
            InvalidRequest: It is not valid, or would have more rights than its user; with all problems.
            Forbidden: The caller may not create tokens of that user.
            AlreadyExists: A token of that name is in use.
        """
        with audited(self.backend.store, caller, Act.CREATE, Subject.TOKEN, request.name[:LONGEST_NAME]):
            principal = caller.principal
            user = self.backend.access.recognized(self.backend.access.user(request.user or principal.name))
            require_may_make(principal, user)
            own = user.name == principal.name
            most = max(map(ROLES.index, principal.roles if own else user.roles), default=None)
            scopes, wrong = read_scopes(request.scopes)
            problems = [*_problems(request), *wrong]
            if most is None:
                hint = f"an admin can give one: holdfast update settings --access user=user:{user.name}"
                problems.append(Problem("user", f"{user.name} has no role here", hint=hint))
            elif request.role in ROLES and ROLES.index(Role(request.role)) > most:
                allowed = ROLES[: most + 1]
                problems.append(Problem("role", f"{request.role!r} is more than {user.name} has", allowed))
            if problems or most is None:
                raise InvalidRequest(problems=problems)
            key, text, digest = new_secret()
            token = ApiToken(
                request.name,
                key,
                digest,
                user.name,
                user.uid,
                ROLES[most] if request.role is None else Role(request.role),
                scopes,
                caller.at,
                principal.name,
                None if request.expires_s is None else caller.at + request.expires_s,
            )
            self.backend.store.put_token(token, caller.at, caller=caller)
            return token, text

    @asks(Right.CHANGE, Subject.TOKEN)
    def revoke(self, caller: Caller, name: str) -> ApiToken:
        """Revoke a token; it stops working within a second.

        Raises:
            NotFound: The token does not exist, or the caller may not see it.
        """
        with audited(self.backend.store, caller, Act.DELETE, Subject.TOKEN, name):
            if name not in {token.name for token in self.list(caller)}:
                msg = f"token {name!r} does not exist"
                raise NotFound(msg, hint="holdfast token list")
            return self.backend.store.revoke_token(name, caller.at, caller=caller)


def _problems(request: NewToken) -> list[Problem]:
    problems = []
    if len(request.name) > LONGEST_NAME or not _NAME.fullmatch(request.name):
        rule = f"must be up to {LONGEST_NAME} lower-case letters, digits and dashes"
        problems.append(Problem("name", f"{request.name[:LONGEST_NAME]!r} {rule}"))
    if request.role is not None and request.role not in ROLES:
        problems.append(Problem("role", f"{request.role!r} is not a role", ROLES, closest(request.role, ROLES)))
    if request.expires_s is not None and not 1 <= request.expires_s <= LONGEST_S:
        problems.append(Problem("expiresIn", "is out of range", ("1s to 3650d",)))
    return problems


class KeypairChange(Struct, frozen=True):
    """What to change of a keypair; ``None`` leaves it."""

    active: bool | None = None
    admin: bool | None = None


class IssuedKeypairs(Struct, frozen=True):
    """The keypairs that have entries. Whoever may make tokens of a user may issue keypairs of that user."""

    backend: Backend

    @asks(Right.WATCH, Subject.TOKEN)
    def list(self, caller: Caller) -> Sequence[KeyPair]:
        """List the caller's keypairs by access key, or all if the caller may see them."""
        keypairs = self.backend.store.catalogue().of(KEYPAIR)
        every = reach(caller.principal, Right.WATCH, Subject.TOKEN) is Reach.ALL
        return [keypairs[name] for name in sorted(keypairs) if every or keypairs[name].owner == caller.principal.name]

    @asks(Right.WATCH, Subject.TOKEN)
    def get(self, caller: Caller, access_key: str) -> KeyPair:
        """Read a keypair.

        Raises:
            NotFound: It does not exist, or the caller may not see it.
        """
        keypair = next((keypair for keypair in self.list(caller) if keypair.name == access_key), None)
        if keypair is None:
            msg = f"keypair {access_key!r} does not exist"
            raise NotFound(msg)
        return keypair

    @asks(Right.CHANGE, Subject.TOKEN)
    def issue(self, caller: Caller, owner: str | None = None, change: KeypairChange = KeypairChange()) -> KeyPair:  # noqa: B008 - immutable
        """Create a keypair, by default for the caller.

        Raises:
            Forbidden: The caller may not create keypairs of that user, or none with all of its rights.
        """
        access_key, name = new_access_key(), owner or caller.principal.name
        with audited(self.backend.store, caller, Act.CREATE, KEYPAIR_INFO.subject, access_key):
            self._require_may_make(caller, name, change)
            keypair = KeyPair(access_key, name, admin=bool(change.admin), active=change.active is not False)
            return self.backend.store.put_entry(keypair, create=True, caller=caller)

    @asks(Right.CHANGE, Subject.TOKEN)
    def update(self, caller: Caller, access_key: str, change: KeypairChange) -> KeyPair:
        """Change a keypair.

        Raises:
            NotFound: It does not exist, or the caller may not see it.
            Forbidden: The caller may not change it in this way.
        """
        with audited(self.backend.store, caller, Act.UPDATE, KEYPAIR_INFO.subject, access_key):
            keypair = self.get(caller, access_key)
            self._require_may_make(caller, keypair.owner, change)
            changes = {name: value for name in ("active", "admin") if (value := getattr(change, name)) is not None}
            return self.backend.store.put_entry(evolve(keypair, **changes), create=False, caller=caller)

    @asks(Right.CHANGE, Subject.TOKEN)
    def revoke(self, caller: Caller, access_key: str) -> KeyPair:
        """Delete a keypair; it stops working within a second.

        Raises:
            NotFound: It does not exist, or the caller may not see it.
        """
        with audited(self.backend.store, caller, Act.DELETE, KEYPAIR_INFO.subject, access_key):
            keypair = self.get(caller, access_key)
            self.backend.store.delete_entry(KEYPAIR, access_key, caller=caller)
            return keypair

    @asks(Right.WATCH, Subject.TOKEN)
    def user_of(self, caller: Caller, user_id: str) -> str:
        """Return the name of a user by its id, of those with a role, a token or a keypair.

        Raises:
            NotFound: No such user is known.
        """
        catalogue = self.backend.store.catalogue()
        subjects = {subject for _, names in catalogue.access.roles or () for subject in names}
        names = {
            caller.principal.name,
            self.backend.owner.name,
            *(subject.removeprefix("user:") for subject in subjects if subject.startswith("user:")),
            *(token.user for token in catalogue.tokens.values()),
            *(keypair.owner for keypair in catalogue.of(KEYPAIR).values()),
        }
        name = next((name for name in names if named_id("user", name) == user_id), None)
        if name is None:
            msg = f"there is no user with the id {user_id}"
            raise NotFound(msg, hint="users are those with a role in the settings, a token or a keypair")
        return name

    def _require_may_make(self, caller: Caller, owner: str, change: KeypairChange) -> None:
        user, limit = self.backend.access.user(owner), caller.principal.limit
        require_may_make(caller.principal, user, "keypairs")
        if limit is not None and limit.role is Role.VIEWER:
            msg = "a token that may only look cannot create keypairs, which may do more"
            raise Forbidden(msg)
        if user.uid == ROOT_UID:
            msg = "root signs with the keypair in backendai.env, and has no others"
            raise Forbidden(msg)
        if change.admin and reach(caller.principal, Right.CHANGE, Subject.TOKEN) is not Reach.ALL:
            msg = "only an admin gives a keypair all rights of its owner"
            raise Forbidden(msg)
