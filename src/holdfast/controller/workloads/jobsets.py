"""Job sets: looks at their jobs, and carries out the orders that follow.

Everything that follows from one look is one commit: the set's state, its decisions, and the jobs as ordered.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, assert_never

from holdfast.controller.kind import ForEach, Pace
from holdfast.controller.workloads.jobset_requests import SetRequests
from holdfast.controller.workloads.plans import created
from holdfast.domain.events import JobSetDeleted, JobSetEnded
from holdfast.domain.workloads.base import JOBSET, KUBEJOB
from holdfast.domain.workloads.jobset.children import (
    ChildPhase,
    CreateJob,
    DeleteJob,
    DeleteJobSet,
    ResizeJob,
    ResumeJob,
    SuspendJob,
    child_of,
)
from holdfast.domain.workloads.jobset.model import RestartStrategy
from holdfast.domain.workloads.jobset.reconcile import InPlace, ReconcileInput, converge, expected_pods
from holdfast.domain.workloads.jobset.state import JobSet
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.kubejobs import KubeJobs
    from holdfast.controller.workloads.memory import JobWork, SetWork
    from holdfast.controller.workloads.owners import Owners
    from holdfast.controller.workloads.plans import Plans
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.children import Order
    from holdfast.domain.workloads.jobset.model import JobSetSpec
    from holdfast.domain.workloads.jobset.reconcile import SetResult
    from holdfast.domain.workloads.jobset.state import JobSetState
    from holdfast.ports.store import ControllerStore, Request, Snapshot


_ALL = 1 << 30


class JobSets:
    """Every job set."""

    name = JOBSET
    pace = Pace(_ALL, _ALL)

    def __init__(
        self,
        state: ControllerState,
        pods: KubeJobs,
        plans: Plans,
        owners: Owners,
        *,
        store: ControllerStore,
        restarts_allowed: Callable[[], bool],
    ) -> None:
        """Remember what it works with; ``restarts_allowed`` is the operator's kill switch."""
        self._state = state
        self._pods = pods
        self._plans = plans
        self._owners = owners
        self._restarts_allowed = restarts_allowed
        self._requests = SetRequests(state, owners, pods, plans, store, delete=self.delete)
        pods.changed = self.see

    @property
    def works(self) -> Mapping[str, SetWork]:
        """The sets in memory."""
        return self._owners.sets

    def ask(self, request: Request, key: str, now: float) -> None:
        """Act on a request about a job set."""
        self._requests.ask(request, key, now)

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Restore the sets that were in progress when the last controller stopped."""
        jobs: dict[str, list[Job]] = {}
        for job in snapshot.jobs:
            if job.child is not None:
                jobs.setdefault(job.child.set_id, []).append(job)
        for row in snapshot.of(JobSet).values():
            # Reading all that have ended takes long; all they still need is their time to live.
            if row.id in jobs or not row.state.terminal or row.deleting or row.expires_at is not None:
                each(row.id, partial(self._owners.take_in, row, jobs.get(row.id, ())))

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Look at sets whose jobs have changed, or that are due."""
        for set_id in keys:
            work = self._owners.sets.get(set_id)
            if work is not None:
                self._look(work, now)

    def see(self, job: Job, work: JobWork) -> None:
        """Note how a job of a set looks now.

        A look is linear in a set's jobs. So a set with a job that has ended or gone is looked at in this tick; one of
        which only figures have changed waits for the next.
        """
        owner = self._owners.of(job)
        if owner is None:
            return
        before, record = owner.children.get(job.name), work.record
        if record.present:
            order = created(owner.spec, job, work)
            template = owner.spec.by_name[order.group].job
            seen = owner.children[job.name] = child_of(order, record, template)
            told, owner.in_place[job.name] = owner.in_place.get(job.name), _told_in_place(owner.spec, work)
            reported = told != owner.in_place[job.name]
            if seen == before and not reported:
                return
            urgent = reported or seen.phase is not ChildPhase.ACTIVE or seen.certain
        else:
            owner.children.pop(job.name, None)
            urgent = before is not None
        if urgent:
            self._state.queue.add(JOBSET, owner.row.id)
        else:
            self._state.queue.defer(JOBSET, owner.row.id)

    def _look(self, work: SetWork, now: float) -> None:
        if work.row.deleting:
            self._clear(work, now)
            return
        look = ReconcileInput(
            now, restarts_allowed=self._restarts_allowed(), explain=True, in_place=self._in_place(work)
        )
        passed = converge(work.spec, work.row.state, list(work.children.values()), look)
        self._tell(work, passed, now)
        barrier = self._barrier(work.row.state) != self._barrier(passed.state)
        self._put(work, passed, now)
        for order in passed.orders:
            self._carry_out(work, order, now)
        if barrier:
            for job_id in work.jobs.values():
                self._state.queue.add(KUBEJOB, job_id)
        self._state.queue.wake_at(JOBSET, work.row.id, passed.wake_at)
        if passed.state.terminal:
            self._finish(work, now)

    @staticmethod
    def _barrier(state: JobSetState) -> tuple[int | None, int | None]:
        return state.in_place_previous, state.in_place_current

    def _in_place(self, work: SetWork) -> InPlace | None:
        """Gather what pods that restart in place report.

        Absent pods do not hold up the barrier: they have succeeded, or wait for resources that those at the barrier
        may hold, and begin where the others are by then.
        """
        if not _restarts_in_place(work.spec):
            return None
        jobs = (self._pods.jobs.get(job_id) for job_id in work.jobs.values())
        attempts = [told for job in jobs if job is not None for told in _told_in_place(work.spec, job)]
        absent = expected_pods(work.spec) - len(attempts)
        return InPlace((*attempts, *[max(attempts, default=0)] * absent))

    def _put(self, work: SetWork, passed: SetResult, now: float) -> None:
        row = work.row
        if passed.state != row.state or passed.expires_at != row.expires_at:
            work.row = replace(row, state=passed.state, expires_at=passed.expires_at, updated_at=now)
            self._state.put_job_set(work.row)

    def _tell(self, work: SetWork, passed: SetResult, now: float) -> None:
        """Log the decisions and events of a pass."""
        row = work.row
        for decision in passed.decisions:
            self._owners.log(row, decision, now)
        for event in passed.events:
            self._owners.log(row, event, now)
        if passed.state.terminal and not row.state.terminal:
            condition = passed.state.condition(passed.state.terminal.value)
            reason, message = (condition.reason, condition.message) if condition is not None else ("", "")
            self._owners.emit(now, JobSetEnded(row.id, row.name, passed.state.terminal.value, reason, message))

    def _carry_out(self, work: SetWork, order: Order, now: float) -> None:
        if isinstance(order, DeleteJobSet):
            self.delete(work, now)
            return
        job_id = work.jobs[order.name]
        match order:
            case CreateJob():
                self._create(work, job_id, order, now)
            case DeleteJob():
                self._pods.delete(job_id, now, force=order.force)
            case SuspendJob():
                self._pods.suspend(job_id, suspended=True)
            case ResumeJob():
                self._pods.suspend(job_id, suspended=False)
            case ResizeJob():
                self._pods.resize(job_id, order.parallelism, order.completions)
            case _:
                assert_never(order)

    def _create(self, work: SetWork, job_id: str, order: CreateJob, now: float) -> None:
        job = self._state.jobs[job_id]
        size = work.spec.by_name[order.group].job
        record = KubeJobRecord(
            job_id,
            owner=work.row.id,
            created_at=job.submitted_at,
            restart=order.restart,
            job_restart=order.job_restart,
            suspended=order.suspended,
            parallelism=size.parallelism,
            completions=size.completions,
        )
        self._pods.create(job, record, now)
        self._pods.jobs[job_id].created = order

    def _finish(self, work: SetWork, now: float) -> None:
        """End the jobs of a set that has ended, once nothing of it runs any more."""
        if any(job_id in self._state.active for job_id in work.jobs.values()):
            return
        self._end_jobs(work, f"its job set has ended: {work.row.state.terminal}", now)
        if work.spec.ttl_s is None:
            self._forget(work)

    def delete(self, work: SetWork, now: float) -> None:
        """Begin to delete a set: stop what runs of it."""
        if not work.row.deleting:
            work.row = replace(work.row, deleting=True, updated_at=now)
            self._state.put_job_set(work.row)
        for job_id in work.jobs.values():
            if job_id in self._state.active:
                self._pods.delete(job_id, now)
        self._state.queue.add(JOBSET, work.row.id)

    def _clear(self, work: SetWork, now: float) -> None:
        """Forget a set that is being deleted, once nothing of it runs any more."""
        if any(job_id in self._state.active for job_id in work.jobs.values()):
            return
        self._end_jobs(work, "its job set was deleted", now)
        self._forget(work)
        self._state.delete_job_set(work.row.id)
        self._owners.emit(now, JobSetDeleted(work.row.id, work.row.name))

    def _end_jobs(self, work: SetWork, why: str, now: float) -> None:
        for job_id in work.jobs.values():
            job = self._state.jobs.get(job_id)
            if job is not None:
                self._pods.finish(job_id, why, now)
        work.jobs, work.children = {}, {}

    def _forget(self, work: SetWork) -> None:
        self._state.queue.forget(work.row.id)
        self._plans.forget(work.row.id)
        del self._owners.sets[work.row.id]


def _restarts_in_place(spec: JobSetSpec) -> bool:
    return spec.failure is not None and spec.failure.strategy is RestartStrategy.IN_PLACE


def _told_in_place(spec: JobSetSpec, work: JobWork) -> tuple[int, ...]:
    """List how often pods of a job restarted in place, those that have run or are to go on with the others."""
    if not _restarts_in_place(spec):
        return ()
    records = (pod.record for pod in work.pods.values())
    return tuple(record.in_place for record in records if record.run or record.in_place)
