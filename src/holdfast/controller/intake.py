"""Acts on what people asked for and on what time has brought due.

Decides which jobs a request applies to in their present state (a request that no longer applies is dropped:
terminal is absorbing); the moves themselves are ``domain.verdict``'s.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.controller.sets.intake import SET_REQUESTS
from holdfast.controller.world import Step
from holdfast.domain import verdict
from holdfast.domain.job import JOB_WAITING, Job, JobState
from holdfast.domain.lifecycle import AttemptStatus, Outcome
from holdfast.domain.policy.model import DecisionCode
from holdfast.domain.units import format_duration
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.sets.sets import Sets
    from holdfast.controller.world import Active, World
    from holdfast.domain.verdict import Circumstances, Verdict


class Intake:
    """Requests and reminders."""

    def __init__(
        self,
        world: World,
        jobs_by_id: Callable[[Sequence[str]], Sequence[Job]],
        circumstances: Callable[[Job, float], Circumstances],
        sets: Sets,
    ) -> None:
        """Remember the world, how to read appended jobs, how to learn what a judgement needs, and who has job sets."""
        self._world = world
        self._sets = sets
        self._jobs_by_id = jobs_by_id
        self._circumstances = circumstances

    def take(self, requests: Sequence[Request], now: float) -> None:
        """Act on requests, in order; they are gone with the commit of this tick."""
        for request in requests:
            if request.kind in SET_REQUESTS:
                self._sets.intake.take(request, now)
            elif request.kind is RequestKind.SUBMIT:
                self._admit(request)
            else:
                for job_id in request.job_ids:
                    self._act(request, job_id, now)
            self._world.changes.handled.append(request.id)

    def _admit(self, request: Request) -> None:
        unknown = [job_id for job_id in request.job_ids if job_id not in self._world.jobs]
        for job in self._jobs_by_id(unknown):
            self._world.admit(job)
            if not job.terminal and self._world.has_pods(job):
                self._sets.pods.admit(job)

    def _act(self, request: Request, job_id: str, now: float) -> None:
        job = self._world.jobs.get(job_id)
        if job is None:
            return
        if self._world.has_pods(job):
            self._sets.intake.about_job(request, job, now)
            return
        match request.kind:
            case RequestKind.CANCEL:
                self._cancel(job, request.reason or f"cancelled{f' by {request.actor}' if request.actor else ''}", now)
            case RequestKind.HOLD if job.state in JOB_WAITING:
                self._world.put_job(verdict.held(job, request.reason or "held by a user", now))
            case RequestKind.RELEASE if job.state is JobState.HELD:
                self._world.put_job(verdict.queued(job, now))
            case _:
                pass

    def _cancel(self, job: Job, reason: str, now: float) -> None:
        active = self._world.active.get(job.id)
        if active is None:
            self._close_unplaced(job, now)
            self._world.put_job(verdict.cancelled_in_line(replace(job, reason=reason), now))
        elif not job.cancel_requested:
            self._world.put_job(replace(job, cancel_requested=True, reason=reason, updated_at=now))
            self.terminate(active, "CancelJob", now)

    def _close_unplaced(self, job: Job, now: float) -> None:
        attempt = self._world.unplaced.get(job.id)
        if attempt is not None:
            self._world.end_unplaced(verdict.cancelled(job, attempt, now, started=False).attempt)

    def terminate(self, active: Active, phase: str, now: float) -> None:
        """Begin to end an attempt from outside its runs."""
        if active.attempt.status is AttemptStatus.TERMINATING:
            self._world.touched[active.attempt.job_id] = active
            for run in active.runs.values():
                self._world.runs_changed[run.uid] = (active, run)
            return
        step = Step(phase, Outcome.SUCCESS, now, message=active.job.reason)
        self._world.record(active, step, AttemptStatus.TERMINATING)
        moved = active.attempt.entered(AttemptStatus.TERMINATING, now)
        self._world.put_attempt(active, moved)

    def due(self, now: float) -> None:
        """Act on reminders: retries that are due, waits and total deadlines that are over."""
        for job_id in self._world.due(now):
            job = self._world.jobs.get(job_id)
            if job is not None:
                self._remind(job, now)

    def _remind(self, job: Job, now: float) -> None:
        if job.state is JobState.BACKOFF and job.retry_at is not None and job.retry_at <= now:
            job = verdict.queued(job, now)
            self._world.put_job(job)
        spec = self._world.spec(job)
        if spec.total_deadline_s is not None and now >= job.submitted_at + spec.total_deadline_s:
            self._total_deadline(job, spec.total_deadline_s, now)
            return
        timeout_s = spec.scheduling_timeout_s
        if job.state is JobState.QUEUED and timeout_s is not None and now >= job.queued_at + timeout_s:
            self._expire(job, timeout_s, now)

    def _expire(self, job: Job, timeout_s: float, now: float) -> None:
        attempt, failure = verdict.expired_in_line(job, now, timeout_s)
        self._settle(
            verdict.fail(replace(job, attempt=attempt.number), attempt, failure, self._circumstances(job, now))
        )

    def _total_deadline(self, job: Job, total_s: float, now: float) -> None:
        active = self._world.active.get(job.id)
        if active is not None:
            self.terminate(active, "TotalDeadline", now)
            return
        reason = f"total deadline of {format_duration(total_s)} is over ({DecisionCode.TOTAL_DEADLINE})"
        self._close_unplaced(job, now)
        self._world.put_job(
            replace(job, state=JobState.FAILED, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        )

    def _settle(self, judged: Verdict) -> None:
        self._world.end_unplaced(judged.attempt)
        self._world.put_job(judged.job)
