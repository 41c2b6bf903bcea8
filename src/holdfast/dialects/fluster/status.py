"""Renders jobs as Fluster's ``JobStatus``; its counts are of attempts, which are numbered from 0 there.

The listed attempts are the previous ones: a job that waits to run again has no current attempt.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

from holdfast.dialects.fluster.retry import NEVER_RAN, PLACE_LOST, limits_of
from holdfast.domain.failure import LOST, Cause, FailureCondition, failure_in_full
from holdfast.domain.job import JOB_WAITING, JobState
from holdfast.domain.lifecycle import AttemptStatus, Ending
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.shortage import shortage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.domain.policy.model import RetrySettings
    from holdfast.domain.workloads.spec import JobSpec


class FlusterState(IntEnum):
    """``JobState``, with its numbers."""

    UNSPECIFIED = 0
    PENDING = 1
    BUILDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    KILLED = 6
    WORKER_FAILED = 7
    UNSCHEDULABLE = 8


class Charged(StrEnum):
    """What a failure is charged to."""

    FAILURE = "failure"
    """To the job, including memory and deadlines."""
    PREEMPTION = "preemption"
    """To its worker."""
    NOBODY = "nobody"
    """To nobody: it could not be started, or its node was short of something or being drained."""
    USER = "user"
    """No failure: a user ended or held it."""
    UNSCHEDULABLE = "unschedulable"
    """No place was found in time."""


FINISHED = frozenset(
    {
        FlusterState.SUCCEEDED,
        FlusterState.FAILED,
        FlusterState.KILLED,
        FlusterState.WORKER_FAILED,
        FlusterState.UNSCHEDULABLE,
    }
)
_OF_THE_WORKER = frozenset({Charged.PREEMPTION, Charged.NOBODY})
_PREPARING = frozenset(
    {AttemptStatus.PREPARING, AttemptStatus.PREPARED, AttemptStatus.CREATING, AttemptStatus.SCHEDULED}
)
_STATES = {
    Charged.FAILURE: FlusterState.FAILED,
    Charged.PREEMPTION: FlusterState.WORKER_FAILED,
    Charged.NOBODY: FlusterState.WORKER_FAILED,
    Charged.USER: FlusterState.KILLED,
    Charged.UNSCHEDULABLE: FlusterState.UNSCHEDULABLE,
}
_OF_JOBS = {
    JobState.RUNNING: FlusterState.RUNNING,
    JobState.SUCCEEDED: FlusterState.SUCCEEDED,
    JobState.FAILED: FlusterState.FAILED,
    JobState.CANCELLED: FlusterState.KILLED,
}
_MS = 1000


def charged(failure: Failure) -> Charged:
    """Return what a failure is charged to, in agreement with the policy of ``read_retry``."""
    if failure.cause is Cause.USER_CANCELLED:
        return Charged.USER
    if shortage_of(failure) is not None:
        return Charged.NOBODY
    if failure.cause is Cause.VALIDATION_ERROR:
        return Charged.FAILURE
    if FailureCondition.UNSCHEDULABLE in failure.conditions:
        return Charged.UNSCHEDULABLE
    if not PLACE_LOST.isdisjoint(failure.conditions):
        return Charged.PREEMPTION
    return Charged.NOBODY if not NEVER_RAN.isdisjoint(failure.conditions) else Charged.FAILURE


def status_of(
    job: Job, spec: JobSpec, attempts: Sequence[Attempt], runs: Sequence[Run], now: float, settings: RetrySettings
) -> dict[str, Any]:
    """Return the ``JobStatus`` of a job, without its names, addresses and result.

    Args:
        job: The job.
        spec: Its specification.
        attempts: All its attempts, in order.
        runs: The runs of the last attempt, by rank.
        now: Seconds since the epoch.
        settings: The operator's settings.
    """
    last = attempts[-1] if attempts else None
    previous = [*attempts] if last is not None and _is_over(job, last) else [*attempts[:-1]]
    current = last if last is not None and len(previous) < len(attempts) else None
    state = _state(job, current)
    limits = limits_of(spec)
    failures = [charged(attempt.failure) for attempt in attempts if attempt.failure is not None and _counts(attempt)]
    status: dict[str, Any] = {
        "state": int(state),
        "current_attempt_id": _current_id(last, current),
        "attempts": [_attempt(attempt, spec) for attempt in previous],
        "failure_count": failures.count(Charged.FAILURE),
        "preemption_count": failures.count(Charged.PREEMPTION),
        "retry_available_at_ms": _ms(job.retry_at) if job.retry_at is not None and job.retry_at > now else 0,
        "status_message": _message(job, state, spec, settings),
    }
    if limits is not None:
        status |= {"max_retries_failure": limits.failure, "max_retries_preemption": limits.preemption}
    if current is not None:
        status |= _of_current(current, runs)
    if state in FINISHED:
        status |= _of_end(job, state, spec, current)
    return status


def _current_id(last: Attempt | None, current: Attempt | None) -> int:
    """Return the id of the current or next attempt; ids count from 0, numbers from 1."""
    if current is not None:
        return current.number - 1
    return 0 if last is None else last.number


def _is_over(job: Job, last: Attempt) -> bool:
    """Whether the last attempt is a previous one: another followed, or would have but for a user."""
    if last.ending is None:
        return False
    if last.decision is not None and last.decision.grants_retry:
        return True
    if job.state in JOB_WAITING:
        return True
    return job.state is JobState.CANCELLED and last.ending is Ending.FAILED


def _counts(attempt: Attempt) -> bool:
    """Whether an attempt is charged to a budget; one that failed while a user was stopping it is not."""
    held = attempt.decision is not None and attempt.decision.code is DecisionCode.INTERRUPTED
    return attempt.ending is Ending.FAILED and not held


def _state(job: Job, current: Attempt | None) -> FlusterState:
    if job.state is JobState.FAILED and current is not None and current.failure is not None:
        return _STATES[charged(current.failure)]
    prepared = current is None or current.started_at is not None or current.status not in _PREPARING
    if job.state is JobState.RUNNING and not prepared:
        return FlusterState.BUILDING
    return _OF_JOBS.get(job.state, FlusterState.PENDING)


def _attempt(attempt: Attempt, spec: JobSpec) -> dict[str, Any]:
    """Return the ``JobAttempt`` of an ended attempt."""
    failure = attempt.failure
    charge = Charged.USER if failure is None else charged(failure)
    status = {
        "attempt_id": attempt.number - 1,
        "worker_id": "" if failure is None else failure.node or "",
        "state": int(_STATES[charge]),
        "error": "" if failure is None else _error(failure, spec),
        "started_at_ms": _ms(attempt.started_at),
        "finished_at_ms": _ms(attempt.ended_at),
        "is_worker_failure": charge in _OF_THE_WORKER,
    }
    code = _exit_code(failure)
    return status if code is None else {**status, "exit_code": code}


def _of_current(attempt: Attempt, runs: Sequence[Run]) -> dict[str, Any]:
    own = [run for run in runs if run.attempt == attempt.number]
    node = next((run.node for run in own if run.node), "")
    if not node and attempt.failure is not None:
        node = attempt.failure.node or ""
    status: dict[str, Any] = {"worker_id": node} if node else {}
    if own and own[0].ports:
        status["ports"] = dict(own[0].ports)
    return status if attempt.started_at is None else {**status, "started_at_ms": _ms(attempt.started_at)}


def _of_end(job: Job, state: FlusterState, spec: JobSpec, current: Attempt | None) -> dict[str, Any]:
    status: dict[str, Any] = {"finished_at_ms": _ms(job.ended_at)}
    if state is FlusterState.SUCCEEDED:
        return {**status, "exit_code": 0}
    failure = None if current is None else current.failure
    if state is FlusterState.KILLED or failure is None:
        return {**status, "error": job.reason}
    code = _exit_code(failure)
    status["error"] = _error(failure, spec)
    return status if code is None else {**status, "exit_code": code}


def _exit_code(failure: Failure | None) -> int | None:
    """Return the program's exit code; ``None`` if it never ran or the code is unknown."""
    if failure is None or not failure.started:
        return None
    container = failure.first_failed
    return None if container is None else container.exit_code


