"""Preconditions of edits: whether the entry exists, and in which revision. The same for stores and dry runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.terms.entries import POLICY
from holdfast.errors import AlreadyExists, NotFound, Problem, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.domain.policy.model import RetryPolicy


def no_such(kind: str, name: str, existing: Iterable[str] = ()) -> NotFound:
    """Return the error for a name that does not exist, with the existing names."""
    problems = [Problem("name", f"{kind} {name!r} does not exist", tuple(sorted(existing)))]
    return NotFound(f"{kind} {name!r} does not exist", problems=problems)


def require_presence(kind: str, name: str, *, existing: Collection[str], create: bool | None) -> None:
    """Check the precondition ``create`` against the existing names.

    Raises:
        AlreadyExists: It must be new, and exists.
        NotFound: It must exist, and does not.
    """
    if create is True and name in existing:
        message = f"{kind} {name!r} exists already"
        raise AlreadyExists(message, problems=[Problem("name", message)], hint="update it instead")
    if create is False and name not in existing:
        raise no_such(kind, name, existing)


def require_revision(current: RetryPolicy | None, if_match: Collection[str] | None) -> None:
    """Check that a policy, if it exists, has a revision that its editor knows.

    Raises:
        VersionConflict: It has another.
    """
    if current is not None and if_match is not None and str(current.revision) not in if_match:
        raise VersionConflict.of(POLICY.noun, current.name, current=str(current.revision))
