"""Gangs: jobs whose runs start, fail and restart together."""

from __future__ import annotations

from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, assert_never

from holdfast.controller.policy_catalog import BoundedCache
from holdfast.controller.workloads.gang_attempts import (
    AttemptCoordinator,
    PrepareAttempts,
    ScheduleAttempts,
    StartAttempts,
    TerminateAttempts,
    prepared_at_once,
)
from holdfast.domain.job import JOB_WAITING, Job, JobState
from holdfast.domain.lifecycle import CANCEL_JOB, TOTAL_DEADLINE, AttemptStatus, Outcome, RequestRow, RunStatus, Step
from holdfast.domain.policy.model import DecisionCode
from holdfast.domain.scheduling import GroupKey, Waiting
from holdfast.domain.units import format_duration
from holdfast.domain.workloads.base import GANG
from holdfast.domain.workloads.gang import conclusion
from holdfast.domain.workloads.gang.conclusion import DecisionContext, shape_of
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace
    from holdfast.controller.policy_catalog import Judging
    from holdfast.controller.state import ControllerState
    from holdfast.domain.placement import PlaceKey
    from holdfast.domain.workloads.gang.conclusion import Conclusion
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.store import Snapshot

_MOST_GROUPS = 16_384


class Gangs:
    """Every job that is a gang, of one run or more."""

    name = GANG
    has_pods = False

    def __init__(
        self,
        state: ControllerState,
        judging: Judging,
        *,
        alive: Callable[[str], bool],
        lease_s: float | None,
        pace: Pace,
    ) -> None:
        """Wire it.

        Args:
            state: The controller's state.
            judging: What a judgement needs.
            alive: Whether an executor is known and within its lease.
            lease_s: Of executors.
            pace: How many jobs a tick works on.
        """
        self.pace = pace
        self._state = state
        self._judging = judging
        self._groups: BoundedCache[GroupKey] = BoundedCache(_MOST_GROUPS)
        self._coordinator = AttemptCoordinator(
            state,
            conclude=self._conclude,
            requeue=self._requeue,
            limits=judging.catalog.handler_limits,
            lease_s=lease_s,
        )
        self._schedule = ScheduleAttempts(state)
        self._phases = (PrepareAttempts(alive), StartAttempts(alive), TerminateAttempts(state))

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Do nothing: gangs have only jobs and attempts, already restored."""

    def admit(self, job: Job) -> None:
        """Do nothing: a pending job is indexed already."""

    # pending

    def index(self, job: Job) -> None:
        """Put a job that waits for a place in the pending queue, and plan when time moves it on."""
        spec = self._state.spec(job)
        if job.state is JobState.QUEUED and job.id not in self._state.active:
            self._state.wait(self._group(job, spec), Waiting(-job.priority, job.seq, job.id, job.queued_at))
        else:
            self._state.wait_no_more(job.id)
        self._state.queue.wake_at(GANG, job.id, conclusion.next_due(job, spec))

    def _group(self, job: Job, spec: JobSpec) -> GroupKey:
        """Return the group a job waits in; only memory and the avoided node ever differ from its specification."""
        ran = job.attempt > 0
        return self._groups.answer(
            (job.queue, job.spec, job.request.memory, job.avoid_node, ran),
            lambda: GroupKey(job.queue, shape_of(job, spec.node_selector), ran),
        )

    def placed(self, placements: Iterable[tuple[str, tuple[PlaceKey, ...]]], now: float) -> None:
        """Open an attempt for each job that got its places."""
        jobs = self._state.jobs
        opened = []
        for job_id, places in placements:
            if job_id in jobs:
                active = self._schedule.open(jobs[job_id], places, now)
                self._judging.catalog.compiled(active.job, active.spec)  # while it starts, not when it fails
                opened.append(active)
        self._coordinator.run(self._schedule, opened, now)

    def blocked(self, key: str, now: float) -> None:
        """Record why a job still waits for a place."""
        self._coordinator.run(self._schedule, [self._state.waiting_attempt(self._state.jobs[key])], now)

    # moving on

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Move jobs and their attempts on as far as they can go now."""
        state = self._state
        for key in keys:
            job = state.jobs.get(key)
            if job is not None:
                self._on_time(job, now)
            active = state.active.get(key)
            if active is not None:
                prepared_at_once(state, active, now)
                self._coordinator.promote(active, now)
        for phase in self._phases:
            batch = [state.active[key] for key in keys if key in state.active]
            self._coordinator.run(phase, batch, now)
        for key in keys:
            job = state.jobs.get(key)
            if job is not None:
                state.queue.wake_at(GANG, key, self._next_look(job, now))

    def _next_look(self, job: Job, now: float) -> float | None:
        active = self._state.active.get(job.id)
        if active is None:
            return conclusion.next_due(job, self._state.spec(job))
        times = [self._coordinator.next_look(active, now), conclusion.total_deadline(job, active.spec)]
        return min((at for at in times if at is not None and at > now), default=None)

    def _on_time(self, job: Job, now: float) -> None:
        """Act on what is due: a retry, a scheduling timeout or a total deadline."""
        if _is_over(conclusion.retry_due(job), now):
            job = conclusion.queued(job, now)
            self._state.put_job(job)
        spec = self._state.spec(job)
        if _is_over(conclusion.total_deadline(job, spec), now):
            self._total_deadline(job, spec.total_deadline_s or 0.0, now)
        elif _is_over(conclusion.scheduling_timeout(job, spec), now):
            self._expire(job, spec.scheduling_timeout_s or 0.0, now)

    def _expire(self, job: Job, timeout_s: float, now: float) -> None:
        waited = f"found no place within {format_duration(timeout_s)}" + (f": {job.reason}" if job.reason else "")
        self._coordinator.expire(self._state.waiting_attempt(job), now, waited)

    def _total_deadline(self, job: Job, total_s: float, now: float) -> None:
        active = self._state.active.get(job.id)
        if active is not None:
            self._terminate(active, TOTAL_DEADLINE, now)
            return
        reason = f"total deadline of {format_duration(total_s)} is over ({DecisionCode.TOTAL_DEADLINE})"
        self._close_unplaced(replace(job, reason=reason), TOTAL_DEADLINE, now)
        self._state.put_job(
            replace(job, state=JobState.FAILED, reason=reason, retry_at=None, ended_at=now, updated_at=now)
        )

    # requests

    def ask(self, request: Request, key: str, now: float) -> None:
        """Cancel, hold or release a job."""
        job = self._state.jobs[key]
        match request.kind:
            case RequestKind.CANCEL:
                self._cancel(job, request.cancel_reason, now)
            case RequestKind.HOLD:
                if job.state in JOB_WAITING:
                    self._state.put_job(conclusion.held(job, request.reason or "held by a user", now))
            case RequestKind.RELEASE:
                if job.state is JobState.HELD:
                    self._state.put_job(conclusion.queued(job, now))
            case RequestKind.SUBMIT | RequestKind.UPDATE | RequestKind.RESTART | RequestKind.DELETE:
                pass  # it exists already, and nobody asks these of a job
            case _:
                assert_never(request.kind)

    def _cancel(self, job: Job, reason: str, now: float) -> None:
        active = self._state.active.get(job.id)
        if active is None:
            job = replace(job, reason=reason)
            self._close_unplaced(job, CANCEL_JOB, now)
            self._state.put_job(conclusion.cancelled_while_pending(job, now))
        elif not job.cancel_requested:
            self._state.put_job(replace(job, cancel_requested=True, reason=reason, updated_at=now))
            self._terminate(active, CANCEL_JOB, now)

    def _close_unplaced(self, job: Job, row: RequestRow[AttemptStatus], now: float) -> None:
        """End an attempt that waits for a place; one that never had any leaves only its history."""
        if job.state is not JobState.QUEUED and job.id not in self._state.unplaced:
            return
        active = self._state.waiting_attempt(job)
        step = Step(row.name, Outcome.SUCCESS, now, message=job.reason)
        self._state.record(active, step, row.moves[active.attempt.status])
        if active.attempt.dispatch:
            self._state.put_attempt(active, conclusion.cancelled(job, active.attempt, now, started=False).attempt)

    def _terminate(self, active: Active, row: RequestRow[AttemptStatus], now: float) -> None:
        """Begin to end an attempt on request; one already ending is published with the new reason."""
        if active.attempt.status is AttemptStatus.TERMINATING:
            self._state.tell_again(active)
            return
        to = row.moves[active.attempt.status]
        self._state.record(active, Step(row.name, Outcome.SUCCESS, now, message=active.job.reason), to)
        self._state.put_attempt(active, active.attempt.entered(to, now))

    # endings

    def _conclude(self, active: Active, now: float) -> Conclusion:
        job, judging = active.job, self._judging
        runs = sorted(active.runs.values(), key=attrgetter("rank"))
        ruleset = judging.catalog.ruleset(job, active.spec, list(self._state.capacity.places.values()))
        suspicion = judging.losses.suspicion(job.id, runs)
        context = DecisionContext(ruleset, active.spec, now, judging.draw(), suspicion)
        return conclusion.conclude(job, active.attempt, runs, context)

    def _requeue(self, active: Active, now: float, why: str) -> None:
        """Take an attempt that was never handed out off its places; it will be placed anew with fresh uids."""
        for run in list(active.runs.values()):
            self._state.put_run(active, replace(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
        attempt = replace(active.attempt, status=AttemptStatus.PENDING, status_since=now, tries=0, message=why)
        self._state.withdraw(active, attempt)
        job = replace(
            active.job, state=JobState.QUEUED, reason=why, attempt=attempt.number - 1, queued_at=now, updated_at=now
        )
        self._state.put_job(job)


def _is_over(at: float | None, now: float) -> bool:
    return at is not None and at <= now
