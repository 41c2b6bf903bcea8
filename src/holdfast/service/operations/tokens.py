"""Creates, lists and revokes API tokens."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.domain.access import Role
from holdfast.domain.access.grants import ROOT_UID, Right
from holdfast.domain.access.people import ROLES
from holdfast.domain.access.tokens import ApiToken
from holdfast.domain.audit import Act, Subject
from holdfast.domain.record import Struct
from holdfast.domain.rights import Reach, reach
from holdfast.domain.suggestion import closest
from holdfast.errors import Forbidden, InvalidRequest, NotFound, Problem
from holdfast.service.access.asking import asks
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
            self._may_make(principal, user)
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

    @staticmethod
    def _may_make(principal: Principal, user: Principal) -> None:
        if principal.limit is not None and principal.limit.scopes:
            msg = "a token with a scope cannot create tokens"
            raise Forbidden(msg, hint="use a token without a scope")
        if user.name != principal.name and reach(principal, Right.CHANGE, Subject.TOKEN) is not Reach.ALL:
            msg = f"{principal.name} may not create tokens of {user.name}"
            raise Forbidden(msg, hint=f"ask an admin or {user.name}")
        if user.uid == ROOT_UID and principal.uid != ROOT_UID:
            msg = f"{principal.name} may not create tokens of root, whose programs may do everything on the machine"
            raise Forbidden(msg, hint="ask root")

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
