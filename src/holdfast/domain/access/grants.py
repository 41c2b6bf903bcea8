"""What operators grant: roles to people and groups, and rights in single queues.

Grants name people and groups as ``user:NAME`` and ``group:NAME``.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from holdfast.domain.access.people import ROLES, Role
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from holdfast.domain.access.people import Principal
    from holdfast.domain.access.places import WorkScope

ROOT_UID = 0
LONGEST_SUBJECT = 255
"""The maximum length of ``user:NAME`` and ``group:NAME``."""


class Right(StrEnum):
    """What a caller may do to something; the permissions of a queue name rights as verbs."""

    SUBMIT = "submit"
    """Have something new run, or change what runs."""
    WATCH = "watch"
    """See that it exists, its state and what was decided about it."""
    LOGS = "logs"
    """Read its output and its environment variables."""
    CANCEL = "cancel"
    """End or delete it."""
    PREEMPT = "preempt"
    """Take its place away, so that it waits for another one."""
    REPRIORITIZE = "reprioritize"
    """Change its priority."""
    CHANGE = "change"
    """Change anything else about it: hold, release, retry, suspend and restart it; create, change and delete objects
    other than jobs."""


class Sight(StrEnum):
    """What people see of other people's jobs, unless they were granted more."""

    NOTHING = "nothing"
    """Not even that it exists."""
    EXISTENCE = "existence"
    """That it exists, its state, where it is and what it uses, but not what it is."""
    DETAILS = "details"
    """Everything except its log and its environment variables."""
    EVERYTHING = "everything"
    """Everything, including its log and its environment."""


class Permission(Struct, frozen=True):
    """What some people may do to all jobs of a queue."""

    subjects: tuple[str, ...]
    """``user:NAME`` or ``group:NAME``."""
    verbs: tuple[Right, ...]


class Seen(Struct, frozen=True):
    """The work that a caller may see: its own, that in some queues, or everybody's."""

    owner: str = ""
    queues: frozenset[str] = frozenset()
    uid: int | None = None
    """The uid of the owner's Unix account, if any: an earlier account of the same name was somebody else."""
    everyones: bool = False
    """Whether all owners' work is included."""
    places: tuple[WorkScope, ...] | None = None
    """Only work in one of these; ``None`` is anywhere."""


Permissions: TypeAlias = tuple[Permission, ...]
NOBODY: Permissions = (Permission((), ()),)
"""Permissions that grant nothing to anybody; a queue without any permissions is open to users."""

Roles: TypeAlias = tuple[tuple[Role, tuple[str, ...]], ...]


class Access(Struct, frozen=True):
    """The settings about people; ``None`` is not set."""

    roles: Roles | None = None
    """The subjects that have each role."""
    others_see: Sight | None = None
    """What people see of other people's jobs; by default the details."""

    def over(self, before: Access) -> Access:
        """Fill what is not set from earlier settings."""
        roles = before.roles if self.roles is None else self.roles
        return Access(roles, before.others_see if self.others_see is None else self.others_see)

    def given_to(self, principal: Principal) -> tuple[Role, ...]:
        """Return the roles that the settings give to a caller."""
        subjects = principal.subjects
        return tuple(role for role, names in self.roles or () if not subjects.isdisjoint(names))

    def in_words(self) -> str:
        """Describe it for the audit log."""
        parts = [f"{role}: {', '.join(names) or 'nobody'}" for role, names in self.roles or ()]
        return "; ".join([*parts, f"others see {self.others_see or Sight.DETAILS}"])


AS_BEFORE = Access()
"""Changes nothing."""


def can_be_named(name: str) -> bool:
    """Whether grants can refer to this name."""
    return name.isprintable() and not any(letter.isspace() or letter == "," for letter in name)


def roles_of(principal: Principal, access: Access, *, owner: Principal) -> tuple[Role, ...]:
    """Return the roles of a caller.

    Root and the account that runs the server are admins, as they can access its files anyway. Other Unix accounts are
    users, unless the settings give them other roles; everybody else has only the roles that the settings give.

    Args:
        principal: The caller.
        access: The settings.
        owner: The account that runs the server.
    """
    if principal.uid == ROOT_UID or (principal.name, principal.uid) == (owner.name, owner.uid):
        roles: tuple[Role, ...] = (Role.ADMIN,)
    else:
        roles = access.given_to(principal) or (() if principal.uid is None else (Role.USER,))
    return roles if principal.limit is None else capped_role(roles, principal.limit.role)


def capped_role(roles: tuple[Role, ...], most: Role) -> tuple[Role, ...]:
    """Reduce roles to the highest one, and that to ``most``: a token never exceeds its user."""
    best = max(map(ROLES.index, roles), default=None)
    return () if best is None else (ROLES[min(best, ROLES.index(most))],)
