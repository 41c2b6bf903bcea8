"""Moves the attempts of gangs, and their runs, by the lifecycle table (BEP-1030's four lifecycle handlers).

A handler reports what happened; it never judges retry, expiry or giving up. Its only effect on the outside world is
a changed desired set, which executors fetch after the commit.
"""

from __future__ import annotations

from itertools import filterfalse, islice
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.controller.coordinator import Coordinator, Standing
from holdfast.domain.containers import Capability
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    ATTEMPTS,
    PREPARE,
    RUN_TERMINAL,
    SCHEDULE,
    START,
    TERMINATE,
    AttemptHandler,
    AttemptStatus,
    Outcome,
    RunStatus,
    Step,
    SubStep,
    TransitionStatus,
)
from holdfast.domain.lifecycle.judge import HandlerResult, resolve_options
from holdfast.domain.record import evolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.lifecycle import AttemptPromotion, RequestRow
    from holdfast.domain.lifecycle.judge import HandlerLimits, HandlerOptions
    from holdfast.domain.placement.fit import PlaceKey

    Row = AttemptHandler | AttemptPromotion


_STATUS, _EXECUTOR = attrgetter("status"), attrgetter("executor")
_PREPARING = frozenset({RunStatus.PREPARING, RunStatus.PULLING})
_NOT_HANDED_OUT = _PREPARING | {RunStatus.PENDING, RunStatus.SCHEDULED, RunStatus.PREPARED}


class ScheduleAttempts:
    """Opens attempts for the waiting jobs a round placed, and says why the others wait."""

    row: AttemptHandler = SCHEDULE

    def __init__(self, state: ControllerState) -> None:
        """Remember the state."""
        self._state = state

    def open(self, job: Job, places: tuple[PlaceKey, ...], now: float) -> Active:
        """Open a PENDING attempt at a job, with its runs on their places."""
        waiting = self._state.waiting_attempt(job).attempt
        number, dispatch = waiting.number, waiting.dispatch + 1
        attempt = evolve(waiting, dispatch=dispatch, request=job.request)
        runs = []
        granted = self._state.capacity.grants.get(job.id)
        for rank, (executor, node) in enumerate(places):
            run = Run(
                uid=f"{job.id}-{number}-{rank}-{dispatch}",
                job_id=job.id,
                attempt=number,
                rank=rank,
                status_since=now,
                executor=executor,
                node=node,
                request=job.request,
                devices=() if granted is None else granted[rank],
            )
            runs.append(run)
        running = evolve(
            job,
            state=JobState.RUNNING,
            reason="",
            attempt=number,
            retry_at=None,
            started_at=job.started_at or now,
            updated_at=now,
        )
        return self._state.open(running, attempt, runs)

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Report who got places: their jobs are running from here on; the others wait, and their jobs say for what."""
        del now
        placed, waiting = [], {}
        for active in targets:
            if active.runs:
                placed.append(active.attempt.job_id)
            else:
                waiting[active.attempt.job_id] = active.job.reason
        return HandlerResult(tuple(placed), skipped=waiting)


class PrepareAttempts:
    """Lets the executors prepare (pull images, make volumes)."""

    row: AttemptHandler = PREPARE

    def __init__(self, alive: Callable[[str], bool]) -> None:
        """Remember how to ask whether an executor is alive."""
        self._alive = alive

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Report where preparation has begun, and who waits for it to end; lost executors prepare nothing."""
        del now
        successes, failures, preparing = [], {}, {}
        for active in targets:
            job_id, lost = active.attempt.job_id, _lost(active, self._alive)
            statuses = list(map(_STATUS, active.runs.values()))
            if lost is not None:
                failures[job_id] = lost
            elif RunStatus.SCHEDULED in statuses:
                successes.append(job_id)
            else:
                left = sum(map(_PREPARING.__contains__, statuses))
                preparing[job_id] = f"{left} of {len(statuses)} runs still preparing"
        return HandlerResult(tuple(successes), failures, preparing)


