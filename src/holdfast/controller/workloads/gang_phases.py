"""The work of each phase: schedule, prepare, start, terminate (BEP-1030's four lifecycle handlers).

A handler reports what happened; it never judges retry, expiry or giving up. Its only effect on the outside world is
a changed desired set, which executors fetch after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.evolve import evolve
from holdfast.domain.job import JobState, Run
from holdfast.domain.lifecycle import (
    PREPARE,
    RUN_TERMINAL,
    SCHEDULE,
    START,
    TERMINATE,
    AttemptHandler,
    AttemptStatus,
    RunStatus,
)
from holdfast.domain.lifecycle.judge import HandlerResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.placement import PlaceKey

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
        waiting = self._state.in_line(job).attempt
        number, dispatch = waiting.number, waiting.dispatch + 1
        attempt = evolve(waiting, dispatch=dispatch, request=job.request)
        runs = [
            Run(
                uid=f"{job.id}-{number}-{rank}-{dispatch}",
                job_id=job.id,
                attempt=number,
                rank=rank,
                status_since=now,
                executor=executor,
                node=node,
                request=job.request,
            )
            for rank, (executor, node) in enumerate(places)
        ]
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
        placed = tuple(active.attempt.job_id for active in targets if active.runs)
        waiting = {active.attempt.job_id: active.job.reason for active in targets if not active.runs}
        return HandlerResult(placed, skipped=waiting)


class PrepareAttempts:
    """Lets the executors prepare (pull images, make volumes)."""

    row: AttemptHandler = PREPARE

    def __init__(self, alive: Callable[[str], bool]) -> None:
        """Remember how to ask whether an executor is alive."""
        self._alive = alive

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Report where preparation has begun, and who waits for it to end; lost executors prepare nothing."""
        del now
        reached, failures = _reached(targets, self._alive)
        successes, preparing = [], {}
        for active in reached:
            statuses = [run.status for run in active.runs.values()]
            if RunStatus.SCHEDULED in statuses:
                successes.append(active.attempt.job_id)
            else:
                left = sum(status in _PREPARING for status in statuses)
                preparing[active.attempt.job_id] = f"{left} of {len(statuses)} runs still preparing"
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
        reached, failures = _reached(targets, self._alive)
        return HandlerResult(tuple(active.attempt.job_id for active in reached), failures)


def _reached(
    targets: Sequence[Active], alive: Callable[[str], bool]
) -> tuple[list[Active], dict[str, tuple[str, str]]]:
    """Tell attempts whose executors are all alive from the others, which have failed."""
    reached, failures = [], {}
    for active in targets:
        lost = sorted({run.executor for run in active.runs.values() if not alive(run.executor)})
        if lost:
            failures[active.attempt.job_id] = ("executor_lost", f"executor {', '.join(lost)} does not answer")
        else:
            reached.append(active)
    return reached, failures


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
            self._state.queue.discard(active.kind, active.attempt.job_id)
            if left:
                waiting[active.attempt.job_id] = f"{left} of {len(active.runs)} runs still stopping"
            else:
                stopped.append(active.attempt.job_id)
        return HandlerResult(tuple(stopped), skipped=waiting)


def prepared_at_once(state: ControllerState, active: Active, now: float) -> None:
    """Mark the runs of an attempt PREPARED where the engine has nothing to prepare."""
    if active.attempt.status is AttemptStatus.PREPARING:
        for run in list(active.runs.values()):
            if run.status is RunStatus.PREPARING:
                state.put_run(active, run.entered(RunStatus.PREPARED, now))
