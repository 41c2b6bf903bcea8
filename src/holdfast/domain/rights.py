"""Decides who may do what to which kind of object, by one table.

For each right, a role reaches no objects of a kind, its own, or all. A caller whose reach ends at its own objects gets
more by the permissions of a queue, and sees as much of other people's jobs as the settings allow.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right, Sight
from holdfast.domain.access.people import ROLES, Role
from holdfast.domain.access.tokens import BELOW_IT, OF_ITSELF
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, field
from holdfast.domain.terms.entries import ENTRIES
from holdfast.domain.terms.kinds import KINDS, SubjectName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.access.grants import Permissions
    from holdfast.domain.access.people import Principal
    from holdfast.domain.access.places import WorkScope
    from holdfast.domain.terms.entries import EntryInfo


class Reach(StrEnum):
    """Which objects a role reaches with a right."""

    NONE = "no"
    OWN = "own"
    """Its own, and what the permissions of queues add; jobs are submitted as one's own."""
    SOME = "some"
    """All in the places of a token's scope; never in the table."""
    ALL = "all"


ANOTHERS = "another user's job"
"""The name shown for a job of which a caller may only know that it exists."""
WORK = tuple(kind.subject for kind in KINDS.values())
"""The kinds that are submitted to queues."""
_SIGHTS = tuple(Sight)
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


def _of_entry(info: EntryInfo) -> Mapping[Right, tuple[Reach, Reach, Reach, Reach]]:
    reads, writes = _NO if info.private else _ALL, _NO if info.guarded else _ALL
    return {Right.WATCH: (reads, reads, _ALL, _ALL), Right.CHANGE: (_NO, _NO, writes, _ALL)}


TABLE: dict[SubjectName, Mapping[Right, tuple[Reach, Reach, Reach, Reach]]] = {
    **dict.fromkeys(WORK, _OF_WORK),
    **{subject: _of_entry(info) for subject, info in ENTRIES.items()},
    Subject.NODE: _READ_BY_ALL,
    Subject.DEVICE: _READ_BY_ALL,
    Subject.NOTIFICATION: _OWN_READ,
    Subject.SETTINGS: {Right.WATCH: (_ALL, _ALL, _ALL, _ALL), Right.CHANGE: (_NO, _NO, _NO, _ALL)},
    Subject.AUDIT: {Right.WATCH: (_NO, _NO, _ALL, _ALL)},
    Subject.TOKEN: {Right.WATCH: (_OWN, _OWN, _OWN, _ALL), Right.CHANGE: (_OWN, _OWN, _OWN, _ALL)},
    Subject.SERVER: {Right.WATCH: (_ALL, _ALL, _ALL, _ALL)},
}
"""The reach of each role, from viewer to admin; nobody has a right that is not listed."""


class Refusal(Struct, frozen=True):
    """Why a caller may not do something."""

    message: str
    """Which right is missing."""
    hint: str
    """Who can grant it, and how."""


class Thing(Struct, frozen=True):
    """What rights depend on of a piece of work."""

    kind: SubjectName
    queue: str
    owner: str = ""
    """Its owner; empty if unknown."""
    owner_uid: int | None = None
    """The uid of the owner's Unix account, if there is one."""
    group: str = ""
    id: str = ""
    """Empty before it is submitted."""

    def is_own(self, principal: Principal) -> bool:
        """Whether a caller owns it; an account created again under the same name is a different one."""
        same_account = None in {self.owner_uid, principal.uid} or self.owner_uid == principal.uid
        return bool(self.owner) and self.owner == principal.name and same_account


class Grants(Struct, frozen=True):
    """What operators have granted beside the roles, at one instant."""

    permissions: Mapping[str, Permissions] = field(default_factory=dict)
    """By queue, where there are any."""
    others_see: Sight = Sight.DETAILS

    def gives(self, principal: Principal, right: Right, queue: str) -> bool:
        """Whether the permissions of a queue give a caller a right."""
        permissions = self.permissions.get(queue, ())
        return any(
            right in permission.verbs and not principal.subjects.isdisjoint(permission.subjects)
            for permission in permissions
        )


# Cached, because a submission in bulk asks the same for each of its jobs.
@lru_cache(maxsize=4096)
def reach(principal: Principal, right: Right, kind: SubjectName) -> Reach:
    """Return the reach of a caller with a right: the farthest of its roles."""
    row = TABLE.get(kind, {}).get(right)
    places = places_of(principal, right, kind)
    if row is None or places == ():
        return Reach.NONE
    reaches = {row[ROLES.index(role)] for role in principal.roles}
    if Reach.ALL in reaches:
        return Reach.ALL if places is None else Reach.SOME
    return Reach.OWN if Reach.OWN in reaches else Reach.NONE


@lru_cache(maxsize=4096)  # as above
def places_of(principal: Principal, right: Right, kind: SubjectName) -> tuple[WorkScope, ...] | None:
    """Return the places in which a caller's token allows something; ``None`` is everywhere."""
    scopes = () if principal.limit is None else principal.limit.scopes
    kinds = {"", kind, *([Subject.JOB] if kind in WORK else [])}
    matching = [scope for scope in scopes if scope.kind in kinds and (not scope.rights or right in scope.rights)]
    places = [scope.place for scope in matching if scope.place is not None]
    return None if not scopes or len(places) < len(matching) else tuple(places)


