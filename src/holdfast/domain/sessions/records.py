"""Follows a job with the records of its sessions and kernels, and with their history.

Everything here is told from what became of the job, its attempts and its runs, in the commit that changed them, so that
the records can never disagree with the job. Each status that is passed through is recorded, however briefly (BEP-1030).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.failure import Cause
from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import (
    CANCEL_JOB,
    PREPARE,
    RUN_ENDED,
    RUN_FAILED,
    RUN_NEVER_STARTED,
    RUN_PREPARED,
    RUN_PULLING,
    RUN_STARTED,
    RUN_TERMINAL,
    SCHEDULE,
    START,
    TERMINATE,
    AttemptStatus,
    Ending,
    EntityKind,
    Outcome,
    RunStatus,
    Step,
)
from holdfast.domain.lifecycle.history import HistoryRow, rows_for_steps
from holdfast.domain.record import Struct, evolve, field
from holdfast.domain.sessions.model import (
    Kernel,
    RetryState,
    Session,
    SessionResult,
    SessionStatus,
    creation_id,
    history_id,
    kernel_id,
    session_id,
)
from holdfast.domain.sessions.policy import eligible_cause
from holdfast.domain.sessions.retry_state import state_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.job import Job, Run
    from holdfast.domain.sessions.model import SessionSpec


RESCHEDULE = "RescheduleSession"
"""The phase in which a session that lost its place through no fault of its own waits for another."""
_KERNEL_PHASES = {
    RunStatus.PENDING: RESCHEDULE,
    RunStatus.SCHEDULED: SCHEDULE.name,
    RunStatus.PREPARING: PREPARE.name,
    RunStatus.PULLING: RUN_PULLING.name,
    RunStatus.PREPARED: RUN_PREPARED.name,
    RunStatus.CREATING: START.name,
    RunStatus.RUNNING: RUN_STARTED.name,
    RunStatus.TERMINATING: TERMINATE.name,
    RunStatus.TERMINATED: RUN_ENDED.name,
    RunStatus.ERROR: RUN_FAILED.name,
    RunStatus.CANCELLED: RUN_NEVER_STARTED.name,
}
"""The phase that leads a kernel to each status."""
_PROGRAMS = frozenset({Cause.KERNEL_NONZERO_EXIT, Cause.OOM_KILLED, Cause.EXECUTION_TIMEOUT, Cause.STALLED})
"""Causes of a failure that is the program's own: its session is TERMINATED, not CANCELLED, as upstream has it."""
_ONGOING = frozenset({JobState.QUEUED, JobState.WAITING, JobState.RUNNING})


def first_session(job: Job, spec: SessionSpec, *, name: str = "", tag: str = "") -> Session:
    """Return the first session of a new job."""
    return _session(job, spec, 0, job.submitted_at, name=name or job.name, tag=tag)


def _session(job: Job, spec: SessionSpec, retry_count: int, now: float, *, name: str, tag: str) -> Session:
    return Session(
        id=session_id(job.id, retry_count),
        job_id=job.id,
        retry_count=retry_count,
        creation_id=creation_id(job.id, retry_count),
        name=name,
        tag=tag,
        type=spec.type,
        user=job.submitted_by,
        access_key=spec.access_key,
        project=job.queue,
        domain=spec.domain,
        resource_group=spec.resource_group,
        image=spec.image,
        cluster_mode=spec.cluster_mode,
        cluster_size=job.gang,
        priority=job.priority,
        job_priority=spec.job_priority,
        is_preemptible=spec.is_preemptible,
        batch_timeout_s=spec.batch_timeout_s,
        starts_at=spec.starts_at,
        policy=spec.policy,
        first_attempt=job.attempt + 1,
        status=SessionStatus.PENDING,
        status_since=now,
        status_info="",
        result=SessionResult.UNDEFINED,
        retry_cause=None,
        retry_state=RetryState.NONE,
        retry_at=None,
        created_at=now,
        started_at=None,
        terminated_at=None,
    )


def first_kernels(session: Session) -> tuple[Kernel, ...]:
    """Return the kernels of a new session."""
    return tuple(
        Kernel(
            id=kernel_id(session.id, rank),
            session_id=session.id,
            job_id=session.job_id,
            retry_count=session.retry_count,
            rank=rank,
            run="",
            status=RunStatus.PENDING,
            status_since=session.created_at,
            status_info="",
            executor="",
            node="",
            exit_code=None,
            created_at=session.created_at,
            started_at=None,
            terminated_at=None,
        )
        for rank in range(session.cluster_size)
    )


