"""Acts on users' requests and reconciles workloads of every kind; the failure of one does not affect the others."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.readable import read_each, require_set
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import WorkloadQuarantined, WorkloadReleased
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, RUN_TERMINAL, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import GANG, UNREAD
from holdfast.domain.workloads.base import Quarantined, Workload
from holdfast.domain.workloads.family import ChildrenEnd, has_ended, why_children_end
from holdfast.domain.workloads.gang.endings import cancelled, cancelled_while_pending
from holdfast.errors import Conflict, HoldfastError, Internal, Unavailable, UnreadableSpec
from holdfast.ports.requests import OF_DEVICES, Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.controller.kind import Kind, OwnerKind
    from holdfast.controller.nodes.cordons import Cordons
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.ports.store import ControllerStore


_LONGEST_MESSAGE = 500
_HAS_BEGUN = "an attempt at it has begun, which only the start of a server takes in"
_log = logging.getLogger(__name__)


class Quarantine:
    """The workloads that are left alone because handling them failed, by id.

    An exception while a workload is restored, reconciled, placed or acted on, while its orders are written or its
    reports are taken in, is a bug in Holdfast or corrupt stored data. The workload is then left alone, and says so,
    until a request about it arrives or a new controller starts. Reports about its programs are still recorded.
    """

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._by_key: dict[str, Quarantined] = {}

    def __len__(self) -> int:
        return len(self._by_key)

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def restore(self, stored: Mapping[str, Quarantined], now: float) -> None:
        """Release what the last controller quarantined: each is tried again."""
        for key, entry in stored.items():
            if key not in self._by_key:
                self._released(entry, now)

    def attempt(self, kind: str, key: str, now: float, doing: str, call: Callable[[], None]) -> None:
        """Handle one workload unless it is quarantined; quarantine it if that fails."""
        if key in self._by_key:
            return
        try:  # Written out, without a further call, because it runs several times for each job.
            call()
        except Unavailable:
            raise  # A failure of the store affects all workloads.
        except Exception as error:  # noqa: BLE001 - any bug with this workload
            self._failed(kind, key, now, doing, error)

    def attempt_anyway(self, kind: str, key: str, now: float, doing: str, call: Callable[[], None]) -> bool:
        """Handle one workload even if it is quarantined; if that fails, quarantine it and return False."""
        try:
            call()
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            if key not in self._by_key:
                self._failed(kind, key, now, doing, error)
            return False
        return True

    def attempt_to_take_in(self, kind: str, key: str, now: float, call: Callable[[], None]) -> None:
        """Take in a workload; if that fails, nothing of it stays in memory."""
        self.attempt(kind, key, now, "taking it in", call)
        if key in self._by_key:
            self._state.drop(key)

    def attempt_all(
        self, kind: str, keys: Iterable[str], now: float, doing: str, call: Callable[[list[str], float], None]
    ) -> None:
        """Handle many workloads at once; if that fails, handle them one by one."""
        batch = [key for key in keys if key not in self._by_key] if self._by_key else list(keys)
        if not batch:
            return
        try:
            call(batch, now)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - reported once the workload is known
            for key in batch:
                self.attempt(kind, key, now, doing, partial(call, [key], now))

    def release(self, key: str, now: float) -> None:
        """Release a workload from quarantine, if it is there."""
        entry = self._by_key.pop(key, None)
        if entry is not None:
            self._released(entry, now)
            active = self._state.active.get(key)
            if active is not None:
                self._state.tell_again(active)
            if entry.kind != UNREAD:
                self._state.queue.add(entry.kind, key)

    def _failed(self, kind: str, key: str, now: float, doing: str, error: Exception) -> None:
        _log.error("the %s %s was quarantined: %s", kind, key, doing, exc_info=error)
        self._put(Quarantined(key, kind, now, f"{doing}: {type(error).__name__}: {error}"[:_LONGEST_MESSAGE]))

    def _put(self, quarantined: Quarantined) -> None:
        self._by_key[quarantined.id] = quarantined
        self._state.quarantine(quarantined)
        event = WorkloadQuarantined(quarantined.id, quarantined.kind, quarantined.message)
        self._state.emit(EventRecord(None, quarantined.since, event))

    def _released(self, entry: Quarantined, now: float) -> None:
        self._state.release(entry.id)
        self._state.emit(EventRecord(None, now, WorkloadReleased(entry.id, entry.kind)))


def refuse(error: HoldfastError) -> None:
    """Raise the error of a record that cannot be read."""
    raise error


_MOST_TURNS = 32
"""More rounds than anything needs to settle: a decision, the jobs that go, those that come, their states."""


class Reconciler:
    """Works off the queue, children before their owners."""

    def __init__(self, state: ControllerState, kinds: Sequence[Kind], quarantine: Quarantine) -> None:
        """``kinds`` come in order, children first."""
        self._queue = state.queue
        self._quarantine = quarantine
        self._kinds = kinds

    def run(self, now: float) -> None:
        """Reconcile what is due and what waits, within the pace of each kind."""
        self._queue.wake_due(now)
        for kind in self._kinds:
            keys = self._queue.take(kind.name, least=kind.pace.least, most=kind.pace.most)
            turns = 0
            while keys:
                self._quarantine.attempt_all(kind.name, keys, now, "reconciling it", kind.reconcile)
                turns += 1
                keys = self._queue.take_new(kind.name) if turns < _MOST_TURNS else []
        self.run_changed(now)

    def run_changed(self, now: float) -> None:
        """Reconcile what has just changed, until nothing more changes."""
        for _ in range(_MOST_TURNS):
            if not self._queue.has_new():
                return
            for kind in self._kinds:
                if keys := self._queue.take_new(kind.name):
                    self._quarantine.attempt_all(kind.name, keys, now, "reconciling it", kind.reconcile)


class Requests:
    """Routes requests to the kinds of their targets."""

    def __init__(
        self,
        state: ControllerState,
        store: ControllerStore,
        owners: Iterable[OwnerKind],
        quarantine: Quarantine,
        cordons: Cordons,
    ) -> None:
        self._cordons = cordons
        self._state = state
        self._store = store
        self._owners = {kind.name: kind for kind in owners}
        self._quarantine = quarantine

    def take(self, requests: Sequence[Request], now: float) -> None:
        """Act on requests; this tick's commit removes them."""
        for request in requests:
            keys: Iterable[str] = request.targets
            if request.kind is RequestKind.SUBMIT:
                keys = self._admit(request.targets, now)
                self._end_late_children(request.targets, now)
            elif request.kind in OF_DEVICES:
                self._cordons.ask(request, now)
                keys = ()
            for key in keys:
                self._ask(request, key, now)
            self._state.handled(request.id)

    def end_children(self, now: float) -> None:
        """Have the children of ended parents end, in the commit that stores the end."""
        while over := self._state.families.take_over():
            for parent in over.values():
                reason = why_children_end(self._rule_of(parent), parent)
                for key in self._state.families.below(parent.id) if reason else ():
                    self._end_child(key, reason, now)

    def _rule_of(self, parent: Job) -> ChildrenEnd:
        try:
            return self._state.load_spec(parent.spec).children
        except UnreadableSpec:
            return ChildrenEnd.WITH_JOB

    def _end_child(self, key: str, reason: str, now: float) -> None:
        child = self._state.jobs.get(key)
        if child is None or not child.cancel_requested:
            self._ask(Request(RequestKind.CANCEL, (key,), now, reason=reason), key, now)

    def _end_late_children(self, keys: Iterable[str], now: float) -> None:
        """End children that were submitted after their parents' end: nobody else would."""
        jobs_known = self._state.jobs
        jobs = (jobs_known[key] for key in keys if key in jobs_known)
        late = {job.id: job.parent for job in jobs if job.parent and job.parent not in jobs_known}
        if not late:
            return
        parents, unread = dict[str, "Job"](), set[str]()
        for parents_read in read_each(self._store.jobs_by_id, [*{*late.values()}], lambda key, _: unread.add(key)):
            parents.update((job.id, self._state.changes.jobs.get(job.id, job)) for job in parents_read)
        for key, parent in late.items():
            ended = parents.get(parent)
            if parent not in unread and (ended is None or ended.terminal):  # Otherwise it is left alone for now.
                self._end_child(key, has_ended(ended), now)

    def _admit(self, keys: Sequence[str], now: float) -> Iterable[str]:
        """Take in submitted jobs; returns the ids of other workloads."""
        unknown = dict.fromkeys(key for key in keys if key not in self._state.jobs)

        def damaged(key: str, error: HoldfastError) -> None:
            self._quarantine.attempt_to_take_in(UNREAD, key, now, partial(refuse, error))
            del unknown[key]

        for jobs in read_each(self._store.jobs_by_id, list(unknown), damaged) if unknown else ():
            for job in jobs:
                del unknown[job.id]
                if not job.terminal:
                    self._quarantine.attempt_to_take_in(UNREAD, job.id, now, partial(self._take_in, job))
        return unknown

    def _take_in(self, job: Job) -> None:
        if job.state is JobState.RUNNING:
            raise Conflict(_HAS_BEGUN)
        require_set(job, self._store)
        self._state.take_in(job)

    def _ask(self, request: Request, key: str, now: float) -> None:
        if key in self._quarantine:
            self._quarantine.release(key, now)
            self._admit([key], now)
        doing = f"acting on {request.kind.value}"
        if key in self._quarantine and request.kind is RequestKind.CANCEL:
            self._quarantine.attempt_anyway(UNREAD, key, now, doing, partial(self._end, key, request, now))
            return
        kind: Kind | None = next((target for target in self._owners.values() if key in target.works), None)
        is_newer = key in self._state.changes.jobs
        if kind is None and not is_newer and request.kind is not RequestKind.SUBMIT:
            self._admit([key], now)  # The last commit submitted this job, and nobody has taken it in yet.
        if request.kind is RequestKind.RETRY and key not in self._state.jobs:
            self._quarantine.attempt(UNREAD, key, now, doing, partial(self._reopen, key))
        job = self._state.jobs.get(key)
        if job is not None:
            kind = self._state.kinds[job.kind]
            if request.kind is RequestKind.REPRIORITIZE:
                change = partial(self._reprioritize, job, int(request.payload), now)
                self._quarantine.attempt(kind.name, key, now, doing, change)
        if kind is None:  # It is not in memory, because it is new or has ended.
            self._quarantine.attempt(UNREAD, key, now, doing, partial(self._ask_stored, request, key, now))
        else:
            self._quarantine.attempt(kind.name, key, now, doing, partial(kind.ask, request, key, now))

    def _reprioritize(self, job: Job, priority: int, now: float) -> None:
        if job.priority != priority:
            self._state.put_job(evolve(job, priority=priority, updated_at=now))
            self._state.schedule_needed = True

    def _reopen(self, key: str) -> None:
        """Take in an ended job; its next attempt gets a number that its history does not contain."""
        changes = self._state.changes
        for stored in self._store.jobs_by_id([key]):
            job = changes.jobs.get(key, stored)
            if job.terminal and job.kind == GANG:
                steps = [*self._store.history(key), *changes.history.values()]
                numbers = [int(step.id.partition("/")[2]) for step in steps if step.job_id == key]
                self._state.reopen(job, max(job.attempt, *numbers, 0))

    def _ask_stored(self, request: Request, key: str, now: float) -> None:
        try:
            for workload in self._store.workloads_by_id(Workload, [key]).values():
                kind = self._owners.get(workload.kind)
                if kind is not None:
                    kind.ask(request, key, now)
        except Internal:
            if request.kind is not RequestKind.DELETE:
                raise
            self._delete(key, request, now)

    def _delete(self, key: str, request: Request, now: float) -> None:
        """Delete an unreadable workload that owns jobs: cancel its jobs one by one, and forget it."""
        left = self._store.left_to_end(key)
        for job in left.jobs:
            if job.of_set is None:  # A task of an array can do without it.
                self._ask(evolve(request, kind=RequestKind.CANCEL, targets=(job.id,)), job.id, now)
            else:
                self._end(job.id, request, now)
        if left.owner is not None:
            self._state.forget_workload(key)
            self._owners[left.owner.kind].tell(left.owner, "deleted", now)

    def _end(self, key: str, request: Request, now: float) -> None:
        """Cancel a job that cannot be read completely; its runs are stopped already."""
        for job in self._store.left_to_end(key).jobs:
            runs = (run for run in self._store.runs(key) if run.status not in RUN_TERMINAL)
            attempts = (
                open_attempt
                for open_attempt in self._store.attempts(key)
                if open_attempt.status not in ATTEMPT_TERMINAL
            )
            ended = cancelled_while_pending(job, request.cancel_reason, now)
            self._state.end_unread(
                job,
                ended,
                [cancelled(attempt, job.reason, now, started=True) for attempt in attempts],
                [evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now) for run in runs],
            )
            self._quarantine.release(key, now)
            for kind in self._state.kinds:  # The release has queued it.
                self._state.queue.discard(kind, key)
            if job.child is not None and job.of_set is None:
                self._quarantine.release(job.child.set_id, now)  # An array may have waited for exactly this.
                for owner in self._owners.values():
                    owner.see_gang(ended)
