"""Says which groups get rights that are no groups of the machine, so that nobody has them by these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.domain.access.grants import Access, Permissions

_GROUP = "group:"
_PREFIXED = ":"
"""In every name that does not come from the operating system."""


def strange_in_roles(access: Access, is_group: Callable[[str], bool]) -> list[Problem]:
    """Say it of the settings' roles; ``is_group`` says whether the machine knows a group, and may take a while."""
    return _strange(((f"access.{role}", subjects) for role, subjects in access.roles or ()), is_group)


def strange_in_permissions(permissions: Permissions, is_group: Callable[[str], bool]) -> list[Problem]:
    """Say it of a queue's permissions."""
    places = (
        (f"spec.permissions[{number}].subjects", permission.subjects) for number, permission in enumerate(permissions)
    )
    return _strange(places, is_group)


def _strange(places: Iterable[tuple[str, tuple[str, ...]]], is_group: Callable[[str], bool]) -> list[Problem]:
    hint = "it counts as soon as there is one; groups of an issuer have its prefix, as in group:oidc:NAME"
    return [
        Problem(f"{place}[{number}]", f"there is no group {name!r} on the server's machine", hint=hint)
        for place, subjects in places
        for number, subject in enumerate(subjects)
        if subject.startswith(_GROUP) and _PREFIXED not in (name := subject.removeprefix(_GROUP)) and not is_group(name)
    ]
