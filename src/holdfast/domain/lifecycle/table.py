"""What lifecycle tables are made of (BEP-1030).

Generic over the kind of entity, which brings its own statuses, those of its children, and the outcomes its handlers
can have.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Generic, TypeVar

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

S = TypeVar("S", bound=StrEnum)
"""The statuses of an entity."""
C = TypeVar("C", bound=StrEnum)
"""The statuses of its children."""


class EntityKind(StrEnum):
    """Kinds of entities that have a history; ids are unique per kind only."""

    ATTEMPT = "attempt"
    """Its id is ``<job id>/<number>``."""


class Outcome(StrEnum):
    """What happens to a handler's report; each kind of entity has some of these."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    """It failed, and nobody counts how often."""
    NEED_RETRY = "NEED_RETRY"
    EXPIRED = "EXPIRED"
    GIVE_UP = "GIVE_UP"
    SKIPPED = "SKIPPED"


JUDGED = frozenset({Outcome.SUCCESS, Outcome.NEED_RETRY, Outcome.EXPIRED, Outcome.GIVE_UP, Outcome.SKIPPED})
"""The outcomes of a kind whose failures are counted and whose time in a status is limited (``SchedulingResult``)."""


class TransitionStatus(Struct, Generic[S, C], frozen=True):
    """The statuses an outcome leads to; ``None`` leaves a status as it is."""

    status: S | None = None
    children: C | None = None
    """Of all children that are not over."""


class HandlerRow(Struct, Generic[S, C], frozen=True):
    """One handler: what it works on and where its outcomes lead."""

    name: str
    targets: frozenset[S]
    child_targets: frozenset[C] | None
    """Only entities with a child in one of these; ``None`` is no filter."""
    transitions: Mapping[Outcome, TransitionStatus[S, C]]
    """An outcome that is not among them changes nothing and is only recorded."""
    timeout_s: float | None = None
    """Time an entity may spend in the status before it is EXPIRED; ``None``: set for each entity, or never."""
    max_retries: int | None = 5
    """Number of failures in the status that are tried again; the next one is GIVE_UP. ``None`` is no limit."""


class Match(StrEnum):
    """How many children must be in the checked statuses; all three need at least one child."""

    ALL = "all"
    ANY = "any"
    NOT_ANY = "not_any"


class PromotionRow(Struct, Generic[S, C], frozen=True):
    """One promotion: entities move on because of their children's statuses, never because of their own work."""

    name: str
    targets: frozenset[S]
    check: frozenset[C]
    match: Match
    success: S
    expired: S | None = None
    """Where an entity that waits here too long goes: the way out by time alone."""
    timeout_s: float | None = None


class RequestRow(Struct, Generic[S], frozen=True):
    """A request, possible at any time: where it leads from each status; from any other, nowhere."""

    name: str
    moves: Mapping[S, S]


class Lifecycle(Struct, Generic[S, C], frozen=True):
    """All the moves of one kind of entity."""

    kind: EntityKind
    outcomes: frozenset[Outcome]
    """What its handlers' reports can become."""
    handlers: tuple[HandlerRow[S, C], ...]
    promotions: tuple[PromotionRow[S, C], ...] = ()
    """The first that applies is made."""
    requests: tuple[RequestRow[S], ...] = ()
