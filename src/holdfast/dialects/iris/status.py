"""Renders jobs and tasks as Iris does; its counts are of attempts, which are numbered from 0 there.

A gang is retried as a whole: a job's attempt is an attempt of each of its tasks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from holdfast.dialects.fluster.retry import PREEMPTION
from holdfast.dialects.fluster.status import Charged, charged
from holdfast.dialects.iris.budgets import FAILURE, POLICY
from holdfast.domain.failure import Cause, EndedBy, FailureCondition, failure_in_full
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.lifecycle import Ending, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.job import Attempt, Job, Run

KICKED = "kicked to failed: "
"""The prefix of the reason with which an operator fails a job; here the job is cancelled."""
COMPLETED = "completed: nothing more is to run"
"""The reason with which a user declares a job done; here it is cancelled, too."""
_MS = 1000


class IrisState(IntEnum):
    """``JobState`` and ``TaskState``, which share their numbers."""

    PENDING = 1
    BUILDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    KILLED = 6
    WORKER_FAILED = 7
    UNSCHEDULABLE = 8
    ASSIGNED = 9
    PREEMPTED = 10
    COSCHED_FAILED = 11


FINISHED = frozenset(
    {IrisState.SUCCEEDED, IrisState.FAILED, IrisState.KILLED, IrisState.WORKER_FAILED, IrisState.UNSCHEDULABLE}
)
_OF_JOBS = {
    JobState.RUNNING: IrisState.RUNNING,
    JobState.SUCCEEDED: IrisState.SUCCEEDED,
    JobState.FAILED: IrisState.FAILED,
    JobState.CANCELLED: IrisState.KILLED,
}
_CANCELLED, _FAILED = frozenset({JobState.CANCELLED}), frozenset({JobState.FAILED})
STORED_AS = {
    "pending": frozenset(JobState) - JOB_TERMINAL - {JobState.RUNNING},
    "running": frozenset({JobState.RUNNING}),
    "succeeded": frozenset({JobState.SUCCEEDED}) | _CANCELLED,
    "failed": _FAILED | _CANCELLED,
    "killed": _CANCELLED,
    "worker_failed": _FAILED,
    "unschedulable": _FAILED,
}
"""The states here that may correspond to a state of Iris, by its name; ``job_state`` decides."""
_OF_FAILURES = {
    Charged.PREEMPTION: IrisState.WORKER_FAILED,
    Charged.NOBODY: IrisState.WORKER_FAILED,
    Charged.UNSCHEDULABLE: IrisState.UNSCHEDULABLE,
}


def job_state(job: Job, last: Attempt | None) -> IrisState:
    """Return the state of a job; its last attempt is needed if it has failed."""
    if job.state is JobState.CANCELLED:
        return _declared(job)
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        return _OF_FAILURES.get(charged(last.failure), IrisState.FAILED)
    return _OF_JOBS.get(job.state, IrisState.PENDING)


def _declared(job: Job) -> IrisState:
    """Return the state of a cancelled job, which its reason tells."""
    if job.reason.startswith(KICKED):
        return IrisState.FAILED
    return IrisState.SUCCEEDED if job.reason == COMPLETED else IrisState.KILLED


def job_status(job: Job, last: Attempt | None, runs: Sequence[Run]) -> dict[str, Any]:
    """Return the ``JobStatus`` of a job, without its resources and its family.

    Args:
        job: The job.
        last: Its last attempt.
        runs: The runs of that attempt.
    """
    state = job_state(job, last)
    tasks = [_task_state(job, state, last, _of_rank(runs, last, rank)) for rank in range(job.gang)]
    failures, preemptions = _counts(job, last, state)
    error = _error_of(job, last) if state in FINISHED and state is not IrisState.SUCCEEDED else ""
    return {
        "job_id": job.group,
        "name": job.group,
        "state": int(state),
        "error": error,
        "pending_reason": job.reason if state is IrisState.PENDING else error,
        "failure_count": failures,
        "preemption_count": preemptions,
        "task_count": job.gang,
        "completed_count": tasks.count(IrisState.SUCCEEDED) + tasks.count(IrisState.KILLED),
        "task_state_counts": {name.name.lower(): tasks.count(name) for name in dict.fromkeys(tasks)},
        "submitted_at": _at(job.submitted_at),
        "submitting_user": job.submitted_by,
        "backend_id": "default",
        "cluster": "local",
        **_times(job.started_at, job.ended_at if job.terminal else None),
    }


def task_status(job: Job, rank: int, attempts: Sequence[Attempt], runs: Sequence[Run]) -> dict[str, Any]:
    """Return the ``TaskStatus`` of a task, with all of its attempts.

    Args:
        job: The job.
        rank: The task.
        attempts: All attempts, in order.
        runs: All runs of the attempts.
    """
    last = attempts[-1] if attempts else None
    run = _of_rank(runs, last, rank)
    state = _task_state(job, job_state(job, last), last, run)
    attempt_views = [_attempt(job, attempt, _of_rank(runs, attempt, rank)) for attempt in attempts]
    status: dict[str, Any] = {
        "task_id": f"{job.group}/{rank}",
        "state": int(state),
        "current_attempt_id": max(0, job.attempt - 1),
        "attempts": attempt_views,
        "submitted_at": _at(job.submitted_at),
        "backend_id": "default",
        "cluster": "local",
        "can_be_scheduled": not job.terminal,
        "pending_reason": job.reason if state is IrisState.PENDING else "",
        "ports": {} if run is None else dict(run.ports),
    }
    if attempt_views:
        same = ("worker_id", "exit_code", "error", "started_at", "finished_at")
        status |= {name: attempt_views[-1][name] for name in same if name in attempt_views[-1]}
    if state is IrisState.KILLED or (state is IrisState.FAILED and job.state is JobState.CANCELLED):
        status["error"] = _error_of(job, last)
    return status


def _task_state(job: Job, state: IrisState, last: Attempt | None, run: Run | None) -> IrisState:
    """Return the state of a task from its job's state, its last attempt and its run in that attempt."""
    if run is not None and run.outcome is not None and run.outcome.succeeded and not _waits(job):
        return IrisState.SUCCEEDED
    if state is IrisState.FAILED and run is not None and _cascaded(run):
        return IrisState.COSCHED_FAILED
    if state is IrisState.WORKER_FAILED and last is not None and _was_preempted(last.failure):
        return IrisState.PREEMPTED
    if state is not IrisState.RUNNING:
        return state
    # A job's status comes with the runs of its first tasks only; the others are in the state of their attempt.
    if (last is not None and last.started_at is not None) or (run is not None and run.started_at is not None):
        return IrisState.ASSIGNED if run is not None and run.status is RunStatus.PENDING else IrisState.RUNNING
    return IrisState.ASSIGNED if run is None or run.status is RunStatus.PENDING else IrisState.BUILDING


