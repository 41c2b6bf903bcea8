"""Moves jobs made of pods on: counts what ended, replaces pods, ends the job.

Decides in which order a look is carried out, and that it is stored before anything starts; what follows from how pods
look is ``domain.podjob``'s. Whether a program runs again in its place is ``again``'s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.controller.observations import lost
from holdfast.controller.sets.line import fresh_uid
from holdfast.controller.sets.memory import JobWork, PodWork, Timers
from holdfast.controller.sets.plans import current_spec, order_writer
from holdfast.controller.world import Step
from holdfast.domain.classify import classify
from holdfast.domain.failure import Cause, EndedBy, Failure
from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import (
    ENDING_STATUS,
    PROMOTE_TO_RUNNING,
    RUN_TERMINAL,
    AttemptStatus,
    Ending,
    Outcome,
    RunStatus,
)
from holdfast.domain.podjob.model import PodJobState
from holdfast.domain.podjob.observed import pod_of
from holdfast.domain.podjob.standing import Standing, final, standing
from holdfast.domain.podjob.stored import PodJob, PodRecord
from holdfast.domain.podjob.sync import sync

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.controller.sets.again import Again
    from holdfast.controller.sets.line import PodLine
    from holdfast.controller.sets.plans import Plans, PodPlan
    from holdfast.controller.world import Active, World
    from holdfast.domain.category_match import CompiledCategories
    from holdfast.domain.job import Job, Run
    from holdfast.domain.podjob.model import PodJobSpec, PodOrder, Synced
    from holdfast.ports.store import Snapshot


class PodJobs:
    """The jobs made of pods."""

    def __init__(
        self,
        world: World,
        line: PodLine,
        plans: Plans,
        again: Again,
        *,
        categories: Callable[[], CompiledCategories],
        patience_s: float,
    ) -> None:
        """Wire it.

        Args:
            world: The controller's memory.
            line: Where pods wait for a place.
            plans: What pods are made from.
            again: Says whether a program that failed runs again in its place.
            categories: The operator's failure categories.
            patience_s: How long after its grace a stopped program may take to be confirmed gone.
        """
        self._world = world
        self._line = line
        self._plans = plans
        self._again = again
        self._categories = categories
        self._patience_s = patience_s
        self.jobs: dict[str, JobWork] = {}
        self.timers = Timers()
        self.changed: dict[str, None] = {}
        """Ids of jobs that look different than when their sets last looked."""
        self.touched: dict[str, None] = {}
        """Ids of jobs to look at."""

    def restore(self, snapshot: Snapshot) -> None:
        """Take in the jobs made of pods that were going on when the last controller stopped."""
        for job in self._world.jobs.values():
            if self._world.has_pods(job):
                self._resume(job, snapshot.pod_jobs.get(job.id))

    def _resume(self, job: Job, record: PodJob | None) -> None:
        if record is None:
            self.admit(job)
            return
        work = self.jobs[job.id] = JobWork(record, record)
        active = self._world.active.get(job.id)
        self.touched[job.id] = self.changed[job.id] = None
        if active is None:
            return
        active.order = order_writer(active, work, self._plans)
        for each in record.pods:
            work.pods[each.name] = PodWork(each, active.runs.get(each.run))
        plan = self._plan(job)
        if plan.topology is not None and record.domain:
            self._line.domains.keep(plan.topology, record.domain, job.id)

    def admit(self, job: Job) -> None:
        """Take in a job that is new; one of no set begins at once."""
        if job.id in self.jobs:
            return
        suspended = job.child is None and self._plan(job).spec.suspend
        work = self.jobs[job.id] = JobWork(PodJob(job_id=job.id, present=False, suspended=suspended))
        if job.child is None:
            self.create(job, work.record, job.queued_at)

    def create(self, job: Job, record: PodJob, now: float) -> None:
        """Begin an attempt at a job; its number follows from how often it and its set were restarted."""
        number = 1 + record.restart + record.job_restart
        work = self.jobs[job.id]
        work.pods, work.grace_s, work.last_failure = {}, None, None
        self._put(work, replace(record, present=True, deleting_since=None, state=PodJobState(), pods=()))
        queued = job
        if job.child is not None:
            queued = replace(
                job, state=JobState.QUEUED, reason="", attempt=number, retry_at=None, queued_at=now, updated_at=now
            )
            self._world.put_job(queued)
        attempt = Attempt(job.id, number, status_since=now, created_at=now, request=job.request)
        active = self._world.open_pods(queued, attempt)
        active.order = order_writer(active, work, self._plans)
        self.touched[job.id] = self.changed[job.id] = None

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """End an attempt and let go of it: at once when nothing of it runs, else when that has stopped."""
        work, active = self.jobs[job_id], self._world.active.get(job_id)
        if active is None:
            self._gone(work, now)
            return
        if force:
            work.grace_s = 0.0
        if work.record.deleting_since is None:
            self._put(work, replace(work.record, deleting_since=now))
        self._stop(active, work, list(work.pods), now, again=force)
        self.touched[job_id] = None

    def suspend(self, job_id: str, *, suspended: bool) -> None:
        """Stop a job's pods and keep it, or let it go on."""
        work = self.jobs[job_id]
        self._put(work, replace(work.record, suspended=suspended))
        self.touched[job_id] = None

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Give a job another size."""
        work = self.jobs[job_id]
        self._put(work, replace(work.record, parallelism=parallelism, completions=completions))
        self.touched[job_id] = None

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """End a job for good whose attempt is over, or never was."""
        job, work = self._world.jobs[job_id], self.jobs.pop(job_id)
        self.timers.set(job_id, None)
        state, reason, _ = final(work.record.state if work.record.present else PodJobState(), otherwise)
        cancelled = state is JobState.CANCELLED
        ended = replace(job, state=state, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        self._world.put_job(replace(ended, cancel_requested=job.cancel_requested or cancelled))

    def placed(self, tickets: Iterable[tuple[str, tuple[str, str]]], now: float) -> None:
        """Hand out pods that got their places."""
        for ticket, place in tickets:
            active, _ = self._line.place(ticket, place, now)
            self.touched[active.attempt.job_id] = None

    def sweep(self) -> None:
        """Look again at jobs that wait for what only others can give back."""
        self.touched.update(self._line.homeless)

    def advance(self, now: float) -> None:
        """Look at every job something happened to, or whose time has come."""
        self.touched.update(dict.fromkeys(self.timers.due(now)))
        while self.touched:
            batch, self.touched = self.touched, {}
            for job_id in batch:
                self._look(job_id, now)

    def _look(self, job_id: str, now: float) -> None:
        work, active = self.jobs.get(job_id), self._world.active.get(job_id)
        if work is None or active is None or not active.pods:
            return
        self._refresh(work, active, now)
        plan = self._plan(active.job)
        spec = current_spec(plan, work.record)
        self._again.settle(active, work, plan, now)
        if work.record.deleting_since is not None:
            self._clear(active, work)
            if not work.pods:
                self._end(active, Ending.CANCELLED, None, "deleted by its job set", now)
                self._gone(work, now)
                return
        else:
            self._sync(active, work, plan, spec, now)
        if job_id in self.jobs and self._world.active.get(job_id) is active:
            self._stand(active, work, now)

    def _refresh(self, work: JobWork, active: Active, now: float) -> None:
        """Bring pods up to date with their runs; a program that cannot be confirmed gone is given up in the end."""
        for pod in work.pods.values():
            if pod.run is None:
                continue
            run = active.runs.get(pod.run.uid, pod.run)
            due = self._given_up_at(active, run)
            if due is not None and due <= now and run.status not in RUN_TERMINAL:
                outcome = lost(run, now)
                run = replace(run, status=RunStatus.ERROR, status_since=now, ended_at=now, outcome=outcome)
                self._world.put_run(active, run)
            pod.run = run
            if run.status in RUN_TERMINAL and _failed_by_itself(run):
                work.last_failure = (run.rank, run.outcome) if run.outcome is not None else work.last_failure

    def _given_up_at(self, active: Active, run: Run) -> float | None:
        if run.status is RunStatus.TERMINATING:
            return run.status_since + active.spec.grace_s + self._patience_s
        if run.status is RunStatus.CREATING and PROMOTE_TO_RUNNING.timeout_s is not None:
            return run.status_since + PROMOTE_TO_RUNNING.timeout_s
        return None

    def _sync(self, active: Active, work: JobWork, plan: PodPlan, spec: PodJobSpec, now: float) -> None:
        synced = self._synced(active, work, plan, spec, now)
        for _ in range(len(work.pods) + 2):
            if not synced.delete or not self._stop(active, work, synced.delete, now):
                break
            # Pods that had no place are gone at once: look again.
            synced = self._synced(active, work, plan, spec, now)
        for order in synced.create:
            self._begin(active, work, order)
        for pod in work.pods.values():
            if pod.run is None and not pod.ticket and self._again.may_start(active.job, pod, plan, now):
                self._again.start(active, work, pod, plan, now)
        self._put(work, replace(work.record, state=synced.state, pods=_records(work.pods.values())))
        work.wake_at = synced.wake_at
        if synced.state.finished is not None:
            self._finished(active, work, now)

    def _synced(self, active: Active, work: JobWork, plan: PodPlan, spec: PodJobSpec, now: float) -> Synced:
        container = plan.program.container
        counted = work.record.state.counted
        pods = [
            pod_of(pod.record, pod.run, container=container, indexed=spec.indexed, told=name in counted)
            for name, pod in work.pods.items()
        ]
        found = sync(spec, work.record.state, pods, now)
        work.record = replace(work.record, state=found.state)
        self._clear(active, work)
        return found

    def _clear(self, active: Active, work: JobWork) -> None:
        """Forget pods that have ended; each was counted in the look before."""
        for name in [name for name, pod in work.pods.items() if pod.run and pod.run.status in RUN_TERMINAL]:
            pod = work.pods.pop(name)
            if pod.run is not None:
                self._world.forget_run(active, pod.run.uid)

    def _begin(self, active: Active, work: JobWork, order: PodOrder) -> None:
        """Make a pod; its name is as fresh as its first ticket will be."""
        rank = order.index if order.index is not None else _free_slot(work)
        name = fresh_uid(active, rank)
        record = PodRecord(name=name, rank=rank, index_failures=order.index_failures, index_ignored=order.index_ignored)
        work.pods[name] = PodWork(record)

    def _stop(self, active: Active, work: JobWork, pods: Sequence[str], now: float, *, again: bool = False) -> bool:
        """Stop pods; returns whether any of them had no program and is gone at once."""
        dropped = False
        for name in pods:
            pod = work.pods[name]
            if pod.run is None:
                self._line.remove(pod)
                self._again.forget(pod)
                del work.pods[name]
                dropped = True
            elif pod.run.status not in RUN_TERMINAL and (again or pod.run.status is not RunStatus.TERMINATING):
                pod.run = pod.run.entered(RunStatus.TERMINATING, now)
                self._world.put_run(active, pod.run)
        return dropped

    def _stand(self, active: Active, work: JobWork, now: float) -> None:
        """Bring the attempt's status and the job's state in line with its pods."""
        self._move(active, work, now)
        job = active.job
        live = [pod.run for pod in work.pods.values() if pod.run is not None]
        waiting = any(pod.ticket for pod in work.pods.values()) or job.id in self._line.homeless
        found = standing(
            work.record, in_set=job.child is not None, placed=bool(live), waiting=waiting, wake_at=self._wake_at(work)
        )
        if found.state is JobState.RUNNING and job.state is not JobState.RUNNING:
            active.job = replace(
                job,
                state=found.state,
                reason="",
                attempt=active.attempt.number,
                retry_at=None,
                started_at=job.started_at or now,
                updated_at=now,
            )
            self._world.pods_started(active, live)
        elif found.state is not job.state or (found.reason and found.reason != job.reason):
            self._put_standing(job, found, now)
        self.timers.set(job.id, self._next_look(active, work))
        self.changed[job.id] = None

    def _put_standing(self, job: Job, found: Standing, now: float) -> None:
        state, reason, retry_at = found
        queued_at = now if state is JobState.QUEUED else job.queued_at
        moved = replace(job, state=state, reason=reason, retry_at=retry_at, queued_at=queued_at, updated_at=now)
        self._world.put_job(moved)

    def _move(self, active: Active, work: JobWork, now: float) -> None:
        status = active.attempt.status
        running = any(pod.run is not None and pod.run.status is RunStatus.RUNNING for pod in work.pods.values())
        if status is AttemptStatus.PENDING and running:
            self._enter(active, AttemptStatus.RUNNING, "PromoteToRunning", now)
        ending = work.record.deleting_since is not None or work.record.state.condition("FailureTarget") is not None
        if ending and active.attempt.status in {AttemptStatus.PENDING, AttemptStatus.RUNNING}:
            self._enter(active, AttemptStatus.TERMINATING, "StopPods", now)

    def _enter(self, active: Active, status: AttemptStatus, phase: str, now: float) -> None:
        self._world.record(active, Step(phase, Outcome.SUCCESS, now), status)
        entered = active.attempt.entered(status, now)
        if status is AttemptStatus.RUNNING:
            entered = replace(entered, started_at=now)
        self._world.put_attempt(active, entered)
        self._world.touched.pop(active.attempt.job_id, None)

    def _wake_at(self, work: JobWork) -> float | None:
        due = [pod.record.due for pod in work.pods.values() if pod.record.due is not None]
        return min([*due, *([work.wake_at] if work.wake_at is not None else [])], default=None)

    def _next_look(self, active: Active, work: JobWork) -> float | None:
        found = [self._wake_at(work)]
        found += [self._given_up_at(active, pod.run) for pod in work.pods.values() if pod.run is not None]
        return min((at for at in found if at is not None), default=None)

    def _finished(self, active: Active, work: JobWork, now: float) -> None:
        """End the attempt of a job that is complete or has failed, and with it a job of no set."""
        ended = work.record.state.finished
        if ended is None:
            return
        job_id = active.attempt.job_id
        if ended.type == "Complete":
            self._end(active, Ending.SUCCEEDED, None, ended.message, now)
        else:
            failure = self._failure(work, ended.message, now)
            self._end(active, Ending.FAILED, failure, f"{ended.reason}: {ended.message}", now)
        self.timers.set(job_id, None)
        self._release(work, active.job)
        if active.job.child is None:
            self.finish(job_id, "", now)
            return
        self._put_standing(active.job, standing(work.record, in_set=True), now)
        self.changed[job_id] = None

    def _failure(self, work: JobWork, message: str, now: float) -> Failure:
        if work.last_failure is None:
            return Failure(Cause.UNKNOWN, frozenset(), message=message, failed_at=now)
        rank, outcome = work.last_failure
        return classify(outcome, rank=rank, categories=self._categories())

    def _end(self, active: Active, ending: Ending, failure: Failure | None, message: str, now: float) -> None:
        if ending is Ending.CANCELLED and active.attempt.started_at is None:
            ending = Ending.NEVER_STARTED
        attempt = replace(
            active.attempt,
            status=ENDING_STATUS[ending],
            status_since=now,
            ended_at=now,
            ending=ending,
            failure=failure,
            message=message,
        )
        self._world.record(active, Step("EndJob", Outcome.SUCCESS, now, message=message), attempt.status)
        self._world.put_attempt(active, attempt)

    def _gone(self, work: JobWork, now: float) -> None:
        """Let go of an attempt nothing is left of."""
        job = self._world.jobs[work.record.job_id]
        self._release(work, job)
        self.timers.set(job.id, None)
        self._put(work, replace(work.record, present=False, deleting_since=None, pods=()))
        if job.child is None:
            self._put(work, replace(work.record, state=PodJobState()))
            self.finish(job.id, job.reason or "cancelled", now)
            return
        self.changed[job.id] = None
        if job.state is not JobState.WAITING:
            self._put_standing(job, standing(work.record, in_set=True), now)

    def _release(self, work: JobWork, job: Job) -> None:
        self._line.homeless.pop(job.id, None)
        if work.record.domain:
            self._line.domains.release(self._plan(job).topology, work.record.domain)
            self._put(work, replace(work.record, domain=""))

    def _put(self, work: JobWork, record: PodJob) -> None:
        """Change what is remembered of a job, and write it down if that is news."""
        work.record = record
        if record != work.stored:
            work.stored = self._world.changes.pod_jobs[record.job_id] = record

    def _plan(self, job: Job) -> PodPlan:
        return self._plans.of(job, self._world.spec(job).kube)


def _failed_by_itself(run: Run) -> bool:
    return run.outcome is not None and not run.outcome.succeeded and run.outcome.ended_by is not EndedBy.CASCADE


def _free_slot(work: JobWork) -> int:
    taken = {pod.record.rank for pod in work.pods.values()}
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def _records(pods: Iterable[PodWork]) -> tuple[PodRecord, ...]:
    """Return what must outlive the controller: pods that had a program. The others are made anew."""
    return tuple(pod.record for pod in pods if pod.record.run)
