"""Kubernetes Jobs: jobs whose pods come and go one by one, as ``domain.workloads.kubejob`` decides."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, assert_never

from holdfast.controller.kind import Taking
from holdfast.controller.workloads.memory import JobWork, failure_of
from holdfast.controller.workloads.plans import current_spec
from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import Ending, Interruption
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.kubejob.decisions import after_its_pod
from holdfast.domain.workloads.kubejob.model import KubeJobState, StartPod, StopPod
from holdfast.domain.workloads.kubejob.observed import pod_of
from holdfast.domain.workloads.kubejob.reconcile import reconcile
from holdfast.domain.workloads.kubejob.standing import final, standing
from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
from holdfast.ports.requests import RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.attempts import PodAttempts
    from holdfast.controller.workloads.plans import Plans, PodPlan
    from holdfast.controller.workloads.pods import Pods
    from holdfast.domain.job import Job
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.children import CreateChild
    from holdfast.domain.workloads.kubejob.model import JobCondition, JobResult
    from holdfast.ports.requests import Request
    from holdfast.ports.store import Snapshot


class KubeJobs:
    """Every job that is a Kubernetes Job, in a job set or by itself."""

    name = KUBEJOB
    has_pods = True

    def __init__(
        self,
        state: ControllerState,
        plans: Plans,
        pods: Pods,
        attempts: PodAttempts,
        catalog: PolicyCatalog,
        *,
        pace: Pace,
    ) -> None:
        """Remember what it works with.

        Args:
            state: The controller's memory.
            plans: What pods are made from.
            pods: Places and restarts them.
            attempts: Keeps attempts and states in step.
            catalog: What the operator has set.
            pace: How many jobs a tick works on.
        """
        self.pace = pace
        self._state = state
        self._plans = plans
        self._pods = pods
        self._waiting = attempts.waiting
        self._catalog = catalog
        self._attempts = attempts
        self.jobs: dict[str, JobWork] = {}
        self.changed: Callable[[Job, JobWork], None] = lambda *_: None
        """Called with a job that may look different to its owner."""

    def index(self, job: Job) -> None:
        """Note what it waits for; for places its pods wait, not the job."""
        if job.child is None:
            self._waiting.index(job)

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Restore the jobs that were in progress when the last controller stopped."""
        records = snapshot.of(KubeJobRecord)
        for job in list(self._state.jobs.values()):
            if job.kind == KUBEJOB:
                each(job.id, partial(self._resume, job, records.get(job.id)))

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
        active.order = partial(self._plans.order, active, work)
        plan = self._plan(job)
        self._pods.resume(active, work, plan)
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
        """Cancel, suspend, resume or preempt a job; only its set stops or starts a job of a set."""
        job, work = self._state.jobs[key], self.jobs.get(key)
        if request.kind is RequestKind.PREEMPT and key in self._state.active:
            self.take_place(key, Taking(Interruption.PREEMPT, node=request.payload), now)
        if work is not None and request.kind in {RequestKind.RELEASE, RequestKind.REPRIORITIZE}:
            self._pods.heed(work, request.kind)
            self._state.queue.add(KUBEJOB, key)
        if job.child is not None or work is None:
            return
        match request.kind:
            case RequestKind.CANCEL | RequestKind.HOLD if job.cancel_requested:
                pass
            case RequestKind.CANCEL:
                running = job.state is JobState.RUNNING
                self._state.put_job(evolve(job, cancel_requested=running, reason=request.cancel_reason, updated_at=now))
                self.delete(job.id, now)
            case RequestKind.HOLD | RequestKind.RELEASE:
                self.suspend(job.id, now, suspended=request.kind is RequestKind.HOLD)
            case RequestKind.SUBMIT | RequestKind.UPDATE | RequestKind.RESTART | RequestKind.DELETE | RequestKind.RETRY:
                pass  # it exists already, and nobody asks these of a job
            case RequestKind.PREEMPT | RequestKind.REPRIORITIZE | RequestKind.CORDON | RequestKind.UNCORDON:
                pass
            case _:
                assert_never(request.kind)

    def _go_on(self, job: Job, work: JobWork, now: float) -> None:
        """Begin a job without a set, unless it waits for other work, or for a person since it did."""
        if job.state is JobState.QUEUED:
            self._begin(job, evolve(work.record, present=True), now)
        elif job.state is JobState.WAITING and work.record.suspended:
            self._state.put_job(self._waiting.steered(job, now, suspended=True))

    def _look_waiting(self, job: Job, work: JobWork, now: float) -> None:
        """Begin a job once all has happened that it waits for, or end it if that can never be."""
        found = self._waiting.look(job, now)
        if found.terminal:
            self.finish(job.id, found.reason, now)
            return
        if found is not job:
            self._state.put_job(found)
        self._go_on(found, work, now)

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Begin a job for its owner."""
        parallelism, completions = order.size or (None, None)
        record = KubeJobRecord(
            job.id,
            owner=owner.id,
            created_at=job.submitted_at,
            generation=owner.generation,
            restart=order.restart,
            job_restart=order.job_restart,
            suspended=order.suspended,
            parallelism=parallelism,
            completions=completions,
        )
        self._begin(job, record, now)

    def _begin(self, job: Job, record: KubeJobRecord, now: float) -> None:
        """Begin an attempt at a job with a fresh record; its number follows from its own and its set's restarts."""
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
        active.order = partial(self._plans.order, active, work)
        self._state.queue.add(KUBEJOB, job.id)
        self.changed(queued, work)

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """End an attempt and forget it: at once when nothing of it runs, else once that has stopped."""
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
        look = not work.pods
        for pod in list(work.pods.values()):
            look = self._pods.stop(active, work, pod, now, again=force) or look
        if look:
            self._state.queue.add(KUBEJOB, job_id)
        else:
            self._stand(active, work, now)

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Stop a job's pods and keep the job, or let it go on."""
        job, work = self._state.jobs[job_id], self.jobs[job_id]
        failed = work.record.failed_in_place if suspended else ""  # what resumes begins anew
        self._put(work, evolve(work.record, suspended=suspended, failed_in_place=failed))
        if job.child is None and not work.record.present:
            self._state.put_job(self._waiting.steered(job, now, suspended=suspended))
        self._state.queue.add(KUBEJOB, job_id)

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Stop the pods it is about; what follows is the Job's own rules for pods that were disrupted."""
        work = self.jobs[job_id]
        self._pods.evict(self._state.active[job_id], work, taking, now)
        self._put(work, evolve(work.record, pods=work.records()))  # with what is given to others in this tick
        self._state.queue.add(KUBEJOB, job_id)

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Give a job another size."""
        work = self.jobs[job_id]
        self._put(work, evolve(work.record, parallelism=parallelism, completions=completions))
        self._state.queue.add(KUBEJOB, job_id)

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """End for good a job whose attempt is over or never began."""
        job, work = self._state.jobs[job_id], self.jobs.pop(job_id)
        if job.child is None:
            self._waiting.leave(job)
        state, reason, _ = final(work.record.state if work.record.present else KubeJobState(), otherwise)
        if work.record.failed_in_place:
            state, reason = JobState.FAILED, work.record.failed_in_place
        ended = evolve(job, state=state, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        self._state.put_job(evolve(ended, cancel_requested=job.cancel_requested or state is JobState.CANCELLED))
        ttl_s = None if job.child is not None else self._plan(job).spec.ttl_s
        if ttl_s is not None:
            self._put(work, evolve(work.record, expires_at=now + ttl_s))

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Hand out pods that got their places."""
        placed = {}
        for placement_id in keys:
            active, work, pod = self._pods.waiting.pop(placement_id)
            self._pods.start(active, work, pod, placement_id, places[placement_id][0], now)
            placed[active.attempt.job_id] = active, work
        for active, work in placed.values():
            self._put(work, evolve(work.record, pods=work.records()))
            self._stand(active, work, now)

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Do nothing: the job's reason says what its pods wait for."""

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
                # Its attempt is gone and it was not recreated at once: it waits for its set.
                self._attempts.put(job, standing(work.record, in_set=True), now)

    def _look(self, active: Active, work: JobWork, now: float) -> None:
        """Bring a job's pods up to date, decide what follows, store that, and have it carried out."""
        plan = self._plans.of(active.job, active.spec)
        self._attempts.refresh(work, active, plan, now)
        self._pods.await_next_programs(active, work, plan, now)
        if work.record.deleting_since is None:
            self._sync(active, work, plan, now)
        else:
            # What was cleared since the record was last written comes back after a restart.
            for pod in list(work.pods.values()):
                self._pods.stop(active, work, pod, now)
            self._pods.clear(active, work)
            if not work.pods:
                why = "deleted by its job set" if active.job.child is not None else "cancelled"
                failed = work.record.failed_in_place
                ending = Ending.FAILED if failed else Ending.CANCELLED
                self._attempts.end(active, ending, failed or why, now, work=work if failed else None)
                self._gone(work, now)
        if self._state.active.get(work.record.id) is active:
            self._stand(active, work, now)

    def _stand(self, active: Active, work: JobWork, now: float) -> None:
        """Note how a job is, and that it needs no look until something happens, or until a time."""
        wake_at = self._attempts.stand(active, work, now)
        job_id = active.attempt.job_id
        if active.job.state is JobState.HELD:
            self._release(work, active.job)  # others may have its topology domain while it waits for a person
        self._state.queue.discard(KUBEJOB, job_id)
        self._state.queue.wake_at(KUBEJOB, job_id, wake_at)
        self.changed(active.job, work)

    def _sync(self, active: Active, work: JobWork, plan: PodPlan, now: float) -> None:
        while True:
            found, gone = self._decide(active, work, plan, now), False
            for order in found.orders:
                if isinstance(order, StopPod):
                    gone = self._pods.stop(active, work, work.pods[order.name], now) or gone
            if not gone:  # else others may start instead
                break
        for order in found.orders:
            if isinstance(order, StartPod):
                self._pods.add(active, work, plan, order)
        self._pods.start_idle(active, work, plan, now)
        self._put(work, evolve(work.record, state=found.state, pods=work.records()))
        work.wake_at = found.wake_at
        if found.state.finished is not None:
            self._finished(active, work, found.state.finished, now)
        elif work.record.suspended and not work.pods:
            self._release(work, active.job)

    def _decide(self, active: Active, work: JobWork, plan: PodPlan, now: float) -> JobResult:
        """Ask what follows from the pods as they are now, and keep what was decided about those that failed."""
        spec, state = current_spec(plan, work.record), work.record.state
        container, indexed = plan.program.container, spec.indexed
        pods = []
        for name, pod in work.pods.items():
            told, shown = name in state.counted, pod.shown
            if shown is None or shown[0] is not pod.record or shown[1] is not pod.run or shown[2] is not told:
                seen = pod_of(pod.record, pod.run, container=container, indexed=indexed, told=told)
                shown = pod.shown = (pod.record, pod.run, told, seen)
            pods.append(shown[3])
        found = reconcile(spec, state, pods, now, cap=self._catalog.catalogue.settings.global_max_retries)
        work.record = evolve(work.record, state=found.state)
        for decided in found.decisions:
            pod, decision = work.pods[decided.pod], decided.decision
            run = pod.run
            if run is None or run.outcome is None:
                continue
            failure = run.failure or failure_of(pod, run, container, self._catalog.categories)
            if pod.declined is not None:
                decision = after_its_pod(decision, pod.declined)
            pod.run = evolve(run, failure=failure, decision=decision)
            self._state.note_run(active, pod.run)
        self._pods.clear(active, work)
        return found

    def _finished(self, active: Active, work: JobWork, ended: JobCondition, now: float) -> None:
        """End the attempt of a job that is complete or has failed, and the job too if it has no set."""
        job_id = active.attempt.job_id
        if ended.type == "Complete":
            self._attempts.end(active, Ending.SUCCEEDED, ended.message, now)
        else:
            self._attempts.end(active, Ending.FAILED, f"{ended.reason}: {ended.message}", now, work=work)
        self._state.queue.wake_at(KUBEJOB, job_id, None)
        self._release(work, active.job)
        if active.job.child is None:
            self.finish(job_id, "", now)
            return
        self._attempts.put(active.job, standing(work.record, in_set=True), now)
        self.changed(self._state.jobs[job_id], work)

    def _gone(self, work: JobWork, now: float) -> None:
        """Forget an attempt of which nothing is left."""
        job = self._state.jobs[work.record.id]
        self._release(work, job)
        self._state.queue.wake_at(KUBEJOB, job.id, None)
        state = evolve(work.record.state, active=0, ready=0, terminating=0)
        self._put(work, evolve(work.record, present=False, deleting_since=None, state=state, pods=()))
        if job.child is None:
            self._put(work, evolve(work.record, state=KubeJobState()))
            self.finish(job.id, job.reason or "cancelled", now)
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
        return self._plans.of(job, self._state.spec(job))
