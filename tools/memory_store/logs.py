"""The event log and the audit log in memory; writers must hold the store's lock."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import TYPE_CHECKING

from holdfast.domain.audit import StoredAuditEntry
from holdfast.domain.events import NodeLost, OperatorActed, StoredEvent
from holdfast.ports.events import EVERYTHING
from holdfast.ports.store import RECENT_EVENTS
from tools.memory_store.jobs import is_seen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from threading import RLock

    from holdfast.domain.audit import AuditedChange, AuditEntry
    from holdfast.domain.events import EventRecord
    from holdfast.domain.workloads.base import Workload
    from holdfast.ports.events import EventFilter
    from tools.memory_store.jobs import JobTable


class MemoryLogStore:
    """Both logs; a sequence number is an index in a list."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Begin empty."""
        self._lock = lock
        self._jobs_told_of = jobs
        self._events: list[StoredEvent] = []
        self._audit: list[StoredAuditEntry] = []
        self._entries = count(1)
        self._by_job: Counter[str] = Counter()
        self._owners: dict[int, Workload] = {}

    def append_events(self, records: Iterable[EventRecord]) -> None:
        """Append events."""
        for job_id, at, event, group, owner in records:
            number = None
            if job_id is not None:
                self._by_job[job_id] += 1
                number = self._by_job[job_id]
            self._events.append(StoredEvent(len(self._events) + 1, job_id, number, at, event, group))
            if owner is not None:
                self._owners[len(self._events)] = owner

    def append_audited(self, audited: Iterable[AuditedChange]) -> None:
        """Append the audit entries of operators' actions."""
        for change in audited:
            self.append_events(change.records)
            self._audit.append(StoredAuditEntry(next(self._entries), change.entry))

    def events(self, *, after: int = 0, limit: int, where: EventFilter = EVERYTHING) -> Sequence[StoredEvent]:
        """Read the oldest events with ``seq > after``, in order."""
        with self._lock:
            found: list[StoredEvent] = []
            for event in self._events[max(0, after) :]:
                if len(found) == limit:
                    break
                if self._matches(event, where):
                    found.append(event)
            return found

    def _matches(self, event: StoredEvent, where: EventFilter) -> bool:
        unasked = where.types is not None and event.type.name not in where.types
        if unasked or not (where.acts or event.job_id is not None or not isinstance(event.event, OperatorActed)):
            return False
        if where.group is not None and not where.group.holds(event.group):
            return False
        if event.job_id is None:
            own = where.job_set in {None, getattr(event.event, "job_set", None)}
            owner = self._owners.get(event.seq)
            seen = where.seen is None or (owner is not None and is_seen(owner, where.seen))
            return own and seen and (where.job_id, where.queue) == (None, None)
        job = self._jobs_told_of.by_id.get(event.job_id)  # a job's events are deleted with the job
        if job is None or where.job_set not in {None, job.child.set_id if job.child else None}:
            return False
        if not is_seen(job, where.seen):
            return False
        return where.job_id in {None, job.id} and where.queue in {None, job.queue}

    def recent_losses(self) -> Sequence[StoredEvent]:
        """Return the events of lost nodes among the newest."""
        with self._lock:
            return [event for event in self._events[-RECENT_EVENTS:] if isinstance(event.event, NodeLost)]

    def last_event_seq(self) -> int:
        """Return the sequence number of the newest event, 0 before the first."""
        with self._lock:
            return len(self._events)

    def record(self, entry: AuditEntry) -> None:
        """Append the entry of a refusal, which goes with no other write."""
        with self._lock:
            self._audit.append(StoredAuditEntry(next(self._entries), entry))

    def delete_audit(self, *, before: float, limit: int) -> int:
        """Forget entries of the audit log from before that time, among the ``limit`` oldest; returns how many."""
        with self._lock:
            old = {one.seq for one in self._audit[:limit] if one.entry.caller.at < before}
            self._audit = [one for one in self._audit if one.seq not in old]
            return len(old)

    def audit(self, *, after: int = 0, limit: int) -> Sequence[StoredAuditEntry]:
        """Read the oldest entries with ``seq > after``, in order."""
        with self._lock:
            return [one for one in self._audit if one.seq > after][:limit]
