"""The kinds of entries that operators write, each with its class, and the preconditions of their edits.

For stores and operations, and the preconditions for dry runs, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from holdfast.domain.access.grants import NOBODY
from holdfast.domain.category import FailureCategory
from holdfast.domain.job import Queue
from holdfast.domain.notifier import Notifier
from holdfast.domain.policy.model import Action, RetryPolicy, Rule
from holdfast.domain.record import Struct
from holdfast.domain.terms import entries
from holdfast.domain.terms.projects import (
    DEFAULT_DOMAIN,
    DEFAULT_GROUP,
    DEFAULT_IMAGE,
    Domain,
    Image,
    KeyPair,
    ResourceGroup,
)
from holdfast.domain.workloads.spec import DEFAULT_QUEUE
from holdfast.errors import AlreadyExists, NotFound, Problem, VersionConflict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from holdfast.domain.terms.entries import EntryInfo


class Entry(Protocol):
    """An entry that operators write under a name."""

    @property
    def name(self) -> str:
        """Return its name, unique among entries of its kind."""


E = TypeVar("E", bound=Entry)


class EntryKind(Struct, Generic[E], frozen=True):
    """One kind of entry."""

    info: EntryInfo
    model: type[E]
    stand_in: Callable[[str], E | None] = lambda _: None
    """Makes the stand-in for an entry that cannot be read, so that the others stay in force."""
    default: E | None = None
    """An entry that exists without being written; it can be changed, but not deleted."""


def _holding(name: str) -> RetryPolicy:
    hold = Rule(Action.HOLD, "unreadable", hold_reason=f"retry policy {name!r} cannot be read; write it again")
    return RetryPolicy(name, (hold,))


CATEGORY = EntryKind(entries.CATEGORY, FailureCategory, lambda name: FailureCategory(name, ()))
POLICY = EntryKind(entries.POLICY, RetryPolicy, _holding)
NOTIFIER = EntryKind(entries.NOTIFIER, Notifier)
DOMAIN = EntryKind(entries.DOMAIN, Domain, lambda name: Domain(name, active=False), Domain(DEFAULT_DOMAIN))
QUEUE = EntryKind(entries.QUEUE, Queue, lambda name: Queue(name, paused=True, permissions=NOBODY), Queue(DEFAULT_QUEUE))
RESOURCE_GROUP = EntryKind(
    entries.RESOURCE_GROUP,
    ResourceGroup,
    lambda name: ResourceGroup(name, active=False),
    ResourceGroup(DEFAULT_GROUP),
)
IMAGE = EntryKind(entries.IMAGE, Image, default=DEFAULT_IMAGE)
KEYPAIR = EntryKind(entries.KEYPAIR, KeyPair)


def kind_of(info: EntryInfo) -> EntryKind[Any]:
    """Return the kind with this description."""
    return _KINDS[info]


def kind_of_entry(entry: E) -> EntryKind[E]:
    """Return the kind of an entry."""
    kinds = map(kind_of, entries.ENTRIES.values())
    return next(kind for kind in kinds if kind.model is type(entry))


_KINDS: dict[EntryInfo, EntryKind[Any]] = {
    kind.info: kind for kind in (CATEGORY, POLICY, NOTIFIER, DOMAIN, QUEUE, RESOURCE_GROUP, IMAGE, KEYPAIR)
}


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
        raise VersionConflict.of(entries.POLICY.noun, current.name, current=str(current.revision))
