"""Moves jobs made of pods on: counts what ended, replaces pods, ends the job.

Decides in which order a look is carried out, and that it is stored before anything starts; what follows from how pods
look is ``domain.podjob``'s. Whether a program runs again in its place is ``again``'s.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from holdfast.controller.sets.memory import JobWork, PodWork, Timers
from holdfast.controller.sets.plans import current_spec, order_writer
from holdfast.controller.sets.pod_queue import fresh_uid
from holdfast.domain.evolve import evolve
from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import (
    RUN_TERMINAL,
    Ending,
    RunStatus,
)
from holdfast.domain.workloads.kubejob.model import KubeJobState
from holdfast.domain.workloads.kubejob.observed import pod_of
from holdfast.domain.workloads.kubejob.standing import final, standing
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord, PodRecord
from holdfast.domain.workloads.kubejob.sync import sync

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.controller.sets.attempts import PodAttempts
    from holdfast.controller.sets.container_restarts import ContainerRestarts
    from holdfast.controller.sets.plans import Plans, PodPlan
    from holdfast.controller.sets.pod_queue import PodQueue
    from holdfast.controller.state import Active, ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, PodOrder, Synced
    from holdfast.ports.store import Snapshot


class KubeJobs:
    """The jobs made of pods."""

    def __init__(
        self,
        state: ControllerState,
        line: PodQueue,
        plans: Plans,
        restarts: ContainerRestarts,
        attempts: PodAttempts,
    ) -> None:
        """Wire it.

        Args:
            state: The controller's memory.
            line: Where pods wait for a place.
            plans: What pods are made from.
            restarts: Says whether a program that failed runs again in its place.
            attempts: Keeps attempts and states in step.
        """
        self._state = state
        self._line = line
        self._plans = plans
        self._restarts = restarts
        self._attempts = attempts
        self.jobs: dict[str, JobWork] = {}
        self.timers = Timers()
        self.changed: dict[str, None] = {}
        """Ids of jobs that look different than when their sets last looked."""
        self.touched: dict[str, None] = {}
        """Ids of jobs to look at."""
        self._let_go: dict[str, None] = {}
        """Ids of jobs whose attempt was deleted since ``set_aside``."""

    def restore(self, snapshot: Snapshot) -> None:
        """Take in the jobs made of pods that were going on when the last controller stopped."""
        for job in self._state.jobs.values():
            if self._state.has_pods(job):
                self._resume(job, snapshot.kube_jobs.get(job.id))

    def _resume(self, job: Job, record: KubeJobRecord | None) -> None:
        if record is None:
            self.admit(job)
            return
        work = self.jobs[job.id] = JobWork(record, record)
        active = self._state.active.get(job.id)
        self.touched[job.id] = self.changed[job.id] = None
        if active is None:
            return
        active.order = order_writer(active, work, self._plans)
        plan = self._plan(job)
        for each in record.pods:
            pod = PodWork(each, active.runs.get(each.run))
            self._restarts.resume(active, pod, plan)
            if pod.run is not None or record.deleting_since is None:
                work.pods[each.name] = pod
            else:
                self._restarts.forget(pod)
        if plan.topology is not None and record.domain:
            self._line.domains.keep(plan.topology, record.domain, job.id)

    def admit(self, job: Job) -> None:
        """Take in a job that is new; one of no set begins at once."""
        if job.id in self.jobs:
            return
        suspended = job.child is None and self._plan(job).spec.suspend
        work = self.jobs[job.id] = JobWork(KubeJobRecord(job_id=job.id, present=False, suspended=suspended))
        if job.child is None:
            self.create(job, evolve(work.record, present=True), job.queued_at)

    def create(self, job: Job, record: KubeJobRecord, now: float) -> None:
        """Begin an attempt at a job with a fresh record; its number follows from how often it and its set restarted."""
        number = 1 + record.restart + record.job_restart
        work = self.jobs[job.id]
        work.pods, work.grace_s, work.last_failure, work.created = {}, None, None, None
        self._put(work, record)
        queued = job
        if job.child is not None:
            queued = evolve(
                job, state=JobState.QUEUED, reason="", attempt=number, retry_at=None, queued_at=now, updated_at=now
            )
            self._state.put_job(queued)
        attempt = Attempt(job.id, number, status_since=now, created_at=now, request=job.request)
        active = self._state.open_pods(queued, attempt)
        active.order = order_writer(active, work, self._plans)
        self.touched[job.id] = self.changed[job.id] = None

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """End an attempt and let go of it: at once when nothing of it runs, else when that has stopped."""
        work, active = self.jobs[job_id], self._state.active.get(job_id)
        if active is None:
            self._gone(work, now)
            return
        if force and work.grace_s == 0.0:
            return
        if force:
            work.grace_s = 0.0
        if work.record.deleting_since is None:
            self._put(work, evolve(work.record, deleting_since=now))
        if self._stop(active, work, list(work.pods), now, again=force) or not work.pods:
            self.touched[job_id] = None
        else:
            self.timers.set(job_id, self._attempts.going(active, work, now))
            self._state.touched_pods.pop(job_id, None)
            self.changed[job_id] = None

    def suspend(self, job_id: str, *, suspended: bool) -> None:
        """Stop a job's pods and keep it, or let it go on."""
        work = self.jobs[job_id]
        self._put(work, evolve(work.record, suspended=suspended))
        self.touched[job_id] = None

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Give a job another size."""
        work = self.jobs[job_id]
        self._put(work, evolve(work.record, parallelism=parallelism, completions=completions))
        self.touched[job_id] = None

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """End a job for good whose attempt is over, or never was."""
        job, work = self._state.jobs[job_id], self.jobs.pop(job_id)
        self.timers.set(job_id, None)
        state, reason, _ = final(work.record.state if work.record.present else KubeJobState(), otherwise)
        cancelled = state is JobState.CANCELLED
        ended = evolve(job, state=state, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        self._state.put_job(evolve(ended, cancel_requested=job.cancel_requested or cancelled))
        ttl_s = None if job.child is not None else self._plan(job).spec.ttl_s
        if ttl_s is not None:
            self._put(work, evolve(work.record, expires_at=now + ttl_s))

    def placed(self, placements: Iterable[tuple[str, tuple[str, str]]], now: float) -> None:
        """Hand out pods that got their places."""
        placed = {}
        for placement_id, place in placements:
            active, _ = self._line.place(placement_id, place, now)
            placed[active.attempt.job_id] = active
        for job_id, active in placed.items():
            work = self.jobs[job_id]
            self._put(work, evolve(work.record, pods=_records(work.pods.values())))
            self._stand(active, work, now)

    def sweep(self) -> None:
        """Look again at jobs that wait for what only others can give back."""
        self.touched.update(self._line.awaiting_domain)

    def note(self, now: float, most: int) -> None:
        """Take in which jobs something happened to, at most so many, and whose time has come."""
        happened = self._state.touched_pods
        for job_id in list(islice(happened, most)):
            del happened[job_id]
            self.touched[job_id] = None
        self.touched.update(dict.fromkeys(self.timers.due(now)))

    def has_more(self) -> bool:
        """Whether there are jobs to look at at once."""
        return bool(self.touched or self._state.touched_pods)

    def advance(self, now: float) -> None:
        """Look at the jobs that were noted, and at those that touches in turn."""
        while self.touched:
            batch, self.touched = self.touched, {}
            for job_id in batch:
                self._look(job_id, now)

    def _look(self, job_id: str, now: float) -> None:
        work, active = self.jobs.get(job_id), self._state.active.get(job_id)
        if work is None or active is None or not active.pods:
            return
        self._attempts.refresh(work, active, now)
        plan = self._plan(active.job)
        spec = current_spec(plan, work.record)
        self._restarts.settle(active, work, plan, now)
        if work.record.deleting_since is not None:
            # What was cleared since the record was last written is remembered again after a restart of ours.
            self._stop(active, work, list(work.pods), now)
            self._clear(active, work)
            if not work.pods:
                why = "deleted by its job set" if active.job.child is not None else "cancelled"
                self._attempts.end(active, Ending.CANCELLED, why, now)
                self._gone(work, now)
                return
        else:
            self._sync(active, work, plan, spec, now)
        if job_id in self.jobs and self._state.active.get(job_id) is active:
            self._stand(active, work, now)

    def _stand(self, active: Active, work: JobWork, now: float) -> None:
        job_id = active.attempt.job_id
        self.timers.set(job_id, self._attempts.stand(active, work, now))
        self._state.touched_pods.pop(job_id, None)
        self.changed[job_id] = None

    def _sync(self, active: Active, work: JobWork, plan: PodPlan, spec: KubeJobSpec, now: float) -> None:
        synced = self._synced(active, work, plan, spec, now)
        for _ in range(len(work.pods) + 2):
            if not synced.delete or not self._stop(active, work, synced.delete, now):
                break
            # Pods that had no place are gone at once: look again.
            synced = self._synced(active, work, plan, spec, now)
        for order in synced.create:
            self._begin(active, work, order, self._restarts.first_in_place(active.job))
        # Kubernetes may run two pods of one index for as long as the earlier one takes to go; here it waits for that.
        taken = {pod.record.rank for pod in work.pods.values() if pod.run is not None}
        for pod in work.pods.values():
            idle = pod.run is None and not pod.placement_id and pod.record.rank not in taken
            if idle and self._restarts.may_start(active.job, pod, plan, now):
                self._restarts.start(active, work, pod, plan, now)
        self._put(work, evolve(work.record, state=synced.state, pods=_records(work.pods.values())))
        work.wake_at = synced.wake_at
        if synced.state.finished is not None:
            self._finished(active, work, now)
        elif work.record.suspended and not work.pods:
            self._release(work, active.job)

    def _synced(self, active: Active, work: JobWork, plan: PodPlan, spec: KubeJobSpec, now: float) -> Synced:
        container = plan.program.container
        counted = work.record.state.counted
        pods = [
            pod_of(pod.record, pod.run, container=container, indexed=spec.indexed, told=name in counted)
            for name, pod in work.pods.items()
        ]
        found = sync(spec, work.record.state, pods, now)
        work.record = evolve(work.record, state=found.state)
        self._clear(active, work)
        return found

    def _clear(self, active: Active, work: JobWork) -> None:
        """Forget pods that have ended; each was counted in the look before."""
        for name in [name for name, pod in work.pods.items() if pod.run and pod.run.status in RUN_TERMINAL]:
            pod = work.pods.pop(name)
            if pod.run is not None:
                self._state.forget_run(active, pod.run.uid)

    def _begin(self, active: Active, work: JobWork, order: PodOrder, in_place: int) -> None:
        """Make a pod; its name is as fresh within its job as its first run's uid is among all."""
        rank = order.index if order.index is not None else _free_slot(work)
        uid = fresh_uid(active, rank)
        record = PodRecord(
            name=f"{active.job.name}-{rank}-{active.placed}",
            rank=rank,
            index_failures=order.index_failures,
            index_ignored=order.index_ignored,
            in_place=in_place,
        )
        work.pods[record.name] = PodWork(record, first=uid)

    def _stop(self, active: Active, work: JobWork, pods: Sequence[str], now: float, *, again: bool = False) -> bool:
        """Stop pods; returns whether any of them had no program and is gone at once."""
        dropped = False
        for name in pods:
            pod = work.pods[name]
            if pod.run is None:
                self._line.remove(pod)
                self._restarts.forget(pod)
                del work.pods[name]
                dropped = True
            elif pod.run.status not in RUN_TERMINAL and (again or pod.run.status is not RunStatus.TERMINATING):
                pod.run = pod.run.entered(RunStatus.TERMINATING, now)
                self._state.put_run(active, pod.run)
        return dropped

    def _finished(self, active: Active, work: JobWork, now: float) -> None:
        """End the attempt of a job that is complete or has failed, and with it a job of no set."""
        ended = work.record.state.finished
        if ended is None:
            return
        job_id = active.attempt.job_id
        if ended.type == "Complete":
            self._attempts.end(active, Ending.SUCCEEDED, ended.message, now)
        else:
            self._attempts.end(active, Ending.FAILED, f"{ended.reason}: {ended.message}", now, work=work)
        self.timers.set(job_id, None)
        self._release(work, active.job)
        if active.job.child is None:
            self.finish(job_id, "", now)
            return
        self._attempts.put(active.job, standing(work.record, in_set=True), now)
        self.changed[job_id] = None

    def _gone(self, work: JobWork, now: float) -> None:
        """Let go of an attempt nothing is left of."""
        job = self._state.jobs[work.record.job_id]
        self._release(work, job)
        self.timers.set(job.id, None)
        state = evolve(work.record.state, active=0, ready=0, terminating=0)
        self._put(work, evolve(work.record, present=False, deleting_since=None, state=state, pods=()))
        if job.child is None:
            self._put(work, evolve(work.record, state=KubeJobState()))
            self.finish(job.id, job.reason or "cancelled", now)
            return
        self.changed[job.id] = self._let_go[job.id] = None

    def set_aside(self, now: float) -> None:
        """Say of the jobs that were let go of, and that did not come again at once, that they wait for their sets."""
        let_go, self._let_go = self._let_go, {}
        for job_id in let_go:
            work, job = self.jobs.get(job_id), self._state.jobs.get(job_id)
            if work is not None and job is not None and not work.record.present:
                self._attempts.put(job, standing(work.record, in_set=True), now)

    def _release(self, work: JobWork, job: Job) -> None:
        self._line.awaiting_domain.pop(job.id, None)
        if work.record.domain:
            self._line.domains.release(self._plan(job).topology, work.record.domain)
            self._put(work, evolve(work.record, domain=""))

    def _put(self, work: JobWork, record: KubeJobRecord) -> None:
        """Change what is remembered of a job, and write it down if that is news."""
        work.record = record
        if record != work.stored:
            work.stored = self._state.changes.kube_jobs[record.job_id] = record

    def _plan(self, job: Job) -> PodPlan:
        return self._plans.of(job, self._state.spec(job).kube)


def _free_slot(work: JobWork) -> int:
    taken = {pod.record.rank for pod in work.pods.values()}
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def _records(pods: Iterable[PodWork]) -> tuple[PodRecord, ...]:
    """Return what must outlive the controller: pods that had a program. The others are made anew."""
    return tuple(pod.record for pod in pods if pod.record.run)
