"""Decides who may do what to which kind of thing, by one table.

With a right, a role reaches nothing of a kind, its own things, or all. Whose reach ends at its own gets more of the
jobs in a queue by that queue's permissions, and sees as much of others' jobs as the settings say.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.access.people import ROLES, Role
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.access.grants import Permissions
    from holdfast.domain.access.people import Principal


class Reach(StrEnum):
    """How far a role goes with a right."""

    NONE = "no"
    OWN = "own"
    """What is its own, and what the permissions of queues add; jobs are submitted as one's own."""
    ALL = "all"


ANOTHERS = "another user's job"
"""What a job is called where somebody may know no more than that it is there."""
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
_OWN_READ = {Right.WATCH: (_OWN, _OWN, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _ALL, _ALL)}
_READ_BY_OPERATORS = {Right.WATCH: (_NO, _NO, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _ALL, _ALL)}
TABLE: Mapping[Subject, Mapping[Right, tuple[Reach, Reach, Reach, Reach]]] = {
    **dict.fromkeys(WORK, _OF_WORK),
    Subject.QUEUE: _READ_BY_ALL,
    Subject.POLICY: _READ_BY_ALL,
    Subject.CATEGORY: _READ_BY_ALL,
    Subject.NODE: _READ_BY_ALL,
    Subject.DEVICE: _READ_BY_ALL,
    Subject.NOTIFIER: _READ_BY_OPERATORS,
    Subject.NOTIFICATION: _OWN_READ,
    Subject.SETTINGS: {Right.WATCH: (_ALL, _ALL, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _NO, _ALL)},
    Subject.AUDIT: {Right.WATCH: (_NO, _NO, _ALL, _ALL)},
    Subject.TOKEN: {Right.WATCH: (_OWN, _OWN, _OWN, _ALL), Right.CHANGE: (_OWN, _OWN, _OWN, _ALL)},
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
    """A piece of work, as far as rights depend on it."""

    kind: Subject
    queue: str
    owner: str = ""
    """Whose it is; empty where nobody is known."""
    owner_uid: int | None = None
    """The number of that one's Unix account, where there is one."""

    def is_own(self, principal: Principal) -> bool:
        """Whether it is somebody's; an account that was made again under a name is another one."""
        same_account = None in {self.owner_uid, principal.uid} or self.owner_uid == principal.uid
        return bool(self.owner) and self.owner == principal.name and same_account


class Grants(Struct, frozen=True):
    """What operators gave, at one instant, beside the roles."""

    permissions: Mapping[str, Permissions] = field(default_factory=dict)
    """Of the queues that have any."""
    others_see: Sight = Sight.DETAILS

    def gives(self, principal: Principal, right: Right, queue: str) -> bool:
        """Whether the permissions of a queue give somebody a right."""
        known = self.permissions.get(queue, ())
        return any(right in each.verbs and not principal.subjects.isdisjoint(each.subjects) for each in known)


@lru_cache(maxsize=4096)  # a submission in bulk asks the same of each of its jobs
def reach(principal: Principal, right: Right, kind: Subject) -> Reach:
    """Return how far somebody goes with a right: as far as the role of theirs that goes farthest."""
    row = TABLE.get(kind, {}).get(right)
    if row is None or not _in_scope(principal, right, kind):
        return Reach.NONE
    found = {row[ROLES.index(role)] for role in principal.roles}
    return next((each for each in (Reach.ALL, Reach.OWN) if each in found), Reach.NONE)


def _in_scope(principal: Principal, right: Right, kind: Subject) -> bool:
    """Whether somebody's token is for that, if they have shown one."""
    scopes = () if principal.limit is None else principal.limit.scopes
    kinds = {"", kind.value, *([Subject.JOB.value] if kind in WORK else [])}
    return not scopes or any(each.kind in kinds and (not each.rights or right in each.rights) for each in scopes)


def refusal_of(principal: Principal, right: Right, kind: Subject) -> Refusal | None:
    """Say why somebody may do something to nothing of a kind, if so; whatever it is, and whose."""
    if reach(principal, right, kind) is not Reach.NONE:
        return None
    if principal.limit is not None and not _in_scope(principal, right, kind):
        scopes = " ".join(map(str, principal.limit.scopes))
        message = f"{principal.name} may not {_verb(right)} {_plural(kind)} with this token: its scope is {scopes}"
        return Refusal(message, "use another token, or none")
    row = TABLE.get(kind, {}).get(right, ())
    least = next((role for role, how_far in zip(ROLES, row, strict=False) if how_far is not Reach.NONE), Role.ADMIN)
    who = f"{principal.name}, whose role here is {_named(principal)}," if principal.roles else principal.name
    message = f"{who} may not {_verb(right)} {_plural(kind)}: that takes the role {least}"
    if not principal.roles:
        message = f"{principal.name} has no role here, and may not {_verb(right)} {_plural(kind)}"
    return Refusal(message, _by_an_admin(principal, least))


def submission_refusal(principal: Principal, kind: Subject, queue: str, permissions: Permissions) -> Refusal | None:
    """Say why somebody may not submit to a queue with such permissions, if so."""
    refused = refusal_of(principal, Right.SUBMIT, kind)
    if refused is not None or reach(principal, Right.SUBMIT, kind) is Reach.ALL:
        return refused
    if not permissions or Grants({queue: permissions}).gives(principal, Right.SUBMIT, queue):
        return None
    return _in_queue(principal, Right.SUBMIT, queue, f"queue {queue} gives that to some only")


def decide(principal: Principal, right: Right, thing: Thing, grants: Grants) -> Refusal | None:
    """Say why somebody may not do something to a piece of work that is there, if so."""
    refused = refusal_of(principal, right, thing.kind)
    if refused is not None or reach(principal, right, thing.kind) is Reach.ALL or thing.is_own(principal):
        return refused
    if right is Right.SUBMIT:  # it would run as its owner
        message = f"{principal.name} may not change what runs as {thing.owner or 'somebody else'}"
        return Refusal(message, f"{thing.owner or 'an admin'} can do that")
    if grants.gives(principal, right, thing.queue):
        return None
    return _in_queue(principal, right, thing.queue, f"this {_word(thing.kind)} belongs to somebody else")


def sight_of(principal: Principal, thing: Thing, grants: Grants) -> Sight:
    """Return how much somebody sees of a piece of work."""
    if decide(principal, Right.LOGS, thing, grants) is None:
        return Sight.EVERYTHING
    if decide(principal, Right.WATCH, thing, grants) is None:
        return max(Sight.DETAILS, grants.others_see, key=list(Sight).index)
    return Sight.NOTHING if refusal_of(principal, Right.WATCH, thing.kind) else grants.others_see


def _in_queue(principal: Principal, right: Right, queue: str, why: str) -> Refusal:
    hint = f"an admin can give it: permissions of queue {queue} with the verb {right} for user:{principal.name}"
    return Refusal(f"{principal.name} may not {_verb(right)} this: {why}", hint)


def _by_an_admin(principal: Principal, role: Role) -> str:
    return f"an admin can give it: holdfast update settings --access {role}=user:{principal.name}"


def _named(principal: Principal) -> str:
    return " and ".join(principal.roles)


def _verb(right: Right) -> str:
    return "read the logs of" if right is Right.LOGS else right.value


def _word(kind: Subject) -> str:
    return kind.replace("-", " ")


def _plural(kind: Subject) -> str:
    word = _word(kind)
    singular = kind in {Subject.AUDIT, Subject.SETTINGS, Subject.SCHEDULING, Subject.SERVER}
    return f"the {word}" if singular else word[:-1] + "ies" if word.endswith("y") else f"{word}s"
