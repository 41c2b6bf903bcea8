"""Looks at job sets whose jobs have changed, and carries out what follows: decide, commit, act.

Decides when a set is looked at and how its orders become attempts at its jobs; what they are is ``domain.jobset``'s.
Everything a look comes to is one commit: its state, its decisions, and the jobs as ordered.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from holdfast.controller.sets.memory import SetWork, Timers
from holdfast.controller.sets.plans import created
from holdfast.dialects.jobset.loading import load_set
from holdfast.domain.events import JobSetDecided, JobSetDeleted, JobSetEnded, JobSetNoted, Occurrence
from holdfast.domain.jobset.in_place import InPlace, expected_pods
from holdfast.domain.jobset.model import RestartStrategy
from holdfast.domain.jobset.observed import child_of
from holdfast.domain.jobset.reconcile import Look, settle
from holdfast.domain.jobset.state import (
    ChildPhase,
    CreateJob,
    DeleteJob,
    DeleteJobSet,
    Event,
    ResizeJob,
    ResumeJob,
    SetDecision,
    SuspendJob,
)
from holdfast.domain.jobset.stored import SetLogEntry
from holdfast.domain.podjob.stored import PodJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.controller.sets.memory import JobWork
    from holdfast.controller.sets.plans import Plans
    from holdfast.controller.sets.podjobs import PodJobs
    from holdfast.controller.world import World
    from holdfast.domain.events import JobSetEvent
    from holdfast.domain.job import Job
    from holdfast.domain.jobset.model import JobSetSpec
    from holdfast.domain.jobset.state import JobSetState, Order, Pass
    from holdfast.domain.jobset.stored import JobSet
    from holdfast.ports.store import Snapshot


_TIME_TO_LIVE = re.compile('"ttl[^"]*":')


class JobSets:
    """The job sets."""

    def __init__(
        self,
        world: World,
        pods: PodJobs,
        plans: Plans,
        sets: dict[str, SetWork],
        *,
        restarts_allowed: Callable[[], bool],
    ) -> None:
        """Wire it; ``sets`` is shared with those who look sets up, ``restarts_allowed`` is the kill switch."""
        self._world = world
        self._pods = pods
        self._plans = plans
        self.sets = sets
        self._restarts_allowed = restarts_allowed
        self._timers = Timers()
        self._dirty: dict[str, None] = {}
        self._urgent: dict[str, None] = {}
        """Those of the dirty ones that lost a job or have one that ended; of the others only figures changed."""

    def restore(self, snapshot: Snapshot) -> None:
        """Take in the sets that were going on when the last controller stopped."""
        jobs: dict[str, list[Job]] = {}
        for job in snapshot.jobs:
            if job.child is not None:
                jobs.setdefault(job.child.set_id, []).append(job)
        for row in snapshot.job_sets:
            # Reading the manifests of all that ended takes long; only a time to live is still to come for those.
            if row.id in jobs or not row.state.terminal or row.deleting or _TIME_TO_LIVE.search(row.manifest):
                self.take_in(row, jobs.get(row.id, ()))

    def take_in(self, row: JobSet, jobs: Iterable[Job]) -> None:
        """Take in a set with those of its jobs that are not over."""
        if row.id in self.sets:
            return
        spec = load_set(row.manifest, lenient=row.lenient)
        self.sets[row.id] = SetWork(row, spec, {job.name: job.id for job in jobs})
        self._dirty[row.id] = None

    def look_again(self, set_id: str) -> None:
        """Look at a set although none of its jobs has changed."""
        self._dirty[set_id] = None

    def next_due(self) -> float | None:
        """Return when a set is to be looked at although nothing happens."""
        return self._timers.next()

    def has_more(self) -> bool:
        """Whether there are sets to look at at once."""
        return bool(self._dirty or self._pods.changed)

    def advance(self, now: float, *, urgent: bool = False) -> bool:
        """Look at every set that has changed or whose time has come, or at the urgent ones; returns if there was any.

        A look is linear in a set's jobs, so what only changes figures waits for the next tick's look.
        """
        self._notice()
        if not urgent:
            self._dirty.update(dict.fromkeys(self._timers.due(now)))
        batch, self._urgent = self._urgent if urgent else self._dirty, {}
        self._dirty = {set_id: None for set_id in self._dirty if set_id not in batch}
        for set_id in batch:
            work = self.sets.get(set_id)
            if work is not None:
                self._look(work, now)
        return bool(batch)

    def _notice(self) -> None:
        """Take in how jobs look by now."""
        changed, self._pods.changed = self._pods.changed, {}
        for job_id in changed:
            job, work = self._world.jobs.get(job_id), self._pods.jobs.get(job_id)
            if job is None or work is None or job.child is None:
                continue
            owner = self.sets.get(job.child.set_id)
            if owner is None:
                continue
            self._see(owner, job, work)

    def _see(self, owner: SetWork, job: Job, work: JobWork) -> None:
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
        self._dirty[owner.row.id] = None
        if urgent:
            self._urgent[owner.row.id] = None

    def _look(self, work: SetWork, now: float) -> None:
        if work.row.deleting:
            self._clear(work, now)
            return
        look = Look(now, restarts_allowed=self._restarts_allowed(), explain=True, in_place=self._in_place(work))
        passed = settle(work.spec, work.row.state, list(work.children.values()), look)
        self._tell(work, passed, now)
        barrier = self._barrier(work.row.state) != self._barrier(passed.state)
        self._put(work, passed.state, now)
        for order in passed.orders:
            self._carry_out(work, order, now)
        if barrier:
            self._pods.touched.update(dict.fromkeys(work.jobs.values()))
        self._timers.set(work.row.id, passed.wake_at)
        if passed.state.terminal:
            self._finish(work, now)

    @staticmethod
    def _barrier(state: JobSetState) -> tuple[int | None, int | None]:
        return state.in_place_previous, state.in_place_current

    def _in_place(self, work: SetWork) -> InPlace | None:
        """Gather what pods that restart in place report.

        Pods that are not there hold nobody up at the barrier: they have ended well, or wait for what those at the
        barrier may have, and begin where the others are by then.
        """
        if not _restarts_in_place(work.spec):
            return None
        jobs = (self._pods.jobs.get(job_id) for job_id in work.jobs.values())
        attempts = [told for job in jobs if job is not None for told in _told_in_place(work.spec, job)]
        absent = expected_pods(work.spec) - len(attempts)
        return InPlace((*attempts, *[max(attempts, default=0)] * absent))

    def _put(self, work: SetWork, state: JobSetState, now: float) -> None:
        if state != work.row.state:
            work.row = replace(work.row, state=state, updated_at=now)
            self._world.changes.job_sets[work.row.id] = work.row

    def _tell(self, work: SetWork, passed: Pass, now: float) -> None:
        """Write down what was decided and what people should know."""
        row = work.row
        for decision in passed.decisions:
            self.log(row, decision, now)
        for event in passed.events:
            self.log(row, event, now)
        if passed.state.terminal and not row.state.terminal:
            condition = passed.state.condition(passed.state.terminal.value)
            reason, message = (condition.reason, condition.message) if condition is not None else ("", "")
            self.happened(now, JobSetEnded(row.id, row.name, passed.state.terminal.value, reason, message))

    def log(self, row: JobSet, what: SetDecision | Event, now: float) -> None:
        """Append to a set's log and to the events."""
        self._world.changes.set_log.append(SetLogEntry(set_id=row.id, at=now, what=what))
        self.happened(now, _noted(row, what))

    def happened(self, now: float, event: JobSetEvent) -> None:
        """Append an event that is about no single job."""
        self._world.happened(Occurrence(None, now, event))

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
        job = self._world.jobs[job_id]
        size = work.spec.by_name[order.group].job
        record = PodJob(
            job_id=job_id,
            restart=order.restart,
            job_restart=order.job_restart,
            suspended=order.suspended,
            parallelism=size.parallelism,
            completions=size.completions,
        )
        self._pods.create(job, record, now)
        self._pods.jobs[job_id].created = order

    def _finish(self, work: SetWork, now: float) -> None:
        """Let a set's jobs end as it has ended, once nothing of it runs any more."""
        if any(job_id in self._world.active for job_id in work.jobs.values()):
            return
        self._end_jobs(work, f"its job set has ended: {work.row.state.terminal}", now)
        if work.spec.ttl_s is None:
            self._forget(work)

    def delete(self, work: SetWork, now: float) -> None:
        """Begin to delete a set: stop what runs of it."""
        if not work.row.deleting:
            work.row = replace(work.row, deleting=True, updated_at=now)
            self._world.changes.job_sets[work.row.id] = work.row
        for job_id in work.jobs.values():
            if job_id in self._world.active:
                self._pods.delete(job_id, now)
        self._dirty[work.row.id] = self._urgent[work.row.id] = None

    def _clear(self, work: SetWork, now: float) -> None:
        """Forget a set that is being deleted, once nothing of it runs any more."""
        if any(job_id in self._world.active for job_id in work.jobs.values()):
            return
        self._end_jobs(work, "its job set was deleted", now)
        self._forget(work)
        self._world.changes.job_sets.pop(work.row.id, None)
        self._world.changes.deleted_sets[work.row.id] = None
        self.happened(now, JobSetDeleted(work.row.id, work.row.name))

    def _end_jobs(self, work: SetWork, why: str, now: float) -> None:
        for job_id in work.jobs.values():
            job = self._world.jobs.get(job_id)
            if job is not None:
                self._pods.finish(job_id, why, now)
        work.jobs, work.children = {}, {}

    def _forget(self, work: SetWork) -> None:
        self._timers.set(work.row.id, None)
        self._plans.forget(work.row.id)
        del self.sets[work.row.id]


def _restarts_in_place(spec: JobSetSpec) -> bool:
    return spec.failure is not None and spec.failure.strategy is RestartStrategy.IN_PLACE


def _told_in_place(spec: JobSetSpec, work: JobWork) -> tuple[int, ...]:
    """List how often each pod of a job restarted in place, of those that have run or are to go on with the others."""
    if not _restarts_in_place(spec):
        return ()
    records = (pod.record for pod in work.pods.values())
    return tuple(record.in_place for record in records if record.run or record.in_place)


def _noted(row: JobSet, what: SetDecision | Event) -> JobSetEvent:
    if isinstance(what, Event):
        return JobSetNoted(row.id, row.name, what.type, what.reason, what.message)
    return JobSetDecided(
        job_set=row.id,
        name=row.name,
        job=what.job,
        restart=what.attempt[0],
        job_restart=what.attempt[1],
        action="" if what.action is None else what.action.value,
        granted=what.granted,
        reason=what.reason,
        message=what.message,
        rule=what.rule,
        delay_s=what.delay_s,
    )