class StartAttempts:
    """Hands runs out: from here on they are in their executors' desired sets."""

    row: AttemptHandler = START

    def __init__(self, alive: Callable[[str], bool]) -> None:
        """Remember how to ask whether an executor is alive."""
        self._alive = alive

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Hand out attempts whose executors are all alive; the others have failed to start."""
        del now
        successes, failures = [], {}
        for active in targets:
            lost = _lost(active, self._alive)
            if lost is None:
                successes.append(active.attempt.job_id)
            else:
                failures[active.attempt.job_id] = lost
        return HandlerResult(tuple(successes), failures)


def _lost(active: Active, alive: Callable[[str], bool]) -> tuple[str, str] | None:
    """Return the failure of an attempt of which an executor is lost; ``None`` if none is."""
    lost = sorted(filterfalse(alive, set(map(_EXECUTOR, active.runs.values()))))
    return ("executor_lost", f"executor {', '.join(lost)} does not answer") if lost else None


class TerminateAttempts:
    """Asks for what still runs to be stopped."""

    row: AttemptHandler = TERMINATE

    def __init__(self, state: ControllerState) -> None:
        """Remember the state."""
        self._state = state

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Mark what runs to be stopped; the attempt waits until all of it is confirmed stopped.

        What was never handed out has nothing to stop.
        """
        stopped, waiting = [], {}
        for active in targets:
            left = 0
            for run in [run for run in active.runs.values() if run.status not in RUN_TERMINAL]:
                if run.status in _NOT_HANDED_OUT:
                    self._state.put_run(active, evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
                    continue
                left += 1
                if run.status is not RunStatus.TERMINATING:
                    self._state.put_run(active, run.entered(RunStatus.TERMINATING, now))
            self._state.queue.discard(active.job.kind, active.attempt.job_id)
            if left:
                waiting[active.attempt.job_id] = f"{left} of {len(active.runs)} runs still stopping"
            else:
                stopped.append(active.attempt.job_id)
        return HandlerResult(tuple(stopped), skipped=waiting)


def prepared_at_once(state: ControllerState, active: Active, now: float) -> None:
    """Mark the runs of an attempt PREPARED where the engine does nothing before it starts them."""
    if active.attempt.status is AttemptStatus.PREPARING:
        for run in list(active.runs.values()):
            engine = state.engines.get(run.executor)
            if run.status is RunStatus.PREPARING and engine and Capability.PREPARING not in engine.capabilities:
                state.put_run(active, run.entered(RunStatus.PREPARED, now))


KILL_ALLOWANCE_S = 30.0
"""How long after its executor's lease and its grace a run may take to be confirmed stopped before the attempt is
ended without it."""
_WITH_RUNS = frozenset({Outcome.NEED_RETRY, Outcome.EXPIRED, Outcome.GIVE_UP})
"""Outcomes recorded with the status of each run."""
_MOST_RUNS = 16
_LEFT_BY_TIME: Mapping[AttemptStatus, tuple[Row, ...]] = {
    **{status: (row,) for row in ATTEMPTS.handlers for status in row.targets},
    **{status: (row,) for row in ATTEMPTS.promotions if row.expired is not None for status in row.targets},
}
"""The rows whose time limits count in a status."""


class AttemptCoordinator(Coordinator["Active", AttemptStatus, RunStatus]):
    """Applies what handlers and runs report."""

    def __init__(
        self,
        state: ControllerState,
        *,
        over: Callable[[Active, Step], None],
        requeue: Callable[[Active, Step], None],
        limits: Callable[[str], tuple[HandlerLimits, ...]] = lambda _: (),
        lease_s: float | None = None,
    ) -> None:
        """Wire the coordinator.

        Args:
            state: The controller's memory.
            over: Called with an attempt whose runs have all stopped, or that will have none, and the step that ends it.
            requeue: Called with an attempt that goes back to PENDING, and the step by which it does.
            limits: The handler limits in force in a queue, by its name, most specific last.
            lease_s: Of executors: a silent one may still run its programs for that long.
        """
        super().__init__(ATTEMPTS, since=state.since)
        self._state = state
        self._over = over
        self._requeue = requeue
        self._limits = limits
        self._lease_s = lease_s or 0.0

    def standing(self, entity: Active) -> Standing[AttemptStatus]:
        """Return what is judged of an attempt."""
        attempt = entity.attempt
        return Standing(attempt.job_id, attempt.status, attempt.status_since, attempt.tries)

    def children(self, entity: Active) -> list[RunStatus]:
        """Return the statuses of an attempt's runs."""
        return list(map(_STATUS, entity.runs.values()))

    def options(self, row: Row, entity: Active) -> HandlerOptions:
        """Return the limits for an attempt: those of its queue, its job and its executors."""
        options = resolve_options(row, *self._limits(entity.job.queue))
        if row is SCHEDULE:
            return evolve(options, timeout_s=entity.spec.scheduling_timeout_s)
        if row is TERMINATE:
            warned_s = 0.0 if entity.spec.warning is None else entity.spec.warning.before_s
            return evolve(options, timeout_s=warned_s + self._lease_s + entity.spec.grace_s + KILL_ALLOWANCE_S)
        return options

    def apply(self, entity: Active, step: Step, to: TransitionStatus[AttemptStatus, RunStatus]) -> None:
        """Record a step and move the attempt where it leads, if anywhere; how it ends depends on its failure."""
        state, now = self._state, step.now
        if step.outcome in _WITH_RUNS:
            step = step._replace(steps=_where_runs_stood(entity, step.outcome))
        if to.status is AttemptStatus.PENDING:
            self._requeue(entity, step)
            return
        if to.children is not None:
            for run in list(entity.runs.values()):
                if run.status not in RUN_TERMINAL and run.status is not to.children:
                    state.put_run(entity, run.entered(to.children, now))
        if to.status in ATTEMPT_TERMINAL:
            self._over(entity, step)
            return
        attempt = entity.attempt.after(step.outcome, to.status, now)
        if to.status is AttemptStatus.RUNNING:
            attempt = evolve(attempt, started_at=max(run.started_at or now for run in entity.runs.values()))
        state.step(entity, step, attempt)

    def stop(self, active: Active, row: RequestRow[AttemptStatus], now: float) -> None:
        """Begin to end an attempt on request; one already ending is published with the new reason."""
        if active.attempt.status is AttemptStatus.TERMINATING:
            self._state.tell_again(active)
            return
        step = Step(row.name, Outcome.SUCCESS, now, message=active.job.reason)
        self.apply(active, step, TransitionStatus(row.moves[active.attempt.status]))
        self._state.queue.add(active.job.kind, active.attempt.job_id)

    def expire(self, active: Active, now: float, message: str) -> None:
        """Give up an attempt that found no place in time."""
        step = Step(SCHEDULE.name, Outcome.EXPIRED, now, message=message)
        self.apply(active, step, SCHEDULE.transitions[Outcome.EXPIRED])

    def next_look(self, active: Active, now: float, latest: float | None = None) -> float | None:
        """Return when time alone may move an attempt on, at the latest as given.

        ``None`` where its status has no way out by time.
        """
        status = active.attempt.status
        since = self._state.since(active.attempt.status_since)
        due = [] if latest is None or latest <= now else [latest]
        limited = left = False
        for row in _LEFT_BY_TIME.get(status, ()):
            limit_s = self.options(row, active).timeout_s
            limited = limited or bool(limit_s)
            if limit_s is not None and since + limit_s >= now:
                left = True
                due.append(min(since + limit_s + _PAST_S, now + _EDITED_S))
        if status in _TRIED_AGAIN or (limited and not left):
            due.append(now + _LOOK_EVERY_S)
        return min(due, default=None)


def _where_runs_stood(active: Active, outcome: Outcome) -> tuple[SubStep, ...]:
    """List the first runs that are not over: what the attempt fails or waits for."""
    left = (run for run in active.runs.values() if run.status not in RUN_TERMINAL)
    first = islice(left, _MOST_RUNS)
    return tuple(SubStep(f"rank {run.rank}", outcome, message=f"{run.status} on node {run.node}") for run in first)


_LOOK_EVERY_S = 1.0
_EDITED_S = 30.0
"""Limits may be edited while an attempt waits, so they are checked again at least this often."""
_PAST_S = 0.001
"""A status is left when more than its time has passed."""
_TRIED_AGAIN = frozenset({AttemptStatus.SCHEDULED, AttemptStatus.PREPARING, AttemptStatus.PREPARED})
"""Statuses in which a failed phase is tried again."""
