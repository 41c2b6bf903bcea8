"""Decides who may do what to which kind of thing, by one table.

With a right, a role reaches nothing of a kind, its own things, or all. Whose reach ends at its own gets more of the
jobs in a queue by that queue's permissions, and sees as much of others' jobs as the settings say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.access.people import Role
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.access.grants import Permission
    from holdfast.domain.access.people import Principal


class Reach(StrEnum):
    """How far a role goes with a right."""

    NONE = "no"
    OWN = "own"
    """What is its own, and what the permissions of queues add; jobs are submitted as one's own."""
    ALL = "all"


ROLES = (Role.VIEWER, Role.USER, Role.OPERATOR, Role.ADMIN)
"""From the least to the most."""
WORK = (Subject.JOB, Subject.ARRAY, Subject.JOB_SET)
"""What is submitted; those of queues."""
_NO, _OWN, _ALL = Reach.NONE, Reach.OWN, Reach.ALL
_OF_WORK = {
    Right.SUBMIT: (_NO, _OWN, _OWN, _ALL),
    Right.WATCH: (_OWN, _OWN, _ALL, _ALL),
    Right.LOGS: (_OWN, _OWN, _OWN, _ALL),
    Right.CANCEL: (_NO, _OWN, _ALL, _ALL),
    Right.PREEMPT: (_NO, _OWN, _ALL, _ALL),
    Right.REPRIORITIZE: (_NO, _OWN, _ALL, _ALL),
    Right.CHANGE: (_NO, _OWN, _ALL, _ALL),
}
_READ_BY_ALL = {Right.WATCH: (_ALL, _ALL, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _ALL, _ALL)}
_READ_BY_OPERATORS = {Right.WATCH: (_NO, _NO, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _ALL, _ALL)}
TABLE: Mapping[Subject, Mapping[Right, tuple[Reach, Reach, Reach, Reach]]] = {
    **dict.fromkeys(WORK, _OF_WORK),
    Subject.QUEUE: _READ_BY_ALL,
    Subject.POLICY: _READ_BY_ALL,
    Subject.CATEGORY: _READ_BY_ALL,
    Subject.NODE: _READ_BY_ALL,
    Subject.DEVICE: _READ_BY_ALL,
    Subject.NOTIFIER: _READ_BY_OPERATORS,
    Subject.NOTIFICATION: _READ_BY_OPERATORS,
    Subject.SETTINGS: {Right.WATCH: (_ALL, _ALL, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _NO, _ALL)},
    Subject.AUDIT: {Right.WATCH: (_NO, _NO, _ALL, _ALL)},
    Subject.SERVER: {Right.WATCH: (_ALL, _ALL, _ALL, _ALL)},
}
"""How far the roles go, from viewer to admin; what is not here nobody may do."""


class Refusal(Struct, frozen=True):
    """Why somebody may not do something."""

    message: str
    """Which right is missing."""
    hint: str
    """Who can give it, and how."""


class Thing(Struct, frozen=True):
    """What somebody wants to do something to, as far as rights depend on it."""

    kind: Subject
    queue: str
    owner: str | None = None
    """Whose it is; ``None`` for what is to be submitted."""


class Grants(Struct, frozen=True):
    """What operators gave, at one instant, beside the roles."""

    permissions: Mapping[str, tuple[Permission, ...]] = field(default_factory=dict)
    """Of the queues that have any."""
    others_see: Sight = Sight.DETAILS

    def gives(self, principal: Principal, right: Right, queue: str) -> bool:
        """Whether the permissions of a queue give somebody a right."""
        known = self.permissions.get(queue, ())
        return any(right in each.verbs and not principal.subjects.isdisjoint(each.subjects) for each in known)


def reach(principal: Principal, right: Right, kind: Subject) -> Reach:
    """Return how far somebody goes with a right: as far as the role of theirs that goes farthest."""
    row = TABLE.get(kind, {}).get(right)
    if row is None:
        return Reach.NONE
    found = {row[ROLES.index(role)] for role in principal.roles}
    return next((each for each in (Reach.ALL, Reach.OWN) if each in found), Reach.NONE)


def refusal_of(principal: Principal, right: Right, kind: Subject) -> Refusal | None:
    """Say why somebody may do something to nothing of a kind, if so; whatever it is, and whose."""
    if reach(principal, right, kind) is not Reach.NONE:
        return None
    row = TABLE.get(kind, {}).get(right, ())
    least = next((role for role, how_far in zip(ROLES, row, strict=False) if how_far is not Reach.NONE), Role.ADMIN)
    who = f"{principal.name}, whose role here is {_named(principal)}," if principal.roles else principal.name
    message = f"{who} may not {right} {_plural(kind)}: that takes the role {least}"
    if not principal.roles:
        message = f"{principal.name} has no role here, and may not {right} {_plural(kind)}"
    return Refusal(message, _by_an_admin(principal, least))


def decide(principal: Principal, right: Right, thing: Thing, grants: Grants) -> Refusal | None:
    """Say why somebody may not do something to a piece of work, if so."""
    refused = refusal_of(principal, right, thing.kind)
    if refused is not None or reach(principal, right, thing.kind) is Reach.ALL:
        return refused
    own = thing.owner == principal.name
    if right is Right.SUBMIT:
        if thing.owner is not None and not own:
            return _not_own(principal, "change what runs as", thing, "an admin can do that")
        closed = thing.queue in grants.permissions and not grants.gives(principal, right, thing.queue)
        why = f"queue {thing.queue} gives that to some only"
        return _in_queue(principal, right, thing, why) if closed else None
    if own or grants.gives(principal, right, thing.queue) or _seen_enough(right, grants.others_see):
        return None
    return _in_queue(principal, right, thing, "it belongs to somebody else")


def _seen_enough(right: Right, others_see: Sight) -> bool:
    if right is Right.LOGS:
        return others_see is Sight.EVERYTHING
    return right is Right.WATCH and others_see is not Sight.NOTHING


def _in_queue(principal: Principal, right: Right, thing: Thing, why: str) -> Refusal:
    hint = f"an admin can give it: permissions of queue {thing.queue} with the right {right} for user:{principal.name}"
    return Refusal(f"{principal.name} may not {right} this {_word(thing.kind)}: {why}", hint)


def _not_own(principal: Principal, what: str, thing: Thing, hint: str) -> Refusal:
    return Refusal(f"{principal.name} may not {what} {thing.owner}", hint)


def _by_an_admin(principal: Principal, role: Role) -> str:
    return f"an admin can give it: holdfast update settings --access {role}=user:{principal.name}"


def _named(principal: Principal) -> str:
    return " and ".join(principal.roles)


def _word(kind: Subject) -> str:
    return kind.replace("-", " ")


def _plural(kind: Subject) -> str:
    word = _word(kind)
    singular = kind in {Subject.AUDIT, Subject.SETTINGS, Subject.SCHEDULING, Subject.SERVER}
    return f"the {word}" if singular else word[:-1] + "ies" if word.endswith("y") else f"{word}s"
