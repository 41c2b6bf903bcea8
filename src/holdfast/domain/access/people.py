"""Who calls: a person or a program, by one name wherever it comes from, and which roles it has."""

from __future__ import annotations

from enum import StrEnum

from holdfast.domain.access.places import WorkScope  # noqa: TC001 - the record looks it up
from holdfast.domain.record import Struct


class Via(StrEnum):
    """How somebody came in."""

    PROCESS = "in-process"
    """Opened the data directory; the operating system knows who that is."""
    TOKEN = "token"  # noqa: S105 - a word, not a secret
    """Showed a token over HTTP."""
    SOCKET = "socket"
    """Connected to a Unix socket; the operating system knows who that is."""
    DOOR = "door"
    """Came in by a door and showed nothing; the operator says who that is."""
    OIDC = "oidc"
    """Showed a token of the OpenID Connect issuer that the server trusts."""


class Role(StrEnum):
    """What somebody is to a server; the table of rights says what that allows."""

    ADMIN = "admin"
    """May do everything; gives the others their roles."""
    OPERATOR = "operator"
    """Looks after machines, queues and policies, and steers everybody's jobs."""
    USER = "user"
    """Submits jobs, and steers its own."""
    VIEWER = "viewer"
    """Only looks."""


ROLES = (Role.VIEWER, Role.USER, Role.OPERATOR, Role.ADMIN)
"""From the least to the most."""


class Scope(Struct, frozen=True):
    """Something that a token is for."""

    rights: tuple[str, ...] = ()
    """None: all."""
    kind: str = ""
    """Of things; ``job`` is all work, and empty is everything."""
    place: WorkScope | None = None
    """Only of work that is there; ``None``: wherever it is."""

    def __str__(self) -> str:
        """Write it as it is given."""
        place = "" if self.place is None else f":{self.place}"
        return f"{','.join(self.rights) or '*'}@{self.kind or '*'}{place}"


class Limit(Struct, frozen=True):
    """What a token keeps whoever shows it to."""

    role: Role
    scopes: tuple[Scope, ...] = ()
    """None: all that its role allows."""

    @property
    def job(self) -> str:
        """The id of the job whose own the token is, if it is one's."""
        return next((scope.place.job for scope in self.scopes if scope.place is not None and scope.place.job), "")

    @property
    def below(self) -> str:
        """The group of what that job submits; empty where the token is no job's own."""
        groups = (scope.place.group for scope in self.scopes if scope.place is not None and scope.place.group)
        return next(groups).removesuffix("/") if self.job else ""


class Principal(Struct, frozen=True):
    """Who calls."""

    name: str
    """In one name space: names of Unix accounts and of tokens' users are bare, others have a prefix."""
    groups: tuple[str, ...] = ()
    """Names of its groups, in the same name space."""
    via: Via = Via.PROCESS
    uid: int | None = None
    """Of a Unix account, its number: an account that is made again under the same name is somebody else."""
    roles: tuple[Role, ...] = ()
    """What it is to this server; without any it may do nothing."""
    limit: Limit | None = None
    """What its token keeps it to, if it has one."""

    @property
    def subjects(self) -> frozenset[str]:
        """How grants name it: ``user:NAME``, and ``group:NAME`` for each of its groups."""
        return frozenset((f"user:{self.name}", *(f"group:{group}" for group in self.groups)))
