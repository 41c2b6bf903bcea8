"""An attempt at a gang, moved by the lifecycle table in one look (BEP-1030's four lifecycle handlers).

Its only effect on the outside is a changed status of its runs, from which follows what executors should have.
"""

from __future__ import annotations

from itertools import filterfalse, islice
from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.containers import Capability
from holdfast.domain.job import Attempt, Run
from holdfast.domain.lifecycle import (
    ATTEMPT_TERMINAL,
    ATTEMPTS,
    RUN_TERMINAL,
    SCHEDULE,
    SESSIONS,
    START,
    TERMINATE,
    AttemptStatus,
    Outcome,
    RunStatus,
    Step,
    SubStep,
    TransitionStatus,
)
from holdfast.domain.lifecycle.engine import Report, advance, resolve_options
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.endings import EXECUTOR_LOST, STILL_PULLING
from holdfast.domain.workloads.orders import RunOrders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.job import Job
    from holdfast.domain.lifecycle import AttemptHandler, AttemptPromotion, Interruption, RequestRow
    from holdfast.domain.lifecycle.engine import HandlerLimits, HandlerOptions
    from holdfast.domain.workloads.gang.conclude import Judging
    from holdfast.domain.workloads.spec import JobSpec

    Row = AttemptHandler | AttemptPromotion

KILL_ALLOWANCE_S = 30.0
"""How long a run may take to be confirmed stopped, beyond its executor's lease and its grace, before the attempt ends
without it."""
MOST_RETURNS = 3
"""How often a session may lose its place before it starts; then it fails, so that its policy decides."""
_PREPARING = frozenset({RunStatus.PREPARING, RunStatus.PULLING})
_NOT_HANDED_OUT = _PREPARING | {RunStatus.PENDING, RunStatus.SCHEDULED, RunStatus.PREPARED}
_COUNTED = frozenset({Outcome.NEED_RETRY, Outcome.GIVE_UP, Outcome.EXPIRED})
"""Outcomes that are failures of a phase, which are recorded with the status of each run."""
_MOST_RUNS = 16


class AttemptContext(NamedTuple):
    """What moving an attempt depends on besides its runs."""

    alive: Callable[[str], bool]
    """Returns whether an executor is known and within its lease."""
    engines: Mapping[str, EngineInfo]
    """The engine of each executor."""
    judging: Judging
    """Returns what a failure is judged by."""
    limits: Callable[[str], tuple[HandlerLimits, ...]] = lambda _: ()
    """Returns the handler limits in force in a queue, most specific last."""
    since: Callable[[float], float] = float
    """Returns when waiting in a status began to count, from the time it was entered."""
    lease_s: float = 0.0
    """The lease of executors: a silent one may still run its programs for this long."""
    token_digest: Callable[[str], str] = lambda _: ""
    """Returns the digest of a run's own token, by the run's uid."""


def waiting_attempt(job: Job) -> Attempt:
    """Return the next attempt at a job, waiting for a place."""
    since = job.queued_at
    return Attempt(job.id, job.attempt + 1, status_since=since, created_at=since, request=job.request)


def after(attempt: Attempt, outcome: Outcome, to: AttemptStatus | None, at: float) -> Attempt:
    """Return an attempt after an outcome; a change of status resets its clock and its tries."""
    if to is not None and to is not attempt.status:
        return evolve(attempt, status=to, status_since=at, tries=0)
    return evolve(attempt, tries=attempt.tries + 1) if outcome in _COUNTED else attempt


