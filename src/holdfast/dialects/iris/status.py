"""Tells of a job and its tasks as Iris does: counts are those of attempts, which are numbered from 0 there.

A gang is tried as a whole: a job's attempt is an attempt of each of its tasks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from holdfast.dialects.fluster.retry import PREEMPTION
from holdfast.dialects.fluster.status import Charged, charged
from holdfast.dialects.iris.budgets import FAILURE, POLICY
from holdfast.domain.failure import Cause, EndedBy, FailureCondition, in_full
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.lifecycle import Ending, RunStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import ContainerResult, Failure
    from holdfast.domain.job import Attempt, Job, Run

KICKED = "kicked to failed: "
"""How the reason begins for which an operator ends a job as failed; it is cancelled here."""
COMPLETED = "completed: nothing more is to run"
"""The reason for which a job ends that its user declares done; it is cancelled here, too."""
_MS = 1000


class State(IntEnum):
    """``JobState`` and ``TaskState``, which have the same numbers."""

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


FINISHED = frozenset({State.SUCCEEDED, State.FAILED, State.KILLED, State.WORKER_FAILED, State.UNSCHEDULABLE})
_OF_JOBS = {
    JobState.RUNNING: State.RUNNING,
    JobState.SUCCEEDED: State.SUCCEEDED,
    JobState.FAILED: State.FAILED,
    JobState.CANCELLED: State.KILLED,
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
"""In which of our states jobs may be that are in one of Iris', by its name; which of them are, ``job_state`` says."""
_OF_FAILURES = {
    Charged.PREEMPTION: State.WORKER_FAILED,
    Charged.NOBODY: State.WORKER_FAILED,
    Charged.UNSCHEDULABLE: State.UNSCHEDULABLE,
}


def job_state(job: Job, last: Attempt | None) -> State:
    """Return the state of a job, of which the last attempt is known if it has failed."""
    if job.state is JobState.CANCELLED:
        return _declared(job)
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        return _OF_FAILURES.get(charged(last.failure), State.FAILED)
    return _OF_JOBS.get(job.state, State.PENDING)


def _declared(job: Job) -> State:
    """Return as what a job ends that was cancelled, which the reason tells."""
    if job.reason.startswith(KICKED):
        return State.FAILED
    return State.SUCCEEDED if job.reason == COMPLETED else State.KILLED


def job_status(job: Job, last: Attempt | None, runs: Sequence[Run]) -> dict[str, Any]:
    """Return what ``JobStatus`` says of a job, apart from its resources and its family.

    Args:
        job: The job.
        last: Its last attempt.
        runs: The runs of that one.
    """
    state = job_state(job, last)
    tasks = [_task_state(job, state, last, _of_rank(runs, last, rank)) for rank in range(job.gang)]
    failures, preemptions = _counts(job, last, state)
    error = _error_of(job, last) if state in FINISHED and state is not State.SUCCEEDED else ""
    return {
        "job_id": job.group,
        "name": job.group,
        "state": int(state),
        "error": error,
        "pending_reason": job.reason if state is State.PENDING else error,
        "failure_count": failures,
        "preemption_count": preemptions,
        "task_count": job.gang,
        "completed_count": tasks.count(State.SUCCEEDED) + tasks.count(State.KILLED),
        "task_state_counts": {one.name.lower(): tasks.count(one) for one in dict.fromkeys(tasks)},
        "submitted_at": _at(job.submitted_at),
        "submitting_user": job.submitted_by,
        "backend_id": "default",
        "cluster": "local",
        **_times(job.started_at, job.ended_at if job.terminal else None),
    }


def task_status(job: Job, rank: int, attempts: Sequence[Attempt], runs: Sequence[Run]) -> dict[str, Any]:
    """Return what ``TaskStatus`` says of a task, with all of its attempts.

    Args:
        job: The job.
        rank: Which of its tasks.
        attempts: All attempts, in order.
        runs: All of their runs.
    """
    last = attempts[-1] if attempts else None
    run = _of_rank(runs, last, rank)
    state = _task_state(job, job_state(job, last), last, run)
    told = [_attempt(job, one, _of_rank(runs, one, rank)) for one in attempts]
    found: dict[str, Any] = {
        "task_id": f"{job.group}/{rank}",
        "state": int(state),
        "current_attempt_id": max(0, job.attempt - 1),
        "attempts": told,
        "submitted_at": _at(job.submitted_at),
        "backend_id": "default",
        "cluster": "local",
        "can_be_scheduled": not job.terminal,
        "pending_reason": job.reason if state is State.PENDING else "",
    }
    if told:
        same = ("worker_id", "exit_code", "error", "started_at", "finished_at")
        found |= {name: told[-1][name] for name in same if name in told[-1]}
    if state is State.KILLED or (state is State.FAILED and job.state is JobState.CANCELLED):
        found["error"] = _error_of(job, last)
    return found


