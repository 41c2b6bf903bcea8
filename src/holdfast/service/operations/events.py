"""Reads the event log in parts, by filters, and the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.access.group import Grouped
from holdfast.domain.access.people import Role
from holdfast.domain.audit import Act, AuditEntry, Subject
from holdfast.domain.events.operators import OperatorActed
from holdfast.domain.events.registry import BY_NAME
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import refusal_of
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.events import EventFilter
from holdfast.service.access.asking import asks
from holdfast.service.operations.seeing import Seeing
from holdfast.service.refusals import record_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller, StoredAuditEntry
    from holdfast.domain.events.registry import StoredEvent
    from holdfast.ports.events import AuditStore
    from holdfast.ports.store import Store
    from holdfast.service.access.book import AccessBook

LARGEST_PART = 1000
TYPE_PREFIX = "dev.holdfast."
_FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in BY_NAME))


class EventPart(Struct, frozen=True):
    """Some events in order."""

    events: Sequence[StoredEvent]
    next_after: int
    """Where the next part begins; advances even if no event matched."""
    last: int
    """The newest event at the time of reading."""
    full: bool
    """Whether more may follow at once."""


class EventLog(Struct, frozen=True):
    """The event log."""

    store: Store
    access: AccessBook | None = None
    """Limits answers to what the caller may see."""

    @asks(Right.WATCH, Subject.JOB)
    def filter(
        self,
        caller: Caller,
        *,
        job: str | None = None,
        types: Sequence[str] = (),
        queue: str | None = None,
        job_set: str | None = None,
        group: str | None = None,
    ) -> EventFilter:
        """Make a filter from a caller's texts.

        Args:
            caller: The caller.
            job: A job's id, name or unique prefix.
            types: ``job.failed``, its long form ``dev.holdfast.job.failed.v1``, or a family such as ``job``.
            queue: A queue's name.
            job_set: A set's name or id, for its own events and those of its jobs.
            group: A group, for the events of its jobs; with a slash at its end, also of those below it.

        Raises:
            InvalidRequest: Types are unknown; with all of them.
            NotFound: The job or the set does not exist.
        """
        names = _read_types(types) if types else None
        grouped = None if group is None else Grouped.read(group)
        seeing = Seeing(self.store, self.access, caller)
        of_set = None if job_set is None else seeing.owner(JobSet, job_set)
        of_job = None if job is None else self.store.job(seeing.job(Right.WATCH, job)).id
        return EventFilter(of_job, names, queue, of_set, grouped)

    @asks(Right.WATCH, Subject.JOB)
    def part(self, caller: Caller, where: EventFilter, *, after: int, limit: int = LARGEST_PART) -> EventPart:
        """Read the events after a number."""
        last = self.store.last_event_seq()  # read first, so that the next query sees everything up to it
        acts = refusal_of(caller.principal, Right.WATCH, Subject.AUDIT) is None
        seeing = Seeing(self.store, self.access, caller)
        where = evolve(where, seen=seeing.readable(), acts=acts)
        events = seeing.events(self.store.events(after=after, limit=limit, where=where))
        events = events if acts else [*map(_without_origin, events)]
        full = len(events) == limit
        seen = events[-1].seq if events else after
        return EventPart(events, seen if full else max(seen, last, after), max(seen, last), full)


def _without_origin(stored: StoredEvent) -> StoredEvent:
    """Leave out the origin of an operator's request, which only readers of the audit log may see."""
    happened = stored.event
    if not isinstance(happened, OperatorActed):
        return stored
    return stored._replace(event=evolve(happened, origin="", request_id=""))


def _read_types(texts: Sequence[str]) -> frozenset[str]:
    names_read: set[str] = set()
    problems = []
    for text in texts:
        names = _names(text)
        names_read.update(names)
        if not names:
            problems.append(Problem("query.type", f"{text!r} is not an event type", allowed=(*_FAMILIES, *BY_NAME)))
    if problems:
        raise InvalidRequest(problems=problems)
    return frozenset(names_read)


def _names(text: str) -> set[str]:
    """Return the event types that a text names: one, a family, or none."""
    short = text.strip().lower().removeprefix(TYPE_PREFIX).removesuffix(".*")
    short, _, version = short.rpartition(".v") if ".v" in short else (short, "", "")
    if short in BY_NAME and version in {"", str(BY_NAME[short].version)}:
        return {short}
    return {name for name in BY_NAME if not version and name.startswith(f"{short}.")}


class Audit(Struct, frozen=True):
    """The audit log."""

    store: AuditStore

    @asks(Right.WATCH, Subject.AUDIT)
    def page(self, caller: Caller, *, after: int = 0, limit: int = LARGEST_PART) -> Sequence[StoredAuditEntry]:
        """List entries after a number, oldest first. Reading is recorded in the log itself, except for admins."""
        entries = self.store.audit(after=after, limit=limit)
        if Role.ADMIN not in caller.principal.roles:
            record_once(self.store, AuditEntry(caller, Act.READ, Subject.AUDIT, "audit"))
        return entries
