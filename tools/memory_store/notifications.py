"""The outbox in memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from holdfast.domain.audit import Act, Subject, on_notification
from holdfast.domain.job import Job, JobState
from holdfast.domain.notifications.notification import DeliveryState, what_of
from holdfast.domain.record import evolve
from holdfast.domain.rights import Thing
from holdfast.domain.workloads.base import Owner
from holdfast.storage.rules import no_such_notification, settled_events
from tools.memory_store.catalogue import MemoryCatalogueStore

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from threading import RLock

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.notifications.notification import Notification
    from holdfast.ports.notifications import NotificationFilter
    from tools.memory_store.jobs import JobTable


class MemoryNotificationStore(MemoryCatalogueStore):
    """The part of the store that tells people."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Begin empty."""
        super().__init__(lock, jobs)
        self._outbox_lock = lock
        self._told_about = jobs
        self._outbox: dict[str, Notification] = {}
        self._told = 0

    def append_notifications(self, new: Iterable[Notification]) -> None:
        """Append what is new, under the store's lock."""
        for one in new:
            if one.id not in self._outbox:
                self._told += 1
                self._outbox[one.id] = evolve(one, seq=self._told)

    def _waiting(self, but: Collection[str], not_to: Collection[str]) -> list[Notification]:
        with self._outbox_lock:
            waiting = [one for one in self._outbox.values() if one.state is DeliveryState.WAITING]
        waiting = [one for one in waiting if one.id not in but and one.to not in not_to]
        return sorted(waiting, key=lambda one: (one.next_at, one.seq))

    def due_notifications(
        self, now: float, *, limit: int, but: Collection[str] = (), not_to: Collection[str] = ()
    ) -> Sequence[Notification]:
        """List those that wait and are due, the earliest first, without some ids and some notifiers."""
        return [one for one in self._waiting(but, not_to) if one.next_at <= now][:limit]

    def next_notification_at(self, *, but: Collection[str] = (), not_to: Collection[str] = ()) -> float | None:
        """Return when the next that waits is due, without some ids and notifiers; ``None`` if none does."""
        return next((one.next_at for one in self._waiting(but, not_to)), None)

    def settle_notifications(self, changed: Sequence[Notification]) -> Sequence[Notification]:
        """Store what became of tries, of those that still wait as they did then."""
        stored = []
        with self._outbox_lock:
            for one in changed:
                before = self._outbox.get(one.id)
                if before is not None and (before.state, before.since) == (DeliveryState.WAITING, one.since):
                    self._outbox[one.id] = evolve(one, seq=before.seq)
                    stored.append(one)
            self.append_events(settled_events(stored))
        return stored

    def notification(self, notification_id: str) -> Notification:
        """Find one by its id."""
        with self._outbox_lock:
            if notification_id not in self._outbox:
                raise no_such_notification(notification_id)
            return self._outbox[notification_id]

    def notifications(self, where: NotificationFilter, *, after: int = 0, limit: int) -> Sequence[Notification]:
        """List them in order of commits, those with ``seq > after``."""
        with self._outbox_lock:
            found = [
                one
                for one in self._outbox.values()
                if one.seq > after
                and where.state in {None, one.state}
                and where.to in {None, one.to}
                and where.about in {None, one.report.id}
                and where.id in {None, one.id}
                and (where.of is None or self._is_about_work_of(where.of, one.report.id))
            ]
        return found[:limit]

    def _is_about_work_of(self, who: Principal, about: str) -> bool:
        table = self._told_about
        one = table.by_id.get(about) or table.workloads.get(about)
        if not isinstance(one, Job | Owner):
            return False
        return Thing(Subject.JOB, "", one.submitted_by, one.submitter_uid).is_own(who)

    def replay_notifications(self, ids: Sequence[str], now: float, *, by: Caller | None = None) -> int:
        """Have those that are delivered or given up tried again under their ids; returns how many."""
        done = 0
        with self._outbox_lock:
            for key in ids:
                one = self._outbox.get(key)
                if one is not None and one.state is not DeliveryState.WAITING:
                    self._outbox[key] = one.replayed(now)
                    change = on_notification(by, Act.REPLAY, key)
                    self.append_audited([change] if change is not None else [])
                    done += 1
        return done

    def delete_notifications(self, *, settled_before: float, limit: int) -> int:
        """Forget up to ``limit`` that were delivered or given up before; returns how many."""
        with self._outbox_lock:
            settled = [(key, one.settled_at) for key, one in self._outbox.items()]
            old = [key for key, at in settled if at is not None and at < settled_before][:limit]
            for key in old:
                del self._outbox[key]
        return len(old)

    def count_notifications(self) -> Mapping[str, int]:
        """Count them by state."""
        with self._outbox_lock:
            return Counter(one.state.value for one in self._outbox.values())

    def causes_of(self, owner: str) -> Mapping[str, int]:
        """Count the failed jobs of a workload by what their last attempts failed of (``what_of``)."""
        found: Counter[str] = Counter()
        with self._outbox_lock:
            for job in self._told_about.by_id.values():
                if job.child is not None and job.child.set_id == owner and job.state is JobState.FAILED:
                    attempt = self._told_about.attempts.get((job.id, job.attempt))
                    found[what_of(None if attempt is None else attempt.failure)] += 1
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))
