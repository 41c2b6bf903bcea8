"""Reads and writes who has which role, and the permissions of queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.dialects.reading import shown
from holdfast.domain.access import Role
from holdfast.domain.access.grants import LONGEST_SUBJECT, Access, Permission, Right, Sight, can_be_named
from holdfast.domain.suggestion import closest

if TYPE_CHECKING:
    from enum import StrEnum

    from holdfast.dialects.reading import Fields

MOST_SUBJECTS = 1000
MOST_PERMISSIONS = 100
ROLES, OTHERS_SEE, PERMISSIONS = "access", "othersSee", "permissions"
_PREFIXES = ("user:", "group:")


def read_access(fields: Fields) -> Access:
    """Read ``access`` and ``othersSee``; what is missing stays as it is."""
    sight = fields.choice(OTHERS_SEE, Sight)
    part = fields.nested(ROLES)
    if part is None:
        return Access(None, sight)
    roles = tuple((role, names) for role in Role if (names := _read_subjects(part, role.value)))
    part.finish()
    return Access(roles, sight)


def write_access(access: Access) -> dict[str, Any]:
    """Write the roles and what others see, in full; they read back equal."""
    roles = {role.value: list(subjects) for role, subjects in access.roles or ()}
    return {ROLES: roles, OTHERS_SEE: (access.others_see or Sight.DETAILS).value}


def read_permissions(spec: Fields) -> tuple[Permission, ...]:
    """Read ``permissions`` of a queue."""
    permissions = []
    for part in spec.mappings(PERMISSIONS, most=MOST_PERMISSIONS):
        for name in ("subjects", "verbs"):
            if not part.has(name):
                part.problem(name, "is required")
        permissions.append(Permission(_read_subjects(part, "subjects"), _read_verbs(part)))
        part.finish()
    return tuple(permissions)


def write_permissions(permissions: tuple[Permission, ...]) -> list[dict[str, Any]]:
    """Write the permissions of a queue; they read back equal."""
    return [
        {"subjects": list(permission.subjects), "verbs": [*map(str, permission.verbs)]} for permission in permissions
    ]


def _read_verbs(part: Fields) -> tuple[Right, ...]:
    verbs = part.items("verbs", most=MOST_SUBJECTS) or []
    rights = [Right(value) for i, value in enumerate(verbs) if _is_one(part, f"verbs[{i}]", value, Right)]
    return tuple(dict.fromkeys(rights))


def _is_one(part: Fields, name: str, value: object, options: type[StrEnum]) -> bool:
    allowed = [option.value for option in options]
    if value in allowed:
        return True
    part.problem(name, f"{shown(value)} is not one of its values", allowed=allowed, hint=closest(value, allowed))
    return False


def _read_subjects(part: Fields, name: str) -> tuple[str, ...]:
    values = part.items(name, most=MOST_SUBJECTS) or []
    return tuple(dict.fromkeys(str(v) for i, v in enumerate(values) if _is_subject(part, f"{name}[{i}]", v)))


def _is_subject(part: Fields, name: str, value: object) -> bool:
    if not isinstance(value, str):
        part.mistyped(name, value, "user:NAME or group:NAME")
        return False
    prefix = next((prefix_allowed for prefix_allowed in _PREFIXES if value.startswith(prefix_allowed)), None)
    if prefix is None:
        hint = f"user:{value}" if value and ":" not in value else None
        part.problem(name, f"{shown(value)} must be user:NAME or group:NAME", hint=hint)
    elif len(value) > LONGEST_SUBJECT:
        part.problem(name, f"is {len(value)} characters long; at most {LONGEST_SUBJECT} are allowed")
    elif value == prefix or not can_be_named(value):
        part.problem(name, f"{shown(value)} has no name that somebody can have", hint="no spaces and no commas")
    else:
        return True
    return False
