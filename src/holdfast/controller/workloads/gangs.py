"""Gangs: jobs whose runs start, fail and restart together."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, TypeAlias, assert_never

from holdfast.controller.bounded_cache import BoundedCache
from holdfast.controller.workloads.gang_attempts import (
    AttemptCoordinator,
    PrepareAttempts,
    ScheduleAttempts,
    StartAttempts,
    TerminateAttempts,
    prepared_at_once,
)
from holdfast.domain.job import Job, JobState
from holdfast.domain.lifecycle import RUN_TERMINAL, AttemptStatus, RunStatus
from holdfast.domain.placement.scheduling import GroupKey, Waiting
from holdfast.domain.record import evolve
from holdfast.domain.terms.workload_kinds import GANG
from holdfast.domain.workloads.children import HELD_WITH_OWNER
from holdfast.domain.workloads.gang import reconcile as gang
from holdfast.domain.workloads.gang.pending import shape_of
from holdfast.domain.workloads.gang.reconcile import Asked, ExpireAttempt, Observed, Over, StopAttempt
from holdfast.ports.requests import Request, RequestKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.kind import ForEach, Pace, Taking
    from holdfast.controller.policy_catalog import Judging
    from holdfast.controller.state import ControllerState
    from holdfast.domain.lifecycle import Interruption, Step
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.children import CreateChild
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.store import ControllerStore, Snapshot

_ASKED = {
    RequestKind.CANCEL: Asked.CANCEL,
    RequestKind.HOLD: Asked.HOLD,
    RequestKind.RELEASE: Asked.RELEASE,
    RequestKind.RETRY: Asked.RETRY,
    RequestKind.PREEMPT: Asked.PREEMPT,
}
_MOST_GROUPS = 16_384
Phase: TypeAlias = PrepareAttempts | StartAttempts | TerminateAttempts


class Gangs:
    """Every job that is a gang, of one run or more."""

    name = GANG
    has_pods = False

    def __init__(
        self,
        state: ControllerState,
        store: ControllerStore,
        judging: Judging,
        *,
        alive: Callable[[str], bool],
        lease_s: float | None,
        pace: Pace,
    ) -> None:
        """Wire it.

        Args:
            state: The controller's state.
            store: Where what jobs wait for is looked up.
            judging: What a judgement needs.
            alive: Whether an executor is known and within its lease.
            lease_s: Of executors.
            pace: How many jobs a tick works on.
        """
        self.pace = pace
        self._state = state
        self._store = store
        self._judging = judging
        self._groups: BoundedCache[GroupKey] = BoundedCache(_MOST_GROUPS)
        self._coordinator = AttemptCoordinator(
            state,
            over=self._over,
            requeue=self._requeue,
            limits=judging.catalog.handler_limits,
            lease_s=lease_s,
        )
        self.changed: Callable[[Job], None] = lambda _: None
        """Called with a job that has an owner and may look different to it."""
        self._schedule = ScheduleAttempts(state)
        phases: tuple[Phase, ...] = (PrepareAttempts(alive), StartAttempts(alive), TerminateAttempts(state))
        self._phases = {status: phase for phase in phases for status in phase.row.targets}
        """The handler that works on an attempt, by its status."""

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Show jobs that are part of something to their owners; jobs and attempts are restored already."""
        del snapshot
        for job in list(self._state.jobs.values()):
            if job.child is not None and job.kind == GANG:
                each(job.id, partial(self.changed, job))

    def admit(self, job: Job) -> None:
        """Show it to its owner; a pending job is indexed already."""
        if job.child is not None:
            self.changed(job)

    # of an owner

    def create(self, job: Job, order: CreateChild, owner: Workload, now: float) -> None:
        """Do nothing: it waits for a place since it was submitted, and begins once."""

    def delete(self, job_id: str, now: float, *, force: bool = False) -> None:
        """Cancel it."""
        del force
        self._settle(self._state.jobs[job_id], now, asked=Asked.CANCEL, reason="cancelled with its array or job set")

    def suspend(self, job_id: str, now: float, *, suspended: bool) -> None:
        """Hold it, or release it."""
        asked = Asked.HOLD if suspended else Asked.RELEASE
        self._settle(self._state.jobs[job_id], now, asked=asked, reason=HELD_WITH_OWNER)

    def take_place(self, job_id: str, taking: Taking, now: float) -> None:
        """Stop all of it: its runs run together."""
        self._settle(self._state.jobs[job_id], now, asked=Asked(taking.why), reason=taking.reason)

    def resize(self, job_id: str, parallelism: int, completions: int | None) -> None:
        """Do nothing: a gang keeps its size."""

    def finish(self, job_id: str, otherwise: str, now: float) -> None:
        """Cancel one that waits."""
        self._settle(self._state.jobs[job_id], now, asked=Asked.CANCEL, reason=otherwise)

    # pending

    def index(self, job: Job) -> None:
        """Put a job that waits for a place in the pending queue, and plan when time moves it on."""
        state = self._state
        spec = state.spec(job)
        if job.state is JobState.QUEUED and job.id not in state.active:
            ran = job.attempt > 0
            # Only memory and what is avoided ever differ from the specification.
            group = self._groups.answer(
                (job.queue, job.spec, job.request.memory, job.avoid_node, job.avoid_devices, job.avoid_nodes, ran),
                lambda: GroupKey(job.queue, shape_of(job, spec), ran, of_door=spec.pod is not None),
            )
            state.wait(group, Waiting(-job.priority, job.seq, job.id, job.queued_at, user=job.submitted_by))
        else:
            state.wait_no_more(job.id)
            if spec.after and job.ready_at is None:
                state.waits.watch(job.id, GANG, spec.after, job.met)
        state.queue.wake_at(GANG, job.id, gang.next_due(job, spec))

    def placed(self, places: Mapping[str, tuple[PlaceKey, ...]], keys: Sequence[str], now: float) -> None:
        """Open an attempt for each job that got its places."""
        jobs, catalog = self._state.jobs, self._judging.catalog
        opened = []
        for job_id in keys:
            if job_id in jobs:
                active = self._schedule.open(jobs[job_id], places[job_id], now)
                catalog.compiled(active.job, active.spec)  # while it starts, not when it fails
                catalog.log_patterns(active.spec)
                opened.append(active)
                if active.job.child is not None:
                    self.changed(active.job)
        self._coordinator.run(self._schedule, opened, now)

    def blocked(self, key: str, now: float, *, never: str = "") -> None:
        """Record why a job still waits for a place; its attempt has failed if it will get none."""
        if never:
            self._coordinator.expire(self._state.waiting_attempt(self._state.jobs[key]), now, never)
        elif self._judging.catalog.catalogue.paused is None:  # else it does not wait for a place, and is not late
            self._coordinator.run(self._schedule, [self._state.waiting_attempt(self._state.jobs[key])], now)

    # moving on

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        """Move jobs and their attempts on as far as they can go now: first what is due, then the lifecycle."""
        state = self._state
        due: dict[str, float | None] = {}
        for key in keys:
            job = state.jobs.get(key)
            if job is not None:
                due[key] = self._settle(job, now)
        moving = flying = [active for active in map(state.active.get, keys) if active is not None]
        while moving:
            moving = self._advance(moving, now)
        for active in flying:  # of those that wait, another of these may just have decided the condition
            state.queue.discard(GANG, active.attempt.job_id)
        for key, latest in due.items():
            current = state.active.get(key)
            if current is not None:
                state.queue.wake_at(GANG, key, self._coordinator.next_look(current, now, latest))

    def _advance(self, batch: Sequence[Active], now: float) -> list[Active]:
        """Move attempts on by their runs, then by the handler of the status each is in; returns those that moved on."""
        before: list[AttemptStatus] = []
        of_phase: dict[Phase, list[Active]] = {}
        for active in batch:
            before.append(active.attempt.status)
            prepared_at_once(self._state, active, now)
            while self._coordinator.promote(active, now):
                pass
            phase = self._phases.get(active.attempt.status)
            if phase is not None:
                of_phase.setdefault(phase, []).append(active)
        for phase, targets in of_phase.items():
            self._coordinator.run(phase, targets, now)
        flying = self._state.active
        return [
            active
            for active, status in zip(batch, before, strict=True)
            if active.attempt.status is not status and active.attempt.job_id in flying
        ]

    def ask(self, request: Request, key: str, now: float) -> None:
        """Cancel, hold, release, retry or preempt a job; nothing else is asked of gangs."""
        asked, job = _ASKED.get(request.kind), self._state.jobs[key]
        if asked is None or (asked is Asked.RETRY and key in self._state.active):
            return
        if asked is Asked.RETRY and request.payload:
            job = self._state.change_spec(job, request.payload)
        reason = request.cancel_reason if asked is Asked.CANCEL else request.reason
        if asked is Asked.PREEMPT:
            if not self._runs_on(key, request.payload):
                return
            reason = request.preempt_reason
        self._settle(job, now, asked=asked, reason=reason)

    def _runs_on(self, key: str, node: str) -> bool:
        """Whether anything of a job is on a node, or on any if none is named."""
        active = self._state.active.get(key)
        runs = () if active is None else active.runs.values()
        return any(node in {"", run.node} and run.status not in RUN_TERMINAL for run in runs)

    def _over(self, active: Active, step: Step) -> None:
        """Judge an attempt whose lifecycle has come to its end."""
        job, judging = active.job, self._judging
        runs = sorted(active.runs.values(), key=attrgetter("rank"))
        ruleset = judging.ruleset(job, active.spec, list(self._state.capacity.places.values()), step.now)
        suspicion = judging.losses.suspicion(job.id, runs)
        over = Over(active.attempt, step, runs, ruleset, judging.draw(), suspicion, judging.shortages.refusals(runs))
        self._settle(job, step.now, over=over)

    def _settle(
        self, job: Job, now: float, *, over: Over | None = None, asked: Asked | None = None, reason: str = ""
    ) -> float | None:
        """Store what becomes of a job, and have its lifecycle do what follows; returns when it is due again."""
        state, spec = self._state, self._state.spec(job)
        if spec.after and job.ready_at is None:
            return self._settle_waiting(spec, job, Observed(asked=asked, reason=reason), now)
        active, waiting = state.active.get(job.id), state.unplaced.get(job.id)
        attempt = None if active is None else active.attempt
        seen = Observed(attempt, None if waiting is None else waiting.attempt, over, asked, reason)
        if self._judging.catalog.catalogue.paused is not None:
            seen = seen._replace(paused=True)
        if asked is not None and active is not None:
            seen = seen._replace(interrupted=_interrupted(active))
        result = gang.reconcile(spec, job, seen, now)
        for ended, step in result.decisions:
            closing = active or state.waiting_attempt(job)
            kept = ended.dispatch > 0 or ended.decision is not None  # else it never was more than its history
            state.step(closing, step, ended, kept=kept)
        if result.state is not job:
            state.put_job(result.state)
            if job.child is not None:
                self.changed(result.state)
        elif active is None:
            state.queue.wake_at(GANG, job.id, result.wake_at)
        for order in result.orders:
            self._carry_out(order, job, now)
        return result.wake_at

    def _carry_out(self, order: StopAttempt | ExpireAttempt, job: Job, now: float) -> None:
        match order:
            case StopAttempt():
                active = self._state.active[job.id]
                if order.why is not None:
                    self._interrupt(active, order.why)
                self._coordinator.stop(active, order.row, now)
            case ExpireAttempt():
                self._coordinator.expire(self._state.waiting_attempt(job), now, order.message)
            case _:
                assert_never(order)

    def _interrupt(self, active: Active, why: Interruption) -> None:
        """Note on the runs that still go on why they are told to stop."""
        for run in list(active.runs.values()):
            if run.status not in RUN_TERMINAL:
                self._state.put_run(active, evolve(run, interrupted=why))

    def _settle_waiting(self, spec: JobSpec, job: Job, seen: Observed, now: float) -> float | None:
        """Store what becomes of a job that waits for other work, and so has no attempt."""
        state = self._state
        if seen.asked is None:
            state.waits.look_up(self._store, state.changes)
            seen = seen._replace(awaited=state.waits.standings(spec.after, job.met))
        result = gang.reconcile(spec, job, seen, now)
        if result.state is not job:
            state.put_job(result.state)
            self.changed(result.state)
            if result.state.terminal or result.state.ready_at is not None:
                state.waits.leave(job.id, spec.after)
        return result.wake_at

    def _requeue(self, active: Active, step: Step) -> None:
        """Take an attempt that was never handed out off its places; it will be placed anew with fresh uids."""
        now, why = step.now, step.message
        for run in list(active.runs.values()):
            self._state.put_run(active, evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
        attempt = evolve(active.attempt, status=AttemptStatus.PENDING, status_since=now, tries=0, message=why)
        self._state.withdraw(active, step, attempt)
        job = evolve(
            active.job, state=JobState.QUEUED, reason=why, attempt=attempt.number - 1, queued_at=now, updated_at=now
        )
        self._state.put_job(job)


def _interrupted(active: Active) -> Interruption | None:
    """Return why an attempt was told to stop, if it did nothing wrong."""
    return next((run.interrupted for run in active.runs.values() if run.interrupted is not None), None)