def is_in_scope(principal: Principal, right: Right, thing: Thing) -> bool:
    """Whether a caller's token, if it has one, allows something where a piece of work is."""
    places = places_of(principal, right, thing.kind)
    if places is None:
        return True
    # A job may be in the group of the jobs below it: it then sees itself, but does not control itself.
    steers_itself = bool(thing.id) and principal.limit is not None and principal.limit.job == thing.id
    if steers_itself and right not in OF_ITSELF:
        return False
    return any(place.holds(thing.queue, thing.group, thing.id) for place in places)


def hands_on(principal: Principal, group: str) -> bool:
    """Whether what a caller submits may get a token for the work below a group, which needs the same rights."""
    place_lists = (places_of(principal, right, Subject.JOB) for right in BELOW_IT)
    return all(places is None or any(place.covers(group) for place in places) for places in place_lists)


def refusal_of(principal: Principal, right: Right, kind: SubjectName) -> Refusal | None:
    """Say why a caller may not do something to any object of a kind; ``None`` if it may to some."""
    if reach(principal, right, kind) is not Reach.NONE:
        return None
    if places_of(principal, right, kind) == ():
        return _out_of_scope(principal, right, _plural(kind), "use another token, or none")
    row = TABLE.get(kind, {}).get(right, ())
    least = next((role for role, how_far in zip(ROLES, row, strict=False) if how_far is not Reach.NONE), Role.ADMIN)
    subject = f"{principal.name}, whose role here is {_named(principal)}," if principal.roles else principal.name
    message = f"{subject} may not {_verb(right)} {_plural(kind)}: this needs the role {least}"
    if not principal.roles:
        message = f"{principal.name} has no role here, and may not {_verb(right)} {_plural(kind)}"
    return Refusal(message, _by_an_admin(principal, least))


def _out_of_scope(principal: Principal, right: Right, what: str, hint: str) -> Refusal:
    scopes = " ".join(map(str, () if principal.limit is None else principal.limit.scopes))
    message = f"{principal.name} may not {_verb(right)} {what} with this token: its scope is {scopes}"
    return Refusal(message, hint)


def submission_refusal(principal: Principal, thing: Thing, permissions: Permissions) -> Refusal | None:
    """Say why a caller may not submit work to a queue with such permissions; ``None`` if it may."""
    refused = refusal_of(principal, Right.SUBMIT, thing.kind)
    if refused is not None:
        return refused
    if not is_in_scope(principal, Right.SUBMIT, thing):
        places = places_of(principal, Right.SUBMIT, thing.kind) or ()
        hint = f"put it in {', or in '.join(place.in_words for place in places)}; or use another token, or none"
        group = f" and group {thing.group}" if thing.group else " and no group"
        return _out_of_scope(principal, Right.SUBMIT, f"{_plural(thing.kind)} to queue {thing.queue}{group}", hint)
    if reach(principal, Right.SUBMIT, thing.kind) is not Reach.OWN or not permissions:
        return None
    if Grants({thing.queue: permissions}).gives(principal, Right.SUBMIT, thing.queue):
        return None
    return _in_queue(principal, Right.SUBMIT, thing.queue, f"queue {thing.queue} allows it only for some")


def decide(principal: Principal, right: Right, thing: Thing, grants: Grants) -> Refusal | None:
    """Say why a caller may not do something to existing work; ``None`` if it may."""
    refused = refusal_of(principal, right, thing.kind)
    if refused is not None:
        return refused
    if not is_in_scope(principal, right, thing):
        return _out_of_scope(principal, right, f"this {_word(thing.kind)}", "use another token, or none")
    if reach(principal, right, thing.kind) is not Reach.OWN or thing.is_own(principal):
        return None
    if right is Right.SUBMIT:
        # What is changed runs as its owner.
        message = f"{principal.name} may not change what runs as {thing.owner or 'somebody else'}"
        return Refusal(message, f"{thing.owner or 'an admin'} can do that")
    if grants.gives(principal, right, thing.queue):
        return None
    return _in_queue(principal, right, thing.queue, f"this {_word(thing.kind)} belongs to somebody else")


def sight_of(principal: Principal, thing: Thing, grants: Grants) -> Sight:
    """Return how much a caller sees of a piece of work; nothing outside its token's scope."""
    if refusal_of(principal, Right.WATCH, thing.kind) or not is_in_scope(principal, Right.WATCH, thing):
        return Sight.NOTHING
    if decide(principal, Right.LOGS, thing, grants) is None:
        return Sight.EVERYTHING
    least = Sight.NOTHING if decide(principal, Right.WATCH, thing, grants) else Sight.DETAILS
    most = Sight.EVERYTHING if is_in_scope(principal, Right.LOGS, thing) else Sight.DETAILS
    return min(most, max(least, grants.others_see, key=_SIGHTS.index), key=_SIGHTS.index)


def _in_queue(principal: Principal, right: Right, queue: str, why: str) -> Refusal:
    hint = f"an admin can grant it: permissions of queue {queue} with the verb {right} for user:{principal.name}"
    return Refusal(f"{principal.name} may not {_verb(right)} this: {why}", hint)


def _by_an_admin(principal: Principal, role: Role) -> str:
    return f"an admin can grant it: holdfast update settings --access {role}=user:{principal.name}"


def _named(principal: Principal) -> str:
    return " and ".join(principal.roles)


def _verb(right: Right) -> str:
    return "read the logs of" if right is Right.LOGS else right.value


def _word(kind: SubjectName) -> str:
    return kind.replace("-", " ")


def _plural(kind: SubjectName) -> str:
    word = _word(kind)
    singular = kind in {Subject.AUDIT, Subject.SETTINGS, Subject.SCHEDULING, Subject.SERVER}
    return f"the {word}" if singular else word[:-1] + "ies" if word.endswith(("cy", "ry")) else f"{word}s"