class SessionChanges(Struct, eq=False, gc=True):
    """What one look at a job changed about its sessions."""

    sessions: dict[str, Session] = field(default_factory=dict)
    """By id."""
    kernels: dict[str, Kernel] = field(default_factory=dict)
    """By id."""
    retries: dict[str, str] = field(default_factory=dict)
    """The session that each new one retries, by the new one's id."""
    history: list[HistoryRow] = field(default_factory=list)
    ended: list[tuple[Session, Attempt]] = field(default_factory=list)
    """Sessions as they ended, with the attempt that ended each."""


class Followed(NamedTuple):
    """What became of a job in one look."""

    job: Job
    """The job after it."""
    steps: Sequence[tuple[Step, Attempt]] = ()
    """The steps of its attempt, and the attempt after each."""
    moves: Iterable[Run] = ()
    """Its runs after each change of their status."""
    ended: Sequence[tuple[Attempt, Step]] = ()
    """Its attempts that have ended, and how."""


class Chain:
    """The current session of an unfinished job, with its kernels and the last steps of each in the history."""

    def __init__(
        self,
        spec: SessionSpec,
        session: Session,
        kernels: Sequence[Kernel],
        last: Mapping[str, HistoryRow] | None = None,
    ) -> None:
        self.spec = spec
        self.session = session
        self.kernels = {kernel.rank: kernel for kernel in kernels}
        self._last = dict(last or {})
        """The last rows of the session and its kernels, by their ids in the history."""

    def follow(self, seen: Followed, now: float) -> SessionChanges:
        """Bring the records up to a job as it is after a look."""
        changes = SessionChanges()
        for step, attempt in seen.steps:
            self._step(changes, step, SessionStatus(attempt.status.value), now)
        for run in seen.moves:
            self.run_changed(run, now, changes)
        for attempt, step in seen.ended:
            self._end_attempt(changes, attempt, step, seen.job, now)
        self._job_changed(changes, seen.job, now)
        return changes

    def run_changed(self, run: Run, now: float, changes: SessionChanges | None = None) -> SessionChanges:
        """Note the new status of a run."""
        changes = changes or SessionChanges()
        kernel = self.kernels.get(run.rank)
        if kernel is None or self.session.terminal:
            return changes
        outcome, message, code = run.outcome, "", None
        if outcome is not None:
            message = outcome.message
            code = next((container.exit_code for container in outcome.containers if not container.init), None)
        after = evolve(
            kernel,
            run=run.uid,
            executor=run.executor,
            node=run.node,
            exit_code=code,
            started_at=run.started_at,
            terminated_at=run.ended_at,
            status_info=message,
        )
        self._move_kernel(changes, after, run.status, now, message)
        return changes

    def _move_kernel(
        self, changes: SessionChanges, kernel: Kernel, status: RunStatus, now: float, message: str = ""
    ) -> None:
        before = kernel.status
        if status is not before:
            kernel = evolve(kernel, status=status, status_since=now)
            step = Step(_KERNEL_PHASES[status], Outcome.SUCCESS, now, message=message)
            name = history_id(kernel.job_id, kernel.retry_count, kernel.rank)
            self._record(changes, EntityKind.KERNEL, name, before.value, step, status.value)
        self.kernels[kernel.rank] = changes.kernels[kernel.id] = kernel

    def _record(
        self, changes: SessionChanges, kind: EntityKind, name: str, before: str, step: Step, after: str
    ) -> None:
        for row in rows_for_steps(self._last.get(name), ((step, after),), kind, name, before):
            changes.history.append(row)
            self._last[name] = row

    def _step(
        self, changes: SessionChanges, step: Step, status: SessionStatus, now: float, session: Session | None = None
    ) -> None:
        """Record a step of the session; ``session`` is the session with what else it changes."""
        before = self.session
        name = history_id(before.job_id, before.retry_count)
        self._record(changes, EntityKind.SESSION, name, before.status.value, step, status.value)
        after = session or before
        if status is not before.status:
            after = evolve(after, status=status, status_since=now, status_info=step.message)
        if status is SessionStatus.RUNNING:
            after = evolve(after, started_at=now)
        self._put(changes, after)
        if status is SessionStatus.PENDING and status is not before.status:
            self._clear_kernels(changes, now)

    def _put(self, changes: SessionChanges, session: Session) -> None:
        self.session = changes.sessions[session.id] = session

    def _clear_kernels(self, changes: SessionChanges, now: float) -> None:
        """Let the kernels wait for a place."""
        for kernel in [*self.kernels.values()]:
            cleared = evolve(
                kernel,
                run="",
                executor="",
                node="",
                exit_code=None,
                started_at=None,
                terminated_at=None,
                status_info="",
            )
            self._move_kernel(changes, cleared, RunStatus.PENDING, now)

    def _end_attempt(self, changes: SessionChanges, attempt: Attempt, step: Step, job: Job, now: float) -> None:
        """Note the end of an attempt: the session ends with it, or waits for another place."""
        decision = attempt.decision
        counted = decision is not None and decision.counter is not None
        if not counted and not job.terminal:
            self._step(changes, step._replace(phase=RESCHEDULE, message=job.reason), SessionStatus.PENDING, now)
            return
        session, failure = self.session, attempt.failure
        failed = attempt.ending is Ending.FAILED and failure is not None
        result, cause = SessionResult.UNDEFINED, None
        if attempt.ending is Ending.SUCCEEDED:
            result = SessionResult.SUCCESS
        elif job.state is JobState.CANCELLED:
            result = SessionResult.CANCELLED
        elif failed and failure is not None:
            result, cause = SessionResult.FAILURE, failure.cause
        message = step.message or (failure.message if failure is not None else "")
        status = _final_status(attempt)
        session = evolve(
            session,
            result=result,
            retry_cause=_cancel_cause(attempt) if cause is None else (eligible_cause(cause) or cause).value,
            retry_state=state_after(self.spec, failure if failed else None, decision, session.retry_count),
            retry_at=attempt.retry_at if counted else None,
            terminated_at=attempt.ended_at or now,
        )
        changes.ended.append((session, attempt))
        self._step(changes, step._replace(message=message), status, now, session)
        self._end_kernels(changes, now)

    def _end_kernels(self, changes: SessionChanges, now: float) -> None:
        """Cancel the kernels that never had a run, and end those whose run was given up."""
        for kernel in [*self.kernels.values()]:
            if kernel.status in RUN_TERMINAL:
                continue
            status = RunStatus.TERMINATED if kernel.started_at is not None else RunStatus.CANCELLED
            self._move_kernel(changes, evolve(kernel, terminated_at=now), status, now)

    def _job_changed(self, changes: SessionChanges, job: Job, now: float) -> None:
        session = self.session
        if job.terminal:
            if not session.terminal:  # It was ended before it had an attempt.
                result = SessionResult.FAILURE if job.state is JobState.FAILED else SessionResult.CANCELLED
                ended = evolve(session, result=result, terminated_at=now, retry_cause=_cause_without_attempt(job))
                step = Step(CANCEL_JOB.name, Outcome.SUCCESS, now, message=job.reason)
                self._step(changes, step, SessionStatus.CANCELLED, now, ended)
                self._end_kernels(changes, now)
            elif session.retry_state is RetryState.PENDING:
                self._put(changes, evolve(session, retry_state=RetryState.CANCELLED, retry_at=None))
            return
        if session.terminal and job.state in _ONGOING:
            self._put(changes, evolve(session, retry_state=RetryState.RETRIED, retry_at=None))
            self._begin(changes, job, session, now)

    def _begin(self, changes: SessionChanges, job: Job, parent: Session, now: float) -> None:
        """Begin the session that retries another one."""
        # The job may have its attempt already, where a retry is due at once.
        retry = _session(job, self.spec, parent.retry_count + 1, now, name=parent.name, tag=parent.tag)
        self._put(changes, retry)
        changes.retries[retry.id] = parent.id
        self.kernels = {}
        for kernel in first_kernels(retry):
            self.kernels[kernel.rank] = changes.kernels[kernel.id] = kernel


def _final_status(attempt: Attempt) -> SessionStatus:
    """Return the status of a session that ends with an attempt, as upstream folds its own."""
    if attempt.status is AttemptStatus.TERMINATED:
        return SessionStatus.TERMINATED
    failure = attempt.failure
    if attempt.status is AttemptStatus.ERROR and failure is not None and failure.cause in _PROGRAMS:
        return SessionStatus.TERMINATED
    return SessionStatus.CANCELLED


def _cancel_cause(attempt: Attempt) -> str | None:
    """Return why a session that did not fail was ended, if it was."""
    failure = attempt.failure
    return None if failure is None or failure.cause is not Cause.USER_CANCELLED else failure.cause.value


def _cause_without_attempt(job: Job) -> str:
    """Return why a job ended that had no attempt."""
    return Cause.USER_CANCELLED.value if job.state is JobState.CANCELLED else Cause.SCHEDULER_TIMEOUT.value
