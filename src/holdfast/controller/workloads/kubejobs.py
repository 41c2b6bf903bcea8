"""Kubernetes Jobs: jobs whose pods come and go one by one, as ``domain.workloads.kubejob`` decides."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, assert_never

from holdfast.controller.kind import Taking
from holdfast.controller.workloads.memory import JobWork
from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import Interruption
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.children import record_of
from holdfast.domain.workloads.dependencies import advanced
from holdfast.domain.workloads.gang.conclude import held, released
from holdfast.domain.workloads.kubejob.job_status import (
    PODS_WAIT,
    ended_job,
    last_step,
    running_job,
    status_of,
    with_status,
)
from holdfast.domain.workloads.kubejob.model import KubeJobState
from holdfast.domain.workloads.kubejob.records import KubeJobRecord
from holdfast.ports.requests import RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.pods import Pods
    from holdfast.domain.job import Job
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.children import CreateChild
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.domain.workloads.kubejob.job_status import JobStatus
    from holdfast.domain.workloads.kubejob.program import PodPlan
    from holdfast.domain.workloads.kubejob.reconcile_pods import PodReconciler
    from holdfast.ports.requests import Request
    from holdfast.ports.store import ControllerStore, Snapshot


class KubeJobs:
    """All Kubernetes Jobs, in a job set or by themselves."""

    name = KUBEJOB
    has_pods = True

    def __init__(self, state: ControllerState, store: ControllerStore, pods: Pods, *, pace: Pace) -> None:
        """Wire it.

        Args:
            state: The controller's memory.
            store: Looks up the dependencies of jobs.
            pods: Creates, places and restarts pods.
            pace: How many jobs a tick handles.
        """
        self.pace = pace
        self._state = state
        self._store = store
        self._pods = pods
        self.jobs: dict[str, JobWork] = {}
        self.changed: Callable[[Job, JobWork], None] = lambda *_: None
        """Called with a job that may have changed for its owner."""

    def index(self, job: Job) -> None:
        """Note a job's dependencies before it has pods; its pods wait for places, not the job."""
        if after := self._awaited(job):
            self._state.waits.watch(job.id, KUBEJOB, after, job.met)

    def _awaited(self, job: Job) -> tuple[Dependency, ...]:
        """List the dependencies of a job without a set; empty once all are satisfied."""
        return () if job.child is not None or job.ready_at is not None else self._state.load_spec(job.spec).after

    def restore(self, snapshot: Snapshot, attempt_anyway: ForEach) -> None:
        """Restore the unfinished jobs."""
        records = snapshot.of(KubeJobRecord)
        for job in list(self._state.jobs.values()):
            if job.kind == KUBEJOB:
                attempt_anyway(job.id, partial(self._resume, job, records.get(job.id)))

    def _resume(self, job: Job, record: KubeJobRecord | None) -> None:
        if record is None:
            self.admit(job)
            return
        work = self.jobs[job.id] = JobWork(record, record)
        active = self._state.active.get(job.id)
        self._state.queue.add(KUBEJOB, job.id)
        self.changed(job, work)
        if active is None:
            return
        active.order = partial(self._pods.order, active, work)
        look, plan = self._pods.look(active, work, 0.0), self._plan(job)
        look.resume()
        self._pods.carry_out(active, work, look, 0.0)
        work.pod_names = {pod.record.run: name for name, pod in work.pods.items()}
        if plan.topology is not None and record.domain:
            self._pods.domains.keep(plan.topology, record.domain, job.id)

    def admit(self, job: Job) -> None:
        """Add a new job; one without a set begins at once."""
        if job.id in self.jobs:
            return
        suspended = job.child is None and self._plan(job).spec.suspend
        owner = "" if job.child is None else job.child.set_id
        record = KubeJobRecord(job.id, owner, created_at=job.submitted_at, present=False, suspended=suspended)
        work = self.jobs[job.id] = JobWork(record)
        if job.child is None:
            self._go_on(job, work, job.queued_at)

    def ask(self, request: Request, key: str, now: float) -> None:
        """Cancel, suspend, resume or preempt a job; a job of a set is stopped and started by its set only."""
        job, work = self._state.jobs[key], self.jobs.get(key)
        if request.kind is RequestKind.PREEMPT and key in self._state.active:
            self.take_place(key, Taking(Interruption.PREEMPT, node=request.payload), now)
        if work is not None and request.kind in {RequestKind.RELEASE, RequestKind.REPRIORITIZE}:
            self._heed(key, work, request.kind, now)
        if job.child is not None or work is None:
            return
        match request.kind:
            case RequestKind.CANCEL | RequestKind.HOLD if job.cancel_requested:
                pass
            case RequestKind.CANCEL_UNLESS_STARTED if job.started_at is not None:
                pass
            case RequestKind.CANCEL | RequestKind.CANCEL_UNLESS_STARTED:
                running = job.state is JobState.RUNNING
                self._state.put_job(evolve(job, cancel_requested=running, reason=request.cancel_reason, updated_at=now))
                self.delete(job.id, now)
            case RequestKind.HOLD | RequestKind.RELEASE:
                self.suspend(job.id, now, suspended=request.kind is RequestKind.HOLD)
            case RequestKind.SUBMIT | RequestKind.UPDATE | RequestKind.RESTART | RequestKind.DELETE | RequestKind.RETRY:
                pass  # The job exists already, and other requests do not concern jobs.
            case RequestKind.PREEMPT | RequestKind.REPRIORITIZE | RequestKind.CORDON | RequestKind.UNCORDON:
                pass
            case _:
                assert_never(request.kind)

    def _heed(self, job_id: str, work: JobWork, kinds: RequestKind, now: float) -> None:
        """Release pods that a policy holds, or move waiting pods in line by a new priority."""
        active = self._state.active.get(job_id)
        if active is not None:
            look = self._pods.look(active, work, now)
            if kinds is RequestKind.RELEASE:
                look.release()
            else:
                look.requeue()
            self._pods.carry_out(active, work, look, now)
        self._state.queue.add(KUBEJOB, job_id)

    def _go_on(self, job: Job, work: JobWork, now: float) -> None:
        """Begin a job without a set, unless it waits for other work or for a person."""
        if job.state is JobState.QUEUED:
            self._begin(job, evolve(work.record, present=True), now)
        elif job.state is JobState.WAITING and work.record.suspended:
            self._state.put_job(held(job, "suspended", now))

    def _look_waiting(self, job: Job, work: JobWork, now: float) -> None:
        """Begin a job whose dependencies are satisfied, or end it if one never can be."""
        advanced_job, after, waits = job, self._awaited(job), self._state.waits
        if after:
            waits.look_up(self._store, self._state.changes)
            advanced_job = advanced(job, after, waits.standings(after, job.met), now)
        if after and advanced_job.ready_at is not None:
            waits.leave(job.id, after)
        if advanced_job.terminal:
            self.finish(job.id, advanced_job.reason, now)
            return
        if advanced_job is not job:
            self._state.put_job(advanced_job)
        self._go_on(advanced_job, work, now)

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Begin a job for its owner."""
        self._begin(job, record_of(order, job, owner), now)

    def _begin(self, job: Job, record: KubeJobRecord, now: float) -> None:
        """Begin an attempt with a fresh record; its number follows from the restarts of the job and its set."""
        number = 1 + record.restart + record.job_restart
        work = self.jobs[job.id] = JobWork(record, self.jobs[job.id].stored)
        self._put(work, record)
        queued = job
        if job.child is not None:
            queued = evolve(
                job, state=JobState.QUEUED, reason="", attempt=number, retry_at=None, queued_at=now, updated_at=now
            )
            self._state.put_job(queued)
        attempt = Attempt(job.id, number, status_since=now, created_at=now, request=job.request)
        active = self._state.open_pods(queued, attempt)
        active.order = partial(self._pods.order, active, work)
        self._state.queue.add(KUBEJOB, job.id)
        self.changed(queued, work)

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """End an attempt and forget it: at once if nothing of it runs, otherwise once it has stopped."""
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
        look = self._pods.look(active, work, now)
        due = look.stop_all(again=force) or not look.pods
        self._pods.carry_out(active, work, look, now)
        if due:
            self._state.queue.add(KUBEJOB, job_id)
        else:
            self._apply_outlook(active, work, look, now)
            self.changed(active.job, work)

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Stop a job's pods and keep the job, or resume it."""
        job, work = self._state.jobs[job_id], self.jobs[job_id]
        failed = work.record.failed_in_place if suspended else ""  # A resumed job begins anew.
        self._put(work, evolve(work.record, suspended=suspended, failed_in_place=failed))
        if job.child is None and not work.record.present:
            spec = self._state.load_spec(job.spec)
            self._state.put_job(held(job, "suspended", now) if suspended else released(spec, job, now))
        self._state.queue.add(KUBEJOB, job_id)

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Stop the pods concerned; the Job's own rules for disrupted pods apply."""
        work, active = self.jobs[job_id], self._state.active[job_id]
        look = self._pods.look(active, work, now)
        look.evict(taking.why, taking.reason, node=taking.node, uid=taking.uid)
        self._pods.carry_out(active, work, look, now)
        self._put(work, work.record)  # Include the places assigned in this tick.
        self._state.queue.add(KUBEJOB, job_id)

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Change a job's size."""
        work = self.jobs[job_id]
        self._put(work, evolve(work.record, parallelism=parallelism, completions=completions))
        self._state.queue.add(KUBEJOB, job_id)

    def finish(self, job_id: str, otherwise: str, now: float, *, ended: Attempt | None = None) -> None:
        """End a job for good whose attempt is over or never began; ``ended`` is the attempt if its end is the job's."""
        job, work = self._state.jobs[job_id], self.jobs.pop(job_id)
        if after := self._awaited(job):
            self._state.waits.leave(job.id, after)
        self._state.put_job(ended_job(job, work.record, otherwise, now), ended)
        ttl_s = None if job.child is not None else self._plan(job).spec.ttl_s
        if ttl_s is not None:
            self._put(work, evolve(work.record, expires_at=now + ttl_s))

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Start pods that got their places."""
        looks: dict[str, tuple[Active, JobWork, PodReconciler]] = {}
        for request in keys:
            active, work, name = self._pods.waiting.pop(request)
            if active.attempt.job_id not in looks:
                looks[active.attempt.job_id] = active, work, self._pods.look(active, work, now)
            (devices,) = self._state.capacity.grants.get(request, ((),))
            looks[active.attempt.job_id][2].start(name, request, places[request][0], devices)
        for active, work, look in looks.values():
            self._pods.carry_out(active, work, look, now)
            self._put(work, work.record)
            self._apply_outlook(active, work, look, now)
            if look.facts.plan.in_place:  # Its set asks which of its pods have had a program.
                self.changed(active.job, work)

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Judge a pod that will get no place; for waiting pods, their job's reason says why."""
        if never:
            active, work, name = self._pods.waiting[key]
            look = self._pods.look(active, work, now)
            look.give_up(name)
            self._pods.carry_out(active, work, look, now)
            self._state.queue.add(KUBEJOB, active.attempt.job_id)

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Look at jobs that have changed or are due."""
        for job_id in keys:
            work, active = self.jobs.get(job_id), self._state.active.get(job_id)
            if work is None:
                continue
            job = self._state.jobs[job_id]
            if active is not None:
                self._look(active, work, now)
            elif not work.record.present and job.child is None:
                self._look_waiting(job, work, now)
            elif not work.record.present:
                # Its attempt is gone and was not recreated at once: it waits for its set.
                self._put_status(job, status_of(work.record, in_set=True), now)

    def _look(self, active: Active, work: JobWork, now: float) -> None:
        """Look at a job's pods, store the result, and have it carried out."""
        look = self._pods.look(active, work, now)
        look.reconcile()
        self._pods.carry_out(active, work, look, now)
        if work.record.deleting_since is None:
            self._put(work, work.record)
            if work.record.state.finished_at is not None:
                self._finished(active, work, now)
            elif work.record.suspended and not work.pods:
                self._release(work, active.job)
        elif not work.pods:
            self._gone(work, now, ended=self._end(active, work, now))
        if self._state.active.get(work.record.id) is active:
            self._apply_outlook(active, work, look, now)
            self.changed(active.job, work)

    def _apply_outlook(self, active: Active, work: JobWork, look: PodReconciler, now: float) -> None:
        """Note the state of a job that needs no look until something happens, or until a time."""
        job_id, look.record = active.attempt.job_id, work.record
        outlook = look.outlook(awaits_domain=job_id in self._pods.awaiting_domain)
        if outlook.steps:
            self._state.steps(active, outlook.steps)
        job = active.job
        if outlook.job is not None and outlook.job.state is not JobState.RUNNING:
            self._put_status(job, outlook.job, now)
        elif outlook.job is not None and job.state is not JobState.RUNNING:
            self._state.pods_started(active, running_job(job, active.attempt.number, now), outlook.live)
        elif job.reason.startswith(PODS_WAIT) and not outlook.waits:
            self._state.put_job(evolve(job, reason="", updated_at=now))
        if active.job.state is JobState.HELD:
            self._release(work, active.job)  # Others may use its topology domain while it waits for a person.
        self._state.queue.wake_at(KUBEJOB, job_id, outlook.look_at)

    def _put_status(self, job: Job, status: JobStatus, now: float) -> None:
        changed = with_status(job, status, now)
        if changed is not job:
            self._state.put_job(changed)

    def _end(self, active: Active, work: JobWork, now: float) -> Attempt:
        step = last_step(work.record, active.attempt, work.last_failure, now, in_set=active.job.child is not None)
        self._state.steps(active, (step,))
        return step[1]

    def _finished(self, active: Active, work: JobWork, now: float) -> None:
        """End the attempt of a completed or failed job, and the job too if it has no set."""
        job_id, ended = active.attempt.job_id, self._end(active, work, now)
        self._state.queue.wake_at(KUBEJOB, job_id, None)
        self._release(work, active.job)
        if active.job.child is None:
            self.finish(job_id, "", now, ended=ended)
            return
        self._put_status(active.job, status_of(work.record, in_set=True), now)
        self.changed(self._state.jobs[job_id], work)

    def _gone(self, work: JobWork, now: float, *, ended: Attempt | None = None) -> None:
        """Forget an attempt of which nothing is left."""
        job = self._state.jobs[work.record.id]
        self._release(work, job)
        self._state.queue.wake_at(KUBEJOB, job.id, None)
        state = evolve(work.record.state, active=0, ready=0, terminating=0)
        self._put(work, evolve(work.record, present=False, deleting_since=None, state=state, pods=()))
        if job.child is None:
            self._put(work, evolve(work.record, state=KubeJobState()))
            self.finish(job.id, job.reason or "cancelled", now, ended=ended)
            return
        self._state.queue.defer(KUBEJOB, job.id)
        self.changed(job, work)

    def _release(self, work: JobWork, job: Job) -> None:
        self._pods.awaiting_domain.pop(job.id, None)
        if work.record.domain:
            self._pods.domains.release(self._plan(job).topology, work.record.domain)
            self._put(work, evolve(work.record, domain=""))

    def _put(self, work: JobWork, record: KubeJobRecord) -> None:
        """Change a job's record, and write it if it differs from what is stored."""
        work.record = record
        if record != work.stored:
            work.stored = record
            self._state.put_workload(record)

    def _plan(self, job: Job) -> PodPlan:
        return self._pods.plan(job, self._state.load_spec(job.spec))
