"""Gangs: jobs whose runs start, fail and restart together."""

from __future__ import annotations

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
from holdfast.domain.job import Job, JobState, evolve
from holdfast.domain.lifecycle import AttemptStatus, RunStatus
from holdfast.domain.scheduling import GroupKey, Waiting
from holdfast.domain.workloads.base import GANG
from holdfast.domain.workloads.gang import reconcile as gang
from holdfast.domain.workloads.gang.reconcile import Asked, ExpireAttempt, Observed, Over, StopAttempt
from holdfast.ports.store import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace
    from holdfast.controller.policy_catalog import Judging
    from holdfast.controller.state import ControllerState
    from holdfast.domain.lifecycle import Step
    from holdfast.domain.placement import PlaceKey
    from holdfast.ports.store import Snapshot

_ASKED = {
    RequestKind.CANCEL: Asked.CANCEL,
    RequestKind.HOLD: Asked.HOLD,
    RequestKind.RELEASE: Asked.RELEASE,
}
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
            over=self._over,
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
        state = self._state
        spec = state.spec(job)
        if job.state is JobState.QUEUED and job.id not in state.active:
            ran = job.attempt > 0
            # Only memory and the avoided node ever differ from the specification.
            group = self._groups.answer(
                (job.queue, job.spec, job.request.memory, job.avoid_node, ran),
                lambda: GroupKey(job.queue, gang.shape_of(job, spec.node_selector), ran),
            )
            state.wait(group, Waiting(-job.priority, job.seq, job.id, job.queued_at))
        else:
            state.wait_no_more(job.id)
        state.queue.wake_at(GANG, job.id, gang.next_due(job, spec))

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Open an attempt for each job that got its places."""
        jobs = self._state.jobs
        opened = []
        for job_id in keys:
            if job_id in jobs:
                active = self._schedule.open(jobs[job_id], places[job_id], now)
                self._judging.catalog.compiled(active.job, active.spec)  # while it starts, not when it fails
                opened.append(active)
        self._coordinator.run(self._schedule, opened, now)

    def blocked(self, key: str, now: float) -> None:
        """Record why a job still waits for a place."""
        self._coordinator.run(self._schedule, [self._state.waiting_attempt(self._state.jobs[key])], now)

    # moving on

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Move jobs and their attempts on as far as they can go now: first what is due, then the lifecycle."""
        state, coordinator = self._state, self._coordinator
        due: dict[str, float | None] = {}
        for key in keys:
            job, active = state.jobs.get(key), state.active.get(key)
            if job is not None:
                due[key] = self._settle(job, now)
            if active is not None:
                prepared_at_once(state, active, now)
                coordinator.promote(active, now)
        for phase in self._phases:
            coordinator.run(phase, filter(None, map(state.active.get, keys)), now)
        for key, latest in due.items():
            active = state.active.get(key)
            if active is not None:
                state.queue.wake_at(GANG, key, coordinator.next_look(active, now, latest))

    def ask(self, request: Request, key: str, now: float) -> None:
        """Cancel, hold or release a job; nothing else is asked of gangs."""
        asked = _ASKED.get(request.kind)
        if asked is None:
            return
        reason = request.cancel_reason if asked is Asked.CANCEL else request.reason
        self._settle(self._state.jobs[key], now, asked=asked, reason=reason)

    def _over(self, active: Active, step: Step) -> None:
        """Judge an attempt whose lifecycle has come to its end."""
        job, judging = active.job, self._judging
        runs = sorted(active.runs.values(), key=attrgetter("rank"))
        ruleset = judging.catalog.ruleset(job, active.spec, list(self._state.capacity.places.values()))
        suspicion = judging.losses.suspicion(job.id, runs)
        over = Over(active.attempt, step, runs, ruleset, judging.draw(), suspicion)
        self._settle(job, step.now, over=over)

    def _settle(
        self, job: Job, now: float, *, over: Over | None = None, asked: Asked | None = None, reason: str = ""
    ) -> float | None:
        """Store what becomes of a job, and have its lifecycle do what follows; returns when it is due again."""
        state = self._state
        active, waiting = state.active.get(job.id), state.unplaced.get(job.id)
        attempt = None if active is None else active.attempt
        seen = Observed(attempt, None if waiting is None else waiting.attempt, over, asked, reason)
        result = gang.reconcile(state.spec(job), job, seen, now)
        for ended, step in result.decisions:
            closing = active or state.waiting_attempt(job)
            state.record(closing, step, ended.status)
            if ended.dispatch or ended.decision is not None:  # else it never was more than its history
                state.put_attempt(closing, ended)
        if result.state is not job:
            state.put_job(result.state)
        elif active is None:
            state.queue.wake_at(GANG, job.id, result.wake_at)
        for order in result.orders:
            match order:
                case StopAttempt():
                    self._coordinator.stop(state.active[job.id], order.row, now)
                case ExpireAttempt():
                    self._coordinator.expire(state.waiting_attempt(job), now, order.message)
                case _:
                    assert_never(order)
        return result.wake_at

    def _requeue(self, active: Active, now: float, why: str) -> None:
        """Take an attempt that was never handed out off its places; it will be placed anew with fresh uids."""
        for run in list(active.runs.values()):
            self._state.put_run(active, evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
        attempt = evolve(active.attempt, status=AttemptStatus.PENDING, status_since=now, tries=0, message=why)
        self._state.withdraw(active, attempt)
        job = evolve(
            active.job, state=JobState.QUEUED, reason=why, attempt=attempt.number - 1, queued_at=now, updated_at=now
        )
        self._state.put_job(job)
