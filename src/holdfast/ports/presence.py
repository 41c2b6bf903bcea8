"""Preconditions of an edit on whether its object exists, and the refusals, the same for every store and dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.terms.entries import POLICY
from holdfast.errors import AlreadyExists, NotFound, Problem, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from holdfast.domain.policy.model import RetryPolicy


def no_such(kind: str, name: str, existing: Iterable[str] = ()) -> NotFound:
    """Say that nothing of that kind has the name, and list the existing names."""
    problems = [Problem("name", f"{kind} {name!r} does not exist", tuple(sorted(existing)))]
    return NotFound(f"{kind} {name!r} does not exist", problems=problems)


def require_presence(kind: str, name: str, *, existing: Collection[str], create: bool | None) -> None:
    """Check the precondition ``create`` against the existing names.

    Raises:
        AlreadyExists: It exists, and must be new.
        NotFound: It does not exist, and must.
    """
    if create is True and name in existing:
        message = f"{kind} {name!r} exists already"
        raise AlreadyExists(message, problems=[Problem("name", message)], hint="update it instead")
    if create is False and name not in existing:
        raise no_such(kind, name, existing)


def require_revision(current: RetryPolicy | None, if_match: Collection[str] | None) -> None:
    """Check that a policy, if it exists, has a revision its editor knows.

    Raises:
        VersionConflict: It has another.
    """
    if current is not None and if_match is not None and str(current.revision) not in if_match:
        raise VersionConflict.of(POLICY.noun, current.name, current=str(current.revision))
