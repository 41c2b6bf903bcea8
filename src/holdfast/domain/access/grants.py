"""What operators give to whom: roles to people and groups, and rights in single queues.

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
"""Characters of ``user:NAME`` and ``group:NAME``."""


class Right(StrEnum):
    """What somebody may do to something; the permissions of a queue name them as verbs."""

    SUBMIT = "submit"
    """Have something run that was not there before, or is another one now."""
    WATCH = "watch"
    """See that it is there, its state and what was decided about it."""
    LOGS = "logs"
    """Read what it printed, and the variables of its environment."""
    CANCEL = "cancel"
    """End or delete it."""
    PREEMPT = "preempt"
    """Take its place away; it waits for another one."""
    REPRIORITIZE = "reprioritize"
    """Change whose turn it is."""
    CHANGE = "change"
    """Change anything else about it: hold, release, retry, suspend and restart it; of what is no job, create, change
    and delete it."""


class Sight(StrEnum):
    """What those see of a job whose it is not, and who were given no more."""

    NOTHING = "nothing"
    """It is as if there were none."""
    EXISTENCE = "existence"
    """That there is one, in which state, where, and how much it uses; not what it is."""
    DETAILS = "details"
    """Everything but its log and the variables of its environment."""
    EVERYTHING = "everything"
    """Its log and its environment, too."""


class Permission(Struct, frozen=True):
    """What some may do to the jobs of a queue, whoever's they are."""

    subjects: tuple[str, ...]
    """``user:NAME`` or ``group:NAME``."""
    verbs: tuple[Right, ...]


class Seen(Struct, frozen=True):
    """Whose work somebody may know of, and where: the own, and that in some queues, or everybody's."""

    owner: str = ""
    queues: frozenset[str] = frozenset()
    uid: int | None = None
    """The number of the owner's Unix account, where there is one: an earlier account of its name was somebody else."""
    everyones: bool = False
    """Whosever it is."""
    places: tuple[WorkScope, ...] | None = None
    """Only what is in one of these; ``None``: wherever it is."""


Permissions: TypeAlias = tuple[Permission, ...]
NOBODY: Permissions = (Permission((), ()),)
"""Permissions that give nothing to anybody; a queue without any is open to users."""

Roles: TypeAlias = tuple[tuple[Role, tuple[str, ...]], ...]


class Access(Struct, frozen=True):
    """What the settings say of people; ``None`` is what they do not say."""

    roles: Roles | None = None
    """Who has which role."""
    others_see: Sight | None = None
    """What people see of others' jobs; by default their details."""

    def over(self, before: Access) -> Access:
        """Return it with what was said before where it says nothing."""
        roles = before.roles if self.roles is None else self.roles
        return Access(roles, before.others_see if self.others_see is None else self.others_see)

    def given_to(self, principal: Principal) -> tuple[Role, ...]:
        """Return the roles that the settings give to somebody."""
        subjects = principal.subjects
        return tuple(role for role, names in self.roles or () if not subjects.isdisjoint(names))

    def in_words(self) -> str:
        """Say it for the audit log."""
        parts = [f"{role}: {', '.join(names) or 'nobody'}" for role, names in self.roles or ()]
        return "; ".join([*parts, f"others see {self.others_see or Sight.DETAILS}"])


AS_BEFORE = Access()
"""Says nothing."""


def can_be_named(name: str) -> bool:
    """Whether grants can name somebody of that name, who may have any other."""
    return name.isprintable() and not any(letter.isspace() or letter == "," for letter in name)


def roles_of(principal: Principal, access: Access, *, owner: Principal) -> tuple[Role, ...]:
    """Return which roles somebody has.

    Root and the account that the server runs as have every right anyway, by its files. Other Unix accounts are users
    unless the settings say something else of them; who is neither has what the settings say.

    Args:
        principal: Who it is.
        access: What the settings say.
        owner: Whose server it is.
    """
    if principal.uid == ROOT_UID or (principal.name, principal.uid) == (owner.name, owner.uid):
        roles: tuple[Role, ...] = (Role.ADMIN,)
    else:
        roles = access.given_to(principal) or (() if principal.uid is None else (Role.USER,))
    return roles if principal.limit is None else at_most(roles, principal.limit.role)


def at_most(roles: tuple[Role, ...], most: Role) -> tuple[Role, ...]:
    """Return what is left of roles where nobody may be more than something: a token never exceeds its user."""
    best = max(map(ROLES.index, roles), default=None)
    return () if best is None else (ROLES[min(best, ROLES.index(most))],)