def _task_state(job: Job, state: State, last: Attempt | None, run: Run | None) -> State:
    """Return the state of a task from its job's, its last attempt and its run in that."""
    if run is not None and run.outcome is not None and run.outcome.succeeded and not _waits(job):
        return State.SUCCEEDED
    if state is State.FAILED and run is not None and _cascaded(run):
        return State.COSCHED_FAILED
    if state is State.WORKER_FAILED and last is not None and _was_preempted(last.failure):
        return State.PREEMPTED
    if state is not State.RUNNING:
        return state
    if run is None or run.status is RunStatus.PENDING:
        return State.ASSIGNED
    started = run.started_at is not None or (last is not None and last.started_at is not None)
    return State.RUNNING if started else State.BUILDING


def _was_preempted(failure: Failure | None) -> bool:
    return failure is not None and FailureCondition.PREEMPTED in failure.conditions


def _waits(job: Job) -> bool:
    return not job.terminal and job.state is not JobState.RUNNING


def _attempt(job: Job, one: Attempt, run: Run | None) -> dict[str, Any]:
    """Return what ``TaskAttempt`` says of a task's part in an attempt."""
    failure = one.failure
    state = _attempt_state(job, one, run)
    code = None if run is None or run.outcome is None else _exit_code(run.outcome.containers, run.outcome.ended_by)
    found: dict[str, Any] = {
        "attempt_id": one.number - 1,
        "worker_id": "" if run is None else run.node,
        "state": int(state),
        "exit_code": code or 0,
        "error": "",
        "is_worker_failure": state in {State.WORKER_FAILED, State.PREEMPTED},
        "attempt_uid": "" if run is None else run.uid,
        "node_name": "" if run is None else run.node,
        **_times(one.started_at if run is None else run.started_at, one.ended_at if run is None else run.ended_at),
    }
    if state not in {State.SUCCEEDED, State.RUNNING, State.BUILDING, State.ASSIGNED, State.PENDING}:
        found["error"] = _told(failure) if failure is not None else one.message or job.reason
    return found


def _attempt_state(job: Job, one: Attempt, run: Run | None) -> State:
    if run is not None and run.outcome is not None and run.outcome.succeeded:
        return State.SUCCEEDED
    if one.ending is None:
        return _task_state(job, job_state(job, one), one, run)
    failure = one.failure
    if failure is None or one.ending is not Ending.FAILED or failure.cause is Cause.USER_CANCELLED:
        return _declared(job)
    if _was_preempted(failure):
        return State.PREEMPTED
    if run is not None and _cascaded(run):
        return State.COSCHED_FAILED
    return _OF_FAILURES.get(charged(failure), State.FAILED)


def _cascaded(run: Run) -> bool:
    return run.outcome is not None and run.outcome.ended_by is EndedBy.CASCADE


def _of_rank(runs: Sequence[Run], attempt: Attempt | None, rank: int) -> Run | None:
    """Return the newest run of a rank in an attempt."""
    number = 0 if attempt is None else attempt.number
    found = [run for run in runs if run.attempt == number and run.rank == rank]
    return max(found, key=lambda run: run.dispatch, default=None)


def _counts(job: Job, last: Attempt | None, state: State) -> tuple[int, int]:
    """Count failed attempts and lost ones: those that were retried, and the last one if it was not."""
    failures, preemptions = (job.counters.get(f"{POLICY}/{rule}", 0) for rule in (FAILURE, PREEMPTION))
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        whose = charged(last.failure)
        failures += whose is Charged.FAILURE
        preemptions += whose is Charged.PREEMPTION
    return failures + (job.state is JobState.CANCELLED and state is State.FAILED), preemptions


def _error_of(job: Job, last: Attempt | None) -> str:
    if job.state is JobState.FAILED and last is not None and last.failure is not None:
        return _told(last.failure)
    return job.reason.removeprefix(KICKED)


def _told(failure: Failure) -> str:
    """Say what went wrong: of a program that ended by itself its exit code, with the message that it left."""
    container = failure.first_failed
    if container is None or not failure.conditions <= {FailureCondition.APP_ERROR}:
        setup = FailureCondition.LAUNCH_FAILED in failure.conditions and failure.error_line
        return f"{in_full(failure)}: {failure.error_line}" if setup else in_full(failure)
    told = f"Exit code: {_exit_code((container,), EndedBy.ITSELF)}"
    return told if container.message_from_log or not container.message else f"{told}. {container.message}"


def _exit_code(containers: Sequence[ContainerResult], ended_by: EndedBy) -> int | None:
    """Return the program's code, or the number of the signal that ended it, below 0; none of one that was stopped."""
    if ended_by not in {EndedBy.ITSELF, EndedBy.MEMORY}:
        return None
    container = next((one for one in containers if one.failed), None)
    if container is None:
        return None
    return -container.signal if container.signal else container.exit_code


def _times(started: float | None, finished: float | None) -> dict[str, Any]:
    times = {"started_at": started, "finished_at": finished}
    return {name: _at(moment) for name, moment in times.items() if moment is not None}


def _at(moment: float) -> dict[str, int]:
    return {"epoch_ms": round(moment * _MS)}