class Flight:
    """An attempt with its runs, and the orders about both."""

    def __init__(
        self, spec: JobSpec, job: Job, attempt: Attempt, runs: Mapping[str, Run], around: AttemptContext
    ) -> None:
        self.attempt = attempt
        self.status = attempt.status
        self.runs = dict(runs)
        self.orders = RunOrders()
        self.raised: Exception | None = None
        """The exception of a phase: a defect, which counts as its failure."""
        self.over: Step | None = None
        """The step that ends it; the meaning is concluded from its runs."""
        self.back: Step | None = None
        """The step by which it loses its places, and waits for others."""
        self._spec = spec
        self._job = job
        self._around = around
        self.children = self._statuses()
        """The statuses of its runs."""

    @property
    def tries(self) -> int:
        """How often the work of its status has failed."""
        return self.attempt.tries

    @property
    def interrupted(self) -> Interruption | None:
        """Why it was told to stop, if it did nothing wrong."""
        return next((run.interrupted for run in self.runs.values() if run.interrupted is not None), None)

    def since(self, now: float) -> float:
        """Return when waiting in its status began to count."""
        entered = self.attempt.status_since
        return self._around.since(entered) if entered < now else entered

    def options(self, row: Row) -> HandlerOptions:
        """Return its limits, from its queue, its job and its executors."""
        options, spec = resolve_options(row, *self._around.limits(self._job.queue)), self._spec
        if row is SCHEDULE:
            return evolve(options, timeout_s=spec.scheduling_timeout_s)
        if row is TERMINATE:
            warned_s = 0.0 if spec.warning is None else spec.warning.before_s
            return evolve(options, timeout_s=warned_s + self._around.lease_s + spec.grace_s + KILL_ALLOWANCE_S)
        return options

    def work(self, row: AttemptHandler, now: float) -> Report:
        """Do the work of a phase."""
        if row is TERMINATE:
            return self._terminate(now)
        if row is SCHEDULE:
            return _DONE if self.runs else Report(Outcome.SKIPPED, message=self._job.reason)
        lost = sorted(set(filterfalse(self._around.alive, (run.executor for run in self.runs.values()))))
        if lost:
            return Report(Outcome.FAILURE, EXECUTOR_LOST, f"executor {', '.join(lost)} does not answer")
        statuses = self.children
        if row is START or RunStatus.SCHEDULED in statuses:
            return _DONE
        left = sum(map(_PREPARING.__contains__, statuses))
        return Report(Outcome.SKIPPED, message=f"{left} of {len(statuses)} runs still preparing")

    def _terminate(self, now: float) -> Report:
        """Stop all running runs at once; runs that were never handed out are cancelled."""
        left = 0
        for run in self.runs.values():
            if run.status in RUN_TERMINAL:
                continue
            if run.status in _NOT_HANDED_OUT:
                self._put(evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))
                continue
            left += 1
            if run.status is not RunStatus.TERMINATING:
                self._put(evolve(run, status=RunStatus.TERMINATING, status_since=now))
        return Report(Outcome.SKIPPED, message=f"{left} of {len(self.runs)} runs still stopping") if left else _DONE

    def take(self, step: Step, to: TransitionStatus[AttemptStatus, RunStatus]) -> bool:
        """Take a step; returns whether the attempt may move on at once."""
        before, status, now = self.attempt, to.status, step.now
        if step.outcome in _COUNTED:
            step = step._replace(steps=self._unfinished_runs(step.outcome))
        if status is AttemptStatus.PENDING:
            if self._spec.session is not None and before.dispatch > MOST_RETURNS:
                message = f"it lost its place {MOST_RETURNS} times before it could start: {step.message}"
                pulls = RunStatus.PULLING in self.children
                self.over = step._replace(message=message, code=step.code or STILL_PULLING * pulls)
                self._cancel_runs(now)
            else:
                self.back = step
            return False
        if to.children is not None:
            self._move_runs(to.children, now)
        if status in ATTEMPT_TERMINAL:
            self.over = step
            return False
        attempt = after(before, step.outcome, status, now)
        if status is AttemptStatus.RUNNING:
            attempt = evolve(attempt, started_at=max(run.started_at or now for run in self.runs.values()))
        self.attempt, self.status = attempt, attempt.status
        self.children = self._statuses()
        self.orders.steps.append((step, attempt))
        return attempt.status is not before.status

    def stop(self, row: RequestRow[AttemptStatus], why: Interruption | None, reason: str, now: float) -> None:
        """Begin to end it on request; if it is ending already, only its runs' reason changes."""
        if why is not None:
            for run in [run for run in self.runs.values() if run.status not in RUN_TERMINAL]:
                self._put(evolve(run, interrupted=why))
        if self.status is AttemptStatus.TERMINATING:
            self.orders.tell_again = True
            return
        self.take(Step(row.name, Outcome.SUCCESS, now, message=reason), TransitionStatus(row.moves[self.status]))

    def expire(self, message: str, now: float) -> None:
        """Give it up, because it found no place in time."""
        step = Step(SCHEDULE.name, Outcome.EXPIRED, now, message=message)
        self.take(step, SCHEDULE.transitions[Outcome.EXPIRED])

    def put_back(self, now: float) -> None:
        """Withdraw it from its places; it was never handed out, and is placed again with fresh uids."""
        if self.back is not None:
            self._cancel_runs(now)
            self.attempt = evolve(
                self.attempt, status=AttemptStatus.PENDING, status_since=now, tries=0, message=self.back.message
            )
            self.orders.steps.append((self.back, self.attempt))
            self.orders.withdraw = True

    def advance(self, now: float) -> None:
        """Move it as far as it can go now."""
        if self.status is AttemptStatus.PREPARING:
            self._prepare(now)
            self.children = self._statuses()
        advance(ATTEMPTS if self._spec.session is None else SESSIONS, self, now)

    def next_look(self, now: float, latest: float | None = None) -> float | None:
        """Return when time alone may move it, at most ``latest``; ``None`` if time does not."""
        due = [] if latest is None or latest <= now else [latest]
        limited = left = False
        for row in _TIMED_ROWS.get(self.status, ()):
            limit_s = self.options(row).timeout_s
            limited = limited or bool(limit_s)
            if limit_s is not None and (over_at := self.since(now) + limit_s) >= now:
                left = True
                due.append(min(over_at + _PAST_S, now + _EDITED_S))
        if self.status in _TRIED_AGAIN or (limited and not left):
            due.append(now + _LOOK_EVERY_S)
        return min(due, default=None)

    def _statuses(self) -> list[RunStatus]:
        """Return the statuses of the runs that matter to the attempt.

        A session is over when its main kernel has ended or any kernel has failed (BEP-1030's figure), but not when
        another kernel is done.
        """
        runs = self.runs.values()
        if self._spec.session is None:
            return [run.status for run in runs]
        return [run.status for run in runs if run.rank == 0 or run.status is not RunStatus.TERMINATED]

    def _cancel_runs(self, now: float) -> None:
        for run in list(self.runs.values()):
            self._put(evolve(run, status=RunStatus.CANCELLED, status_since=now, ended_at=now))

    def _put(self, run: Run) -> None:
        self.runs[run.uid] = self.orders.put[run.uid] = run
        if self._spec.session is not None:
            self.orders.moves.append(run)

    def _move_runs(self, status: RunStatus, now: float) -> None:
        """Move runs that have not ended to a status."""
        for run in [run for run in self.runs.values() if run.status not in RUN_TERMINAL]:
            if run.status is not status:
                self._put(evolve(run, status=status, status_since=now))
        if status is RunStatus.PREPARING:
            self._prepare(now)

    def _prepare(self, now: float) -> None:
        """Mark runs as prepared if their engine does not prepare runs."""
        for run in [run for run in self.runs.values() if run.status is RunStatus.PREPARING]:
            engine = self._around.engines.get(run.executor)
            if engine is not None and Capability.PREPARING not in engine.capabilities:
                self._put(evolve(run, status=RunStatus.PREPARED, status_since=now))

    def _unfinished_runs(self, outcome: Outcome) -> tuple[SubStep, ...]:
        """List the first runs that have not ended, for which the attempt fails or waits."""
        left = (run for run in self.runs.values() if run.status not in RUN_TERMINAL)
        first = islice(left, _MOST_RUNS)
        return tuple(SubStep(f"rank {run.rank}", outcome, message=f"{run.status} on node {run.node}") for run in first)


_DONE = Report(Outcome.SUCCESS)
_TIMED_ROWS: Mapping[AttemptStatus, tuple[Row, ...]] = {
    **{status: (row,) for row in ATTEMPTS.handlers for status in row.targets},
    **{status: (row,) for row in ATTEMPTS.promotions if row.expired is not None for status in row.targets},
}
"""The rows whose time limits apply in each status."""
_LOOK_EVERY_S = 1.0
_EDITED_S = 30.0
"""Limits may be edited while an attempt waits, so they are checked again at least this often."""
_PAST_S = 0.001
"""A status is left when more than its time has passed."""
_TRIED_AGAIN = frozenset({AttemptStatus.SCHEDULED, AttemptStatus.PREPARING, AttemptStatus.PREPARED})
"""Statuses in which a failed phase is retried."""
