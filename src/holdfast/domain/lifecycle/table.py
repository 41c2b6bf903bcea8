"""The structure of lifecycle tables (BEP-1030).

Generic over the kind of entity, which brings its own statuses, those of its children, and the outcomes of its handlers.
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
    """Kinds of entities with a history; ids are unique within a kind."""

    ATTEMPT = "attempt"
    """Its id is ``<job id>/<number>``."""
    SESSION = "session"
    """Its id is ``<job id>/<retry count>``."""
    KERNEL = "kernel"
    """Its id is ``<job id>/<retry count>/<rank>``."""


class Outcome(StrEnum):
    """The outcome of a handler; each kind of entity uses some of these."""

    SUCCESS = "SUCCESS"
    FAILURE = "FAILURE"
    """It failed, in a kind whose failures are not counted."""
    NEED_RETRY = "NEED_RETRY"
    EXPIRED = "EXPIRED"
    GIVE_UP = "GIVE_UP"
    SKIPPED = "SKIPPED"


JUDGED = frozenset({Outcome.SUCCESS, Outcome.NEED_RETRY, Outcome.EXPIRED, Outcome.GIVE_UP, Outcome.SKIPPED})
"""The outcomes of a kind with counted failures and limited time in a status (``SchedulingResult``)."""


class TransitionStatus(Struct, Generic[S, C], frozen=True):
    """The statuses an outcome leads to; ``None`` leaves a status as it is."""

    status: S | None = None
    children: C | None = None
    """The status of all children that have not ended."""


class HandlerRow(Struct, Generic[S, C], frozen=True):
    """One handler: the statuses it works on, and where its outcomes lead."""

    name: str
    targets: frozenset[S]
    child_targets: frozenset[C] | None
    """It works only on entities with a child in one of these; ``None`` is no filter."""
    transitions: Mapping[Outcome, TransitionStatus[S, C]]
    """An outcome that is not listed is only recorded."""
    timeout_s: float | None = None
    """How long an entity may stay in the status before it is EXPIRED; ``None`` is set per entity, or never."""
    max_retries: int | None = 5
    """How many failures in the status are retried; the next one is GIVE_UP. ``None`` is no limit."""


class Match(StrEnum):
    """How many children must be in the checked statuses; each needs at least one child."""

    ALL = "all"
    ANY = "any"
    NOT_ANY = "not_any"


class PromotionRow(Struct, Generic[S, C], frozen=True):
    """One promotion: entities move because of their children's statuses, not because of their own work."""

    name: str
    targets: frozenset[S]
    check: frozenset[C]
    match: Match
    success: S
    expired: S | None = None
    """The status after waiting too long: the way out by time alone."""
    timeout_s: float | None = None


class RequestRow(Struct, Generic[S], frozen=True):
    """A request, possible at any time: its target from each status; from any other status it has no effect."""

    name: str
    moves: Mapping[S, S]


class Lifecycle(Struct, Generic[S, C], frozen=True):
    """All the moves of one kind of entity."""

    kind: EntityKind
    outcomes: frozenset[Outcome]
    """The possible outcomes of its handlers."""
    handlers: tuple[HandlerRow[S, C], ...]
    promotions: tuple[PromotionRow[S, C], ...] = ()
    """The first that applies is taken."""
    requests: tuple[RequestRow[S], ...] = ()
