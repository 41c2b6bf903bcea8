"""Reading the event log and the audit log.

Both are append-only, each entry written in the transaction it reports. Sequence numbers grow in the order of commits:
a reader that has seen ``seq`` is never shown a smaller one that it has not seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped
    from holdfast.domain.audit import AuditEntry, StoredAuditEntry
    from holdfast.domain.events.registry import StoredEvent


class EventFilter(Struct, frozen=True):
    """Which events to read; every field that is set must hold."""

    job_id: str | None = None
    types: frozenset[str] | None = None
    """Names of ``domain.events.REGISTRY``."""
    queue: str | None = None
    """Events of this queue's jobs."""
    job_set: str | None = None
    """Events of the set of this id and of its jobs."""
    group: Grouped | None = None
    """Events of jobs, arrays and job sets in these groups."""
    seen: Seen | None = None
    """Only events of work that the caller may see; ``None``: all."""
    acts: bool = True
    """Also acts of operators; requests for a job are among its events anyway."""


EVERYTHING = EventFilter()


class EventStore(Protocol):
    """The event log."""

    def events(self, *, after: int = 0, limit: int, where: EventFilter = EVERYTHING) -> Sequence[StoredEvent]:
        """Read the oldest events with ``seq > after``, in order."""

    def last_event_seq(self) -> int:
        """Return the sequence number of the newest event, 0 before the first; cheap."""


class AuditStore(Protocol):
    """The audit log."""

    def record(self, entry: AuditEntry) -> None:
        """Append the entry of a refusal, which belongs to no other write."""

    def audit(self, *, after: int = 0, limit: int) -> Sequence[StoredAuditEntry]:
        """Read the oldest entries with ``seq > after``, in order."""
