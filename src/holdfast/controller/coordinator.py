"""Drives attempts through the tables: source, handler, apply; and promotes them by what their runs are.

Decides nothing a handler could decide and everything it may not: need_retry, expired and give_up are judged
here and only here (BEP-1030). Leaves the phases' work to ``handlers`` and endings to ``judge``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from holdfast.controller.state import Step
from holdfast.domain.coordination import (
    HandlerOptions,
    HandlerResult,
    is_expired,
    judge_failure,
    judge_waiting,
    moved,
    promotes,
    resolve_options,
    target_of,
)
from holdfast.domain.evolve import evolve
from holdfast.domain.lifecycle import (
    GANG_PROMOTIONS,
    HANDLERS,
    PROMOTE_TO_TERMINATED,
    RUN_TERMINAL,
    AttemptStatus,
    Outcome,
    PromotionRow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.controller.state import Active, ControllerState
    from holdfast.domain.lifecycle import HandlerRow, TransitionStatus
    from holdfast.domain.workloads.gang.verdict import Verdict

_log = structlog.get_logger(__name__)


class Handler(Protocol):
    """One phase's work."""

    row: HandlerRow

    def execute(self, targets: Sequence[Active], now: float) -> HandlerResult:
        """Do the phase's work on a batch and say with whom it went well, badly or not at all."""
        ...


class Coordinator:
    """Applies what handlers and runs report."""

    def __init__(
        self,
        state: ControllerState,
        *,
        conclude: Callable[[Active, float], Verdict],
        requeue: Callable[[Active, float, str], None],
        options: dict[str, HandlerOptions] | None = None,
        lease_s: float | None = None,
    ) -> None:
        """Wire the coordinator.

        Args:
            state: The controller's memory.
            conclude: Judges an attempt whose runs have all stopped.
            requeue: Called with an attempt that goes back to PENDING, and why.
            options: Overrides by handler name.
            lease_s: Of executors: for that long, a silent one may still run what it was last told to.
        """
        self._state = state
        self._conclude = conclude
        self._requeue = requeue
        self._options = options or {}
        self._lease_s = lease_s or 0.0

    def options(self, row: HandlerRow) -> HandlerOptions:
        """Return how patient to be with a handler."""
        return self._options.get(row.name) or resolve_options(row)

    def run(self, handler: Handler, batch: Sequence[Active], now: float) -> None:
        """Run a handler on those of a batch it is meant for, and apply what it says."""
        targets = [active for active in batch if self._is_target(handler.row, active)]
        if not targets:
            return
        result = self._execute(handler, targets, now)
        by_id = {active.attempt.job_id: active for active in targets}
        row = handler.row
        done = Step(row.name, Outcome.SUCCESS, now)
        for job_id in result.successes:
            self._apply(by_id[job_id], row, done)
        for job_id, (code, message) in result.failures.items():
            active = by_id[job_id]
            since = self._state.since(active.attempt.status_since)
            outcome = judge_failure(active.attempt.tries, self.options(row), since=since, now=now)
            self._apply(active, row, Step(row.name, outcome, now, code, message))
        for job_id, message in result.skipped.items():
            active = by_id[job_id]
            since = self._state.since(active.attempt.status_since)
            outcome = judge_waiting(self._patience(row, active), since=since, now=now)
            self._apply(active, row, Step(row.name, outcome, now, message=message))

    @staticmethod
    def _is_target(row: HandlerRow, active: Active) -> bool:
        return active.attempt.status in row.targets and (
            row.run_targets is None or any(run.status in row.run_targets for run in active.runs.values())
        )

    @staticmethod
    def _execute(handler: Handler, targets: Sequence[Active], now: float) -> HandlerResult:
        try:
            return handler.execute(targets, now)
        except Exception as error:  # noqa: BLE001 - a handler that raises failed for all it was given (semantics 6)
            _log.exception("handler raised", handler=handler.row.name, targets=len(targets))
            failed = (type(error).__name__, str(error))
            return HandlerResult(failures={active.attempt.job_id: failed for active in targets})

    def _patience(self, row: HandlerRow, active: Active) -> HandlerOptions:
        options = self.options(row)
        if AttemptStatus.TERMINATING in row.targets and options.timeout_s is None:
            return evolve(options, timeout_s=self._lease_s + active.spec.grace_s + KILL_ALLOWANCE_S)
        return options

    def _apply(self, active: Active, row: HandlerRow, step: Step) -> None:
        target = target_of(row, step.outcome)
        if target.attempt is AttemptStatus.TERMINATED:
            self._move_runs(active, target, step.now)
            self._end(active, step)
            return
        self._state.record(active, step, target.attempt or active.attempt.status)
        if target.attempt is AttemptStatus.PENDING:
            self._requeue(active, step.now, step.message)
            return
        self._move_runs(active, target, step.now)
        self._state.put_attempt(active, moved(active.attempt, step.outcome, target.attempt, step.now))

    def _move_runs(self, active: Active, target: TransitionStatus, now: float) -> None:
        if target.run is None:
            return
        for run in list(active.runs.values()):
            if run.status not in RUN_TERMINAL and run.status is not target.run:
                self._state.put_run(active, run.entered(target.run, now))

    def promote(self, active: Active, now: float) -> None:
        """Move an attempt on as far as its runs allow."""
        for row in GANG_PROMOTIONS:
            if active.attempt.status not in row.targets:
                continue
            if promotes(row, [run.status for run in active.runs.values()]):
                self._promoted(active, row, row.success, Step(row.name, Outcome.SUCCESS, now))
                return
            if row.expired and is_expired(self._state.since(active.attempt.status_since), row.timeout_s, now):
                self._promoted(active, row, row.expired, Step(row.name, Outcome.EXPIRED, now))
                return

    def _promoted(self, active: Active, row: PromotionRow, to: AttemptStatus, step: Step) -> None:
        if row is PROMOTE_TO_TERMINATED:
            self._end(active, step)
            return
        self._state.record(active, step, to)
        attempt = moved(active.attempt, step.outcome, to, step.now)
        if to is AttemptStatus.RUNNING:
            attempt = evolve(attempt, started_at=max(run.started_at or step.now for run in active.runs.values()))
        self._state.put_attempt(active, attempt)

    def _end(self, active: Active, step: Step) -> None:
        verdict = self._conclude(active, step.now)
        self._state.record(active, step, verdict.attempt.status)
        self._state.put_attempt(active, verdict.attempt)
        self._state.put_job(verdict.job)

    def next_look(self, active: Active, now: float) -> float | None:
        """Return when time alone may move an attempt on; ``None`` where its status has no way out by time."""
        status = active.attempt.status
        since = self._state.since(active.attempt.status_since)
        rows = [row for row in HANDLERS if status in row.targets]
        limits = [self._patience(row, active).timeout_s for row in rows]
        limits += [row.timeout_s for row in GANG_PROMOTIONS if status in row.targets]
        due = [since + limit_s + _PAST_S for limit_s in limits if limit_s is not None and since + limit_s >= now]
        if status in _TRIED_AGAIN or (not due and any(limits)):
            due.append(now + _LOOK_EVERY_S)
        return min(due, default=None)


KILL_ALLOWANCE_S = 30.0
"""How long after its executor's lease and its grace a run may take to be confirmed stopped before the attempt is
ended without it."""
_LOOK_EVERY_S = 1.0
_PAST_S = 0.001
"""A status is left when more than its time has passed."""
_TRIED_AGAIN = frozenset({AttemptStatus.SCHEDULED, AttemptStatus.PREPARING, AttemptStatus.PREPARED})
"""In these a phase that failed is tried again."""
