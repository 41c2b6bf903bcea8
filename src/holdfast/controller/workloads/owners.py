"""Manages workloads that own jobs, of every kind: what differs between kinds is in their rules, the rest is here.

The result of one look is one commit: the workload's state, its decisions, and the jobs ordered.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, assert_never

from holdfast.compiled.codec import load_change
from holdfast.compiled.workloads import needs_of
from holdfast.controller.kind import ForEach, Pace
from holdfast.controller.workloads.memory import Work
from holdfast.controller.workloads.submissions import ChildSubmitter
from holdfast.domain.notifications.notification import of_owner
from holdfast.domain.record import Struct, evolve
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.base import Owner
from holdfast.domain.workloads.children import (
    Child,
    ChildPhase,
    CreateChild,
    DeleteChild,
    Forget,
    Order,
    ResizeChild,
    ResumeChild,
    SuspendChild,
    child_of,
    child_of_gang,
)
from holdfast.ports.requests import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.controller.kind import JobKind
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork
    from holdfast.domain.job import Job
    from holdfast.domain.notifications.notification import Notification
    from holdfast.domain.workloads.base import Result
    from holdfast.ports.store import ControllerStore, Snapshot

R = TypeVar("R", bound=Owner)
S = TypeVar("S")


class OwnerRules(Struct, Generic[R, S], frozen=True):
    """The rules of a kind: its record, its desired state, and what follows from the states of its jobs."""

    record: type[R]
    spec_of: Callable[[R], S]
    reconcile: Callable[[S, R, Sequence[Child], float], Result[Any, Order, Any, Any]]
    """Decides from a specification, the stored state, the existing jobs and the time; pure."""


def show(owners: Sequence[Owners[Any, Any]], job: Job, work: JobWork | None = None) -> None:
    """Show a job to its owner; a job without ``work`` is a gang."""
    if (child := job.child) is None:
        return
    for owner in owners:
        if (work_shown := owner.works.get(child.set_id)) is not None:
            owner.see_gang(job) if work is None else owner.see(work_shown, job, work)
            return


class Owners(Generic[R, S]):
    """Every workload of one kind; a kind that needs more than rules overrides the methods marked for that."""

    pace = Pace(1 << 30, 1 << 30)
    begins_anew = False  # Whether a job that has gone can be created again: those submitted with their owner.

    def __init__(self, rules: OwnerRules[R, S], state: ControllerState, store: ControllerStore) -> None:
        self.name = rules.record.kind
        self.works: dict[str, Work[R, S]] = {}
        self._rules = rules
        self._state = state
        self._store = store
        self._submissions = ChildSubmitter(state, store)

    # Methods that a kind may override.

    def decide(self, work: Work[R, S], now: float) -> Result[Any, Order, Any, Any]:
        """Apply the rules."""
        return self._rules.reconcile(work.spec, work.row, list(work.children.values()), now)

    def restart(self, work: Work[R, S], payload: str, now: float) -> None:
        """Act on a request to restart a workload or a part of it; by default it is ignored."""

    def log(self, row: R, what: Sequence[object], now: float) -> None:
        """Keep the decisions and events of a look."""

    def tell(self, row: R, what: str, now: float) -> None:
        """Emit an event: a workload was ``updated``, ``suspended`` or ``resumed``, has ``ended`` or was ``deleted``."""

    def told_of(self, row: R, now: float) -> Sequence[Notification]:
        """Return who is notified of what became of a workload."""
        wishes = (*needs_of(row).notify, *self._state.outbox.queue_notify.get(row.queue, ()))
        return of_owner(row, wishes, now) if wishes else ()

    def hear(self, owner: Work[R, S], job: Job, work: JobWork) -> None:
        """Take in the reports of a job's pods, for a workload that needs them."""

    def forget(self, work: Work[R, S]) -> None:
        """Forget what was derived from a specification that has changed or is over."""

    # Workloads that come and go.

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Restore the unfinished workloads."""
        jobs: dict[str, list[Job]] = {}
        for job in snapshot.jobs:
            if job.child is not None:
                jobs.setdefault(job.child.set_id, []).append(job)
        for row in snapshot.of(self._rules.record).values():
            # Reading all ended workloads would take long; all they still need is to be forgotten in time.
            if row.id in jobs or not row.ended or row.deleting or row.expires_at is not None:
                attempt_anyway(row.id, partial(self.take_in, row, jobs.get(row.id, ())))

    def take_in(self, row: R, jobs: Iterable[Job]) -> None:
        """Add a workload with its unfinished jobs."""
        if row.id not in self.works:
            self.works[row.id] = Work(row, self._rules.spec_of(row), {job.name: job.id for job in jobs})
            self._state.queue.add(self.name, row.id)

    def _find(self, key: str) -> Work[R, S] | None:
        """Return a workload; one that is not in memory, because it is new or over, is taken in from the store."""
        changes, record = self._state.changes, self._rules.record
        stored = {} if key in self.works or key in changes.forgotten else self._store.workloads_by_id(record, [key])
        for row in stored.values():
            # Uncommitted changes are newer than what is stored.
            jobs = [changes.jobs.get(job.id, job) for job in self._store.children_of(key)]
            jobs = [job for job in jobs if not job.terminal]
            for job in jobs:
                self._state.admit(job)
            self.take_in(changes.of(record).get(key, row), jobs)
            for job in jobs:
                self._kind(job.id).admit(job)
        return self.works.get(key)

    def _leave(self, work: Work[R, S]) -> None:
        self._state.queue.forget(work.row.id)
        self.forget(work)
        del self.works[work.row.id]

    def ask(self, request: Request, key: str, now: float) -> None:
        """Act on a request; one that no longer applies is dropped."""
        work = self._find(key)
        if work is None or work.row.deleting:
            return
        match request.kind:
            case RequestKind.UPDATE:
                self.update(work, request.payload, "updated", now)
            case RequestKind.HOLD | RequestKind.RELEASE:
                if not work.row.ended:
                    self.hold(work, request, now, held=request.kind is RequestKind.HOLD)
            case RequestKind.RESTART:
                self.restart(work, request.payload, now)
            case RequestKind.CANCEL:
                self.cancel(work, request.cancel_reason, now)
            case RequestKind.DELETE:
                self.delete(work, now)
            case RequestKind.SUBMIT | RequestKind.RETRY | RequestKind.PREEMPT | RequestKind.CANCEL_UNLESS_STARTED:
                pass  # Finding the workload has taken it in; other requests concern its jobs.
            case RequestKind.REPRIORITIZE | RequestKind.CORDON | RequestKind.UNCORDON:
                pass
            case _:
                assert_never(request.kind)
        self._state.queue.add(self.name, key)

    def update(self, work: Work[R, S], payload: str, change: str, now: float) -> None:
        """Act on a request to change a workload's specification."""
        new, row = load_change(payload), work.row
        row = evolve(row, manifest=new.manifest, spec=new.spec, generation=row.generation + 1, updated_at=now)
        work.spec = self._rules.spec_of(row)
        self.forget(work)
        self.put(work, row)
        self.tell(row, change, now)
        for job_id in work.jobs.values():
            self._state.queue.add(self._kind(job_id).name, job_id)

    def hold(self, work: Work[R, S], request: Request, now: float, *, held: bool) -> None:
        """Act on a request to hold or release a workload; by default that changes its manifest."""
        self.update(work, request.payload, "suspended" if held else "resumed", now)

    def cancel(self, work: Work[R, S], reason: str, now: float) -> None:
        """Act on a request to cancel a workload; by default it is deleted."""
        del reason
        self.delete(work, now)

    def delete(self, work: Work[R, S], now: float) -> None:
        """Begin to delete a workload: stop its running jobs."""
        if not work.row.deleting:
            self.put(work, evolve(work.row, deleting=True, updated_at=now))
        for job_id in work.jobs.values():
            if job_id in self._state.active:
                self._kind(job_id).delete(job_id, now)
        self._state.queue.add(self.name, work.row.id)

    def _kind(self, job_id: str) -> JobKind:
        return self._state.kinds[self._state.jobs[job_id].kind]

    def put(self, work: Work[R, S], row: R) -> None:
        """Change a workload's record."""
        work.row = row
        self._state.put_workload(row)

    # Looks at workloads.

    def see(self, owner: Work[R, S], job: Job, work: JobWork) -> None:
        """Note the present state of a job made of pods."""
        if job.child is None or not work.record.present:
            self._see(owner, job, None)
            return
        self._see(owner, job, child_of(job, work.record, owner.first.get(job.child.group, 0)))
        if owner.reports is not None:
            self.hear(owner, job, work)

    def see_gang(self, job: Job) -> None:
        """Note the present state of a gang; an ended gang is seen once more."""
        owner = self.works.get(job.child.set_id) if job.child is not None else None
        if owner is not None:
            owner.jobs.setdefault(job.name, job.id)
            owner.submitted.discard(job.name)
            self._see(owner, job, child_of_gang(job))
            if job.terminal:
                owner.over.append(job.name)

    def _see(self, owner: Work[R, S], job: Job, seen: Child | None) -> None:
        """Have an owner looked at if a job of it has changed.

        A look is linear in the number of jobs. So an owner with a job that has ended or gone is looked at in this tick;
        if only figures have changed, in the next one, and later still if no rule needs them.
        """
        before, queue, key = owner.children.get(job.name), self._state.queue, owner.row.id
        if seen is None:
            owner.children.pop(job.name, None)
            if before is not None and not self.begins_anew:
                owner.gone.append(job)
            if before is not None and not before.at_once:  # Otherwise the look that had it deleted went on without it.
                queue.add(self.name, key)
            return
        owner.children[job.name] = seen
        if seen == before:
            return
        if seen.phase is not ChildPhase.ACTIVE or seen.certain:
            queue.add(self.name, key)
        elif self.begins_anew and not seen.is_news_after(before):
            queue.linger(self.name, key)
        else:
            queue.defer(self.name, key)

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Look at workloads whose jobs have changed, or that are due."""
        for key in keys:
            work = self.works.get(key)
            if work is not None:
                self._look(work, now)

    def _look(self, work: Work[R, S], now: float) -> None:
        if work.submitted:
            self._submissions.take_in(work)
        if work.row.deleting:
            self._go(work, now)
            return
        for job in work.gone:
            self._end_one(work, job, now)
        work.gone.clear()
        result, row = self.decide(work, now), work.row
        if result.decisions or result.events:
            self.log(row, (*result.decisions, *result.events), now)
        if result.state != row.state or result.expires_at != row.expires_at:
            self.put(work, evolve(row, state=result.state, expires_at=result.expires_at, updated_at=now))
        ended = work.row.ended
        if ended and not row.ended:
            self.tell(work.row, "ended", now)
        for name in work.over:
            work.children.pop(name, None)
            work.jobs.pop(name, None)
        work.over.clear()
        self._submissions.submit(work, result.orders, now)
        for order in result.orders:
            self._carry_out(work, order, now)
        self._state.queue.wake_at(self.name, row.id, result.wake_at)
        if ended and self._end_jobs(work, f"its {row.noun} has ended: {ended}", now) and result.expires_at is None:
            self._leave(work)

    def _go(self, work: Work[R, S], now: float) -> None:
        """Forget a deleted workload once none of its jobs runs."""
        why = f"its {work.row.noun} was deleted"
        self._end_waiting(work, why, now)
        if self._end_jobs(work, why, now):
            self._leave(work)
            self._state.forget_workload(work.row.id)
            self.tell(work.row, "deleted", now)

    def _end_waiting(self, work: Work[R, S], why: str, now: float) -> None:
        """Keep waiting jobs from taking places that become free while others stop."""
        for job_id in list(work.jobs.values()):
            if job_id in self._state.jobs and job_id not in self._state.active:
                self._kind(job_id).finish(job_id, why, now)

    def _end_jobs(self, work: Work[R, S], why: str, now: float) -> bool:
        """End the jobs of a workload that is over, once none of them runs; returns whether none does."""
        if work.submitted or any(job_id in self._state.active for job_id in work.jobs.values()):
            return False
        for job_id in work.jobs.values():
            if job_id in self._state.jobs:
                self._kind(job_id).finish(job_id, why, now)
        work.jobs, work.children = {}, {}
        return True

    def _carry_out(self, work: Work[R, S], order: Order, now: float) -> None:
        match order:
            case CreateChild():
                self._create(work, order, now)
            case DeleteChild():
                self._delete_child(work, order, now)
            case SuspendChild():
                self._suspend(work, order.name, now, suspended=True)
            case ResumeChild():
                self._suspend(work, order.name, now, suspended=False)
            case ResizeChild():
                job_id = work.jobs[order.name]
                self._kind(job_id).resize(job_id, order.parallelism, order.completions)
            case Forget():
                self.delete(work, now)
            case _:
                assert_never(order)

    def _delete_child(self, work: Work[R, S], order: DeleteChild, now: float) -> None:
        job_id = work.jobs[order.name]
        job = self._state.jobs.get(job_id)
        if job is None:
            return  # It was submitted and does not exist yet; it is deleted when it does.
        if job_id in self._state.active or self.begins_anew or job.kind == GANG:
            self._kind(job_id).delete(job_id, now, force=order.force)
        else:
            self._end_one(work, job, now)

    def _create(self, work: Work[R, S], order: CreateChild, now: float) -> None:
        job = self._state.jobs.get(work.jobs.get(order.name, ""))
        if job is not None:  # Otherwise it is submitted with this commit, and begins after it.
            self._kind(job.id).create(job, order, work.row, now)

    def _suspend(self, work: Work[R, S], name: str, now: float, *, suspended: bool) -> None:
        job_id = work.jobs[name]
        if job_id in self._state.jobs:  # Otherwise it was submitted and does not exist yet; it is handled when it does.
            self._kind(job_id).suspend(job_id, now, suspended=suspended)

    def _end_one(self, work: Work[R, S], job: Job, now: float) -> None:
        self._kind(job.id).finish(job.id, f"deleted by its {work.row.noun}", now)
        del work.jobs[job.name]
        work.children.pop(job.name, None)
