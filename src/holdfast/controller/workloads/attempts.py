"""Keeps the attempts and states of jobs made of pods in step with their pods."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from holdfast.controller.observations import lost
from holdfast.controller.workloads.memory import failure_of
from holdfast.domain.failure import Cause, EndedBy, Failure, FailureCondition
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import (
    ENDING_STATUS,
    PROMOTE_TO_RUNNING,
    RUN_TERMINAL,
    AttemptStatus,
    Ending,
    Outcome,
    RunStatus,
    Step,
)
from holdfast.domain.lifecycle.engine import resolve_options
from holdfast.domain.record import evolve
from holdfast.domain.workloads.kubejob.observed import failed_by_itself
from holdfast.domain.workloads.kubejob.reconcile import DEADLINE
from holdfast.domain.workloads.kubejob.standing import END_PODS, NO_PODS, PodsAre, moves, standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.controller.active import Active
    from holdfast.controller.policy_catalog import PolicyCatalog
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.memory import JobWork
    from holdfast.controller.workloads.plans import PodPlan
    from holdfast.controller.workloads.waiting import WaitingJobs
    from holdfast.domain.job import Job, Run
    from holdfast.domain.workloads.kubejob.standing import Standing
    from holdfast.domain.workloads.kubejob.stored import PodRecord


_DOMAINS_EVERY_S = 1.0
"""How often a job looks for a free topology domain; it is not told when one is given back."""


class PodAttempts:
    """Attempts whose runs are pods."""

    def __init__(
        self,
        state: ControllerState,
        waiting: WaitingJobs,
        *,
        awaits_domain: Callable[[str], bool],
        catalog: PolicyCatalog,
        patience_s: float,
    ) -> None:
        """Remember what it works with.

        Args:
            state: The controller's memory.
            waiting: Jobs that wait for other work before they have any.
            awaits_domain: Whether a job waits for a topology domain.
            catalog: The operator's failure categories and handler limits.
            patience_s: How long after its grace a stopped program may take to be confirmed gone.
        """
        self._state = state
        self.waiting = waiting
        self._awaits_domain = awaits_domain
        self._catalog = catalog
        self._patience_s = patience_s

    def refresh(self, work: JobWork, active: Active, plan: PodPlan, now: float) -> None:
        """Bring pods up to date with their runs; a program that is never confirmed gone is given up in the end."""
        for pod in work.pods.values():
            if pod.run is None:
                continue
            run = active.runs.get(pod.run.uid, pod.run)
            due = self._given_up_at(active, run)
            if due is not None and due <= now:
                outcome = lost(run, now)
                run = evolve(run, status=RunStatus.ERROR, status_since=now, ended_at=now, outcome=outcome)
                self._state.put_run(active, run)
            pod.run = run = self._told(active, pod.record, run)
            if run.status in RUN_TERMINAL and run.started_at is not None and active.attempt.started_at is None:
                # It was over before it was seen running.
                self._state.note_attempt(active, evolve(active.attempt, started_at=run.started_at))
            if run.outcome is not None and failed_by_itself(run.outcome):
                work.last_failure = failure_of(pod, run, plan.program.container, self._catalog.categories)

    def _told(self, active: Active, record: PodRecord, run: Run) -> Run:
        """Note with the end of a run that was evicted what its machine lacked."""
        outcome = run.outcome
        if not record.taken or outcome is None or outcome.message or outcome.ended_by is not EndedBy.EVICTION:
            return run
        told = evolve(run, outcome=evolve(outcome, message=record.taken))
        self._state.note_run(active, told)
        return told

    def _given_up_at(self, active: Active, run: Run) -> float | None:
        if run.status is RunStatus.TERMINATING:
            warned_s = 0.0 if active.spec.warning is None else active.spec.warning.before_s
            return self._state.since(run.status_since) + warned_s + active.spec.grace_s + self._patience_s
        if run.status is not RunStatus.CREATING:
            return None
        limits = resolve_options(PROMOTE_TO_RUNNING, *self._catalog.handler_limits(active.job.queue))
        return None if limits.timeout_s is None else self._state.since(run.status_since) + limits.timeout_s

    def stand(self, active: Active, work: JobWork, now: float) -> float | None:
        """Bring the attempt's status and the job's state into agreement with its pods.

        Returns:
            When to look at the job again although nothing happens.
        """
        record = work.record
        live: list[Run] = []
        running, waiting = False, self._awaits_domain(record.id)
        given_up = now + _DOMAINS_EVERY_S if waiting else inf
        due = work.wake_at if work.wake_at is not None and work.wake_at > now else inf
        for pod in work.pods.values():
            waiting = waiting or bool(pod.placement_id)
            if pod.record.due is not None and pod.record.due > now:  # one already due waits for a place, not for a time
                due = min(due, pod.record.due)
            if pod.run is not None and pod.run.status not in RUN_TERMINAL:
                live.append(pod.run)
                running = running or pod.run.status is RunStatus.RUNNING
                given_up = min(given_up, self._given_up_at(active, pod.run) or inf)
        self._move(active, work, running=running, now=now)
        if record.deleting_since is None:
            wake_at = due if due < inf else None
            in_set = active.job.child is not None
            most = None if (kube := active.spec.kube) is None else kube.spec.parallelism
            found = standing(
                record, in_set=in_set, placed=bool(live), waiting=waiting, wake_at=wake_at, parallelism=most
            )
            job = active.job
            if found.state is JobState.RUNNING and job.state is not JobState.RUNNING:
                begun = evolve(
                    job,
                    state=JobState.RUNNING,
                    reason="",
                    attempt=active.attempt.number,
                    retry_at=None,
                    started_at=job.started_at or now,
                    updated_at=now,
                )
                self._state.pods_started(active, begun, live)
            elif found.state is not JobState.RUNNING:
                self.put(job, found, now)
        look_at = min(due, given_up)
        return look_at if look_at < inf else None

    def put(self, job: Job, found: Standing, now: float) -> None:
        """Change a job's state if it differs; while pods of it are pending, the reason is the one placement gives."""
        state, reason, retry_at = found
        stays = state is job.state
        placed = state is JobState.QUEUED and not reason and job.reason != NO_PODS
        if stays and (placed or (reason, retry_at) == (job.reason, job.retry_at)):
            return
        queued_at = now if state is JobState.QUEUED and not stays else job.queued_at
        moved = evolve(job, state=state, reason=reason, retry_at=retry_at, queued_at=queued_at, updated_at=now)
        self._state.put_job(moved)

    def _move(self, active: Active, work: JobWork, *, running: bool, now: float) -> None:
        pods = {PodsAre.RUNNING} if running else set[PodsAre]()
        if work.record.deleting_since is not None or work.record.state.condition("FailureTarget") is not None:
            pods.add(PodsAre.GOING)
        for move in moves(active.attempt.status, pods):
            entered = active.attempt.entered(move.to, now)
            if move.to is AttemptStatus.RUNNING:
                entered = evolve(entered, started_at=entered.started_at or now)
            self._state.step(active, Step(move.name, Outcome.SUCCESS, now), entered)

    def end(self, active: Active, ending: Ending, message: str, now: float, *, work: JobWork | None = None) -> None:
        """End an attempt; with ``work`` it has failed, for the last failure remembered there."""
        if ending is Ending.CANCELLED and active.attempt.started_at is None:
            ending = Ending.NEVER_STARTED
        attempt = evolve(
            active.attempt,
            status=ENDING_STATUS[ending],
            status_since=now,
            ended_at=now,
            ending=ending,
            failure=None if work is None else self._failure(work, message, now),
            message=message,
        )
        self._state.step(active, Step(END_PODS.name, Outcome.SUCCESS, now, message=message), attempt)

    def _failure(self, work: JobWork, message: str, now: float) -> Failure:
        ended = work.record.state.finished
        if ended is not None and ended.reason == DEADLINE.reason:
            # All pods were stopped; an earlier failure is not what ended the job.
            late = frozenset({FailureCondition.DEADLINE_EXCEEDED})
            return Failure(Cause.EXECUTION_TIMEOUT, late, message=message, failed_at=now, ended_by=EndedBy.DEADLINE)
        if work.last_failure is None:
            return Failure(Cause.UNKNOWN, frozenset(), message=message, failed_at=now)
        return work.last_failure