def _error(failure: Failure, spec: JobSpec) -> str:
    """Return the error: the program's own message, or else what is known."""
    charge = charged(failure)
    if charge is Charged.UNSCHEDULABLE and spec.scheduling_timeout_s is not None:
        return f"Scheduling timeout exceeded ({spec.scheduling_timeout_s:g}s): {failure.message}"
    container = failure.first_failed
    if charge is Charged.FAILURE and container is not None and container.message and not container.message_from_log:
        message = container.message
        return (
            message if failure.conditions <= {FailureCondition.APP_ERROR} else f"{failure_in_full(failure)}: {message}"
        )
    if not LOST.isdisjoint(failure.conditions) and failure.node:
        return f"Worker {failure.node} timed out or was lost: {failure_in_full(failure)}"
    return failure_in_full(failure)


def _message(job: Job, state: FlusterState, spec: JobSpec, settings: RetrySettings) -> str:
    """Say what the job waits for, and what else limits its retries."""
    parts = []
    if state is FlusterState.RUNNING and job.cancel_requested:
        parts.append("being terminated")
    elif state is FlusterState.PENDING and job.reason:
        parts.append(f"held: {job.reason}" if job.state is JobState.HELD else job.reason)
    cap, limits = settings.global_max_retries, limits_of(spec)
    if cap is not None and limits is not None and cap < max(limits.failure, limits.preemption) and not job.terminal:
        parts.append(f"globalMaxRetries lets a job have {cap} retries in all")
    return "; ".join(parts)


def _ms(at: float | None) -> int:
    return 0 if at is None else round(at * _MS)
