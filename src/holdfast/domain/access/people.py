"""Callers: a person or a program, with one name wherever it comes from, and its roles."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.access.places import WorkScope  # noqa: TC001 - the record looks it up
from holdfast.domain.record import Struct


class Via(StrEnum):
    """How a caller connected."""

    PROCESS = "in-process"
    """Opened the data directory; the operating system identifies the caller."""
    TOKEN = "token"  # noqa: S105 - a word, not a secret
    """Presented a token over HTTP."""
    SOCKET = "socket"
    """Connected to a Unix socket; the operating system identifies the caller."""
    DOOR = "door"
    """Connected to a door without a token; the operator's settings identify the caller."""
    OIDC = "oidc"
    """Presented a token of the OpenID Connect issuer that the server trusts."""


class Role(StrEnum):
    """A caller's role; the table of rights says what each role allows."""

    ADMIN = "admin"
    """May do everything, and gives others their roles."""
    OPERATOR = "operator"
    """Manages machines, queues and policies, and controls everybody's jobs."""
    USER = "user"
    """Submits jobs and controls its own."""
    VIEWER = "viewer"
    """May only look."""


ROLES = (Role.VIEWER, Role.USER, Role.OPERATOR, Role.ADMIN)
"""From the least to the most powerful."""


class Scope(Struct, frozen=True):
    """One scope of a token."""

    rights: tuple[str, ...] = ()
    """Empty is all."""
    kind: str = ""
    """The kind of objects; ``job`` is all work, empty is everything."""
    place: WorkScope | None = None
    """Only work in this place; ``None`` is anywhere."""

    def __str__(self) -> str:
        place = "" if self.place is None else f":{self.place}"
        return f"{','.join(self.rights) or '*'}@{self.kind or '*'}{place}"


class Limit(Struct, frozen=True):
    """What a token limits its bearer to."""

    role: Role
    scopes: tuple[Scope, ...] = ()
    """Empty is all that the role allows."""

    @property
    def job(self) -> str:
        """The id of the job that the token was given to, if any."""
        return next((scope.place.job for scope in self.scopes if scope.place is not None and scope.place.job), "")

    @property
    def below(self) -> str:
        """The group of what that job submits; empty if the token is not a job's."""
        groups = (scope.place.group for scope in self.scopes if scope.place is not None and scope.place.group)
        return next(groups).removesuffix("/") if self.job else ""


class Principal(Struct, frozen=True):
    """A caller."""

    name: str
    """Unique: Unix accounts and users of tokens have bare names, others have a prefix."""
    groups: tuple[str, ...] = ()
    """Names of its groups, unique in the same way."""
    via: Via = Via.PROCESS
    uid: int | None = None
    """The uid, for a Unix account: an account created again under the same name is somebody else."""
    roles: tuple[Role, ...] = ()
    """Its roles; without any it may do nothing."""
    limit: Limit | None = None
    """What its token limits it to, if it has one."""

    @property
    def subjects(self) -> frozenset[str]:
        """Its names in grants: ``user:NAME``, and ``group:NAME`` for each of its groups."""
        return frozenset((f"user:{self.name}", *(f"group:{group}" for group in self.groups)))
