"""Reads and writes the permissions of Armada's queues: owners, who have all verbs, and explicit permissions.

Source: ``NewQueue`` and ``ToAPI`` of upstream's client: the owners are a first permission, and come back as one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.native.access import MOST_PERMISSIONS, MOST_SUBJECTS
from holdfast.domain.access.grants import LONGEST_SUBJECT, Permission, Right, can_be_named
from holdfast.domain.suggestion import closest
from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

USER_OWNERS, GROUP_OWNERS, PERMISSIONS = "userOwners", "groupOwners", "permissions"
_OF_OWNERS = (Right.SUBMIT, Right.CANCEL, Right.PREEMPT, Right.REPRIORITIZE, Right.WATCH)
NOBODY = (Permission((), ()),)
"""The owner of a queue whose owners were all removed: a queue without permissions would be open to every user."""
_PREFIXES = {"User": "user:", "Group": "group:"}


def read_permissions(value: Mapping[str, Any], problems: list[Problem]) -> tuple[Permission, ...]:
    """Read the owners and permissions of a queue.

    Args:
        value: The queue as JSON.
        problems: Where to add problems.
    """
    users, groups, written = (value.get(name) or () for name in (USER_OWNERS, GROUP_OWNERS, PERMISSIONS))
    places = [(USER_OWNERS, users, MOST_SUBJECTS), (GROUP_OWNERS, groups, MOST_SUBJECTS)]
    places += [(PERMISSIONS, written, MOST_PERMISSIONS)]
    long = [_too_many(path, items, most) for path, items, most in places if len(items) > most]
    if long:
        problems += long
        return ()
    owners = [("User", f"{USER_OWNERS}[{number}]", name) for number, name in enumerate(users)]
    owners += [("Group", f"{GROUP_OWNERS}[{number}]", name) for number, name in enumerate(groups)]
    first = [Permission(_subjects(owners, problems), _OF_OWNERS)] if owners else []
    return (*first, *(_read_permission(number, permission, problems) for number, permission in enumerate(written)))


def _read_permission(number: int, written: Mapping[str, Any], problems: list[Problem]) -> Permission:
    path, subjects = f"{PERMISSIONS}[{number}]", written.get("subjects") or ()
    if len(subjects) > MOST_SUBJECTS:
        problems.append(_too_many(f"{path}.subjects", subjects, MOST_SUBJECTS))
        return Permission((), ())
    named = []
    for index, subject in enumerate(subjects):
        kind = str(subject.get("kind") or "")
        if kind in _PREFIXES:
            named.append((kind, f"{path}.subjects[{index}].name", str(subject.get("name") or "")))
            continue
        message = f"failed to map subjects. failed to map kind with index: {index}. invalid kind value: {kind}"
        detail = f"failed to map permission with index: {number}. {message}"
        problems.append(
            Problem(f"{path}.subjects[{index}].kind", detail, tuple(_PREFIXES), hint=closest(kind, _PREFIXES))
        )
    return Permission(_subjects(named, problems), _verbs(path, written.get("verbs") or (), problems))


def _subjects(named: Iterable[tuple[str, str, str]], problems: list[Problem]) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for kind, path, name in named:
        subject = _PREFIXES[kind] + name
        if not name or not can_be_named(subject) or len(subject) > LONGEST_SUBJECT:
            hint = f"no spaces, no commas, and at most {LONGEST_SUBJECT - len(_PREFIXES[kind])} characters"
            problems.append(Problem(path, f"{name[:LONGEST_SUBJECT]!r} is no name that somebody can have", hint=hint))
        names[subject] = None
    return tuple(names)


def _verbs(path: str, verbs: Sequence[str], problems: list[Problem]) -> tuple[Right, ...]:
    allowed = [right.value for right in Right]
    for index, verb in enumerate(verbs):
        if verb not in allowed:
            message = f"{verb[:LONGEST_SUBJECT]!r} is not one of the verbs"
            problems.append(Problem(f"{path}.verbs[{index}]", message, tuple(allowed), hint=closest(verb, allowed)))
    return tuple(dict.fromkeys(Right(verb) for verb in verbs if verb in allowed))


def _too_many(path: str, items: Sequence[object], most: int) -> Problem:
    return Problem(path, f"has {len(items)} items; at most {most} are allowed")


def write_permissions(permissions: Iterable[Permission]) -> list[dict[str, Any]]:
    """Write the permissions of a queue; they read back equal."""
    kinds = {prefix: kind for kind, prefix in _PREFIXES.items()}
    return [
        {
            "subjects": [
                {"kind": kinds[prefix + ":"], "name": name}
                for prefix, _, name in (subject.partition(":") for subject in permission.subjects)
            ],
            "verbs": [*map(str, permission.verbs)],
        }
        for permission in permissions
    ]