def _was_preempted(failure: Failure | None) -> bool:
    return failure is not None and FailureCondition.PREEMPTED in failure.conditions


def _waits(job: Job) -> bool:
    return not job.terminal and job.state is not JobState.RUNNING


def _attempt(job: Job, attempt: Attempt, run: Run | None) -> dict[str, Any]:
    """Return the ``TaskAttempt`` of a task's part in an attempt."""
    failure = attempt.failure
    state = _attempt_state(job, attempt, run)
    code = None if run is None or run.outcome is None else _exit_code(run.outcome.containers, run.outcome.ended_by)
    status: dict[str, Any] = {
        "attempt_id": attempt.number - 1,
        "worker_id": "" if run is None else run.node,
        "state": int(state),
        "exit_code": code or 0,
        "error": "",
        "is_worker_failure": state in {IrisState.WORKER_FAILED, IrisState.PREEMPTED},
        "attempt_uid": "" if run is None else run.uid,
        "node_name": "" if run is None else run.node,
        **_times(
            attempt.started_at if run is None else run.started_at, attempt.ended_at if run is None else run.ended_at
        ),
    }
    if state not in {IrisState.SUCCEEDED, IrisState.RUNNING, IrisState.BUILDING, IrisState.ASSIGNED, IrisState.PENDING}:
        status["error"] = _told(failure) if failure is not None else attempt.message or job.reason
    return status


def _attempt_state(job: Job, attempt: Attempt, run: Run | None) -> IrisState:
    if run is not None and run.outcome is not None and run.outcome.succeeded:
        return IrisState.SUCCEEDED
    if attempt.ending is None:
        return _task_state(job, job_state(job, attempt), attempt, run)
    failure = attempt.failure
    if failure is None or attempt.ending is not Ending.FAILED or failure.cause is Cause.USER_CANCELLED:
        return _declared(job)
    if _was_preempted(failure):
        return IrisState.PREEMPTED
    if run is not None and _cascaded(run):
        return IrisState.COSCHED_FAILED
    return _OF_FAILURES.get(charged(failure), IrisState.FAILED)


def _cascaded(run: Run) -> bool:
    return run.outcome is not None and run.outcome.ended_by is EndedBy.CASCADE


def _of_rank(runs: Sequence[Run], attempt: Attempt | None, rank: int) -> Run | None:
    """Return the newest run of a rank in an attempt."""
    number = 0 if attempt is None else attempt.number
    of_rank = [run for run in runs if run.attempt == number and run.rank == rank]
    return max(of_rank, key=lambda run: run.dispatch, default=None)


def _counts(job: Job, last: Attempt | None, state: IrisState) -> tuple[int, int]:
    """Count failed and lost attempts: those that were retried, and the last one if it was not."""
    failures, preemptions = (job.counters.get(f"{POLICY}/{rule}", 0) for rule in (FAILURE, PREEMPTION))
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        charge = charged(last.failure)
        failures += charge is Charged.FAILURE
        preemptions += charge is Charged.PREEMPTION
    return failures + (job.state is JobState.CANCELLED and state is IrisState.FAILED), preemptions


def _error_of(job: Job, last: Attempt | None) -> str:
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        return _told(last.failure)
    return job.reason.removeprefix(KICKED)


def _told(failure: Failure) -> str:
    """Return the error: of a program that ended by itself its exit code, with the program's message."""
    container = failure.first_failed
    if container is None or not failure.conditions <= {FailureCondition.APP_ERROR}:
        setup = FailureCondition.LAUNCH_FAILED in failure.conditions and failure.error_line
        return f"{failure_in_full(failure)}: {failure.error_line}" if setup else failure_in_full(failure)
    message = f"Exit code: {_exit_code((container,), EndedBy.ITSELF)}"
    return message if container.message_from_log or not container.message else f"{message}. {container.message}"


def _exit_code(containers: Sequence[ContainerResult], ended_by: EndedBy) -> int | None:
    """Return the program's exit code, or the signal that ended it as a negative number; ``None`` if it was stopped."""
    if ended_by not in {EndedBy.ITSELF, EndedBy.MEMORY}:
        return None
    container = next((candidate for candidate in containers if candidate.failed), None)
    if container is None:
        return None
    return -container.signal if container.signal else container.exit_code


def _times(started: float | None, finished: float | None) -> dict[str, Any]:
    times = {"started_at": started, "finished_at": finished}
    return {name: _at(moment) for name, moment in times.items() if moment is not None}


def _at(moment: float) -> dict[str, int]:
    return {"epoch_ms": round(moment * _MS)}
