"""The phases' work: schedule, prepare, start, terminate (BEP-1030's four lifecycle handlers).

Each handler says what happened; none judges retry, expiry or giving up. What they do to the outside world
is only ever to change the desired set, which executors fetch after the commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.coordination import HandlerResult
from holdfast.domain.evolve import evolve
from holdfast.domain.job import Attempt, JobState, Run
from holdfast.domain.lifecycle import (
    PREPARE,
    RUN_TERMINAL,
    SCHEDULE,
    START,
    TERMINATE,
    AttemptStatus,
    HandlerRow,
    RunStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.state import Active, ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.placement import PlaceKey


class ScheduleAttempts:
    """Opens attempts for the waiting jobs a round placed."""

    row: HandlerRow = SCHEDULE

    def __init__(self, state: ControllerState) -> None:
        """Remember the state."""
        self._state = state

    def open(self, job: Job, places: tuple[PlaceKey, ...], now: float) -> Active:
        """Open a PENDING attempt at a job, with its runs on their places."""
        number = job.attempt + 1
        earlier = self._state.unplaced.get(job.id)
        dispatch = earlier.dispatch + 1 if earlier else 1
        attempt = Attempt(
            job.id,
            number,
            status_since=job.queued_at,
            dispatch=dispatch,
            created_at=earlier.created_at if earlier else job.queued_at,
            request=job.request,
        )
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
        """Give every target its places; a job is running from here on."""
        del now
        return HandlerResult(successes=tuple(active.attempt.job_id for active in targets))


class PrepareAttempts:
    """Lets the executors prepare (pull images, make volumes)."""

    row: HandlerRow = PREPARE

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Say with whom preparation has begun; an engine with nothing to prepare is done at once."""
        del now
        return HandlerResult(successes=tuple(active.attempt.job_id for active in targets))


class StartAttempts:
    """Hands runs out: from here on they are in their executors' desired sets."""

    row: HandlerRow = START

    def __init__(self, alive: Callable[[str], bool]) -> None:
        """Remember how to ask whether an executor is alive."""
        self._alive = alive

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Hand out attempts whose executors are all alive; the others have failed to start."""
        del now
        successes, failures = [], {}
        for active in targets:
            lost = sorted({run.executor for run in active.runs.values() if not self._alive(run.executor)})
            if lost:
                failures[active.attempt.job_id] = ("executor_lost", f"executor {', '.join(lost)} does not answer")
            else:
                successes.append(active.attempt.job_id)
        return HandlerResult(tuple(successes), failures)


class TerminateAttempts:
    """Asks for what still runs to be stopped."""

    row: HandlerRow = TERMINATE

    def __init__(self, state: ControllerState) -> None:
        """Remember the world."""
        self._state = state

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Mark what runs as to be stopped; the attempt waits until all of it is confirmed stopped."""
        waiting = {}
        for active in targets:
            left = [run for run in active.runs.values() if run.status not in RUN_TERMINAL]
            for run in left:
                if run.status is not RunStatus.TERMINATING:
                    self._state.put_run(active, run.entered(RunStatus.TERMINATING, now))
            self._state.queue.discard(active.kind, active.attempt.job_id)
            waiting[active.attempt.job_id] = f"{len(left)} of {len(active.runs)} runs still stopping"
        return HandlerResult(skipped=waiting)


def prepared_at_once(state: ControllerState, active: Active, now: float) -> None:
    """Mark the runs of an attempt PREPARED where the engine has nothing to prepare."""
    if active.attempt.status is AttemptStatus.PREPARING:
        for run in list(active.runs.values()):
            if run.status is RunStatus.PREPARING:
                state.put_run(active, run.entered(RunStatus.PREPARED, now))
