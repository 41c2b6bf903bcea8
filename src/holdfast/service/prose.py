"""The sentences that ``why`` says about a job beside those about a decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import Cause
from holdfast.domain.job import JobState
from holdfast.domain.policy.model import Action

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job

_STATE_WORDS = {
    JobState.QUEUED: "is queued",
    JobState.RUNNING: "is running",
    JobState.BACKOFF: "is waiting for its retry",
    JobState.HELD: "is held until it is released",
    JobState.WAITING: "is waiting for its job set",
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
}


def job_line(job: Job, told: Attempt | None = None) -> str:
    """Say where a job is and why; not why if that is what the attempt told afterwards shows."""
    words = _STATE_WORDS[job.state]
    if job.attempt and job.state in {JobState.RUNNING, JobState.SUCCEEDED}:
        words += f" on attempt {job.attempt}" if job.state is JobState.SUCCEEDED else f", attempt {job.attempt}"
    elif job.attempt and job.state is JobState.FAILED:
        words += f" after {job.attempt} attempt{'s' if job.attempt > 1 else ''}"
    reason = "" if told is not None and _is_why(told, job) else job.reason
    return f"Job {job.name} {words}" + (f": {reason}" if reason else "")


def _is_why(attempt: Attempt, job: Job) -> bool:
    if attempt.number != job.attempt or attempt.failure is None:
        return False
    if attempt.decision is None:
        return attempt.failure.cause is Cause.USER_CANCELLED and job.state is JobState.CANCELLED
    return job.state in {JobState.FAILED, JobState.BACKOFF} or (
        job.state is JobState.HELD and attempt.decision.action is Action.HOLD
    )


def cancelled_line(attempt: Attempt, failure: Failure) -> str:
    """Say how an attempt ended that no policy was asked about."""
    why = f": {failure.message}" if failure.message else ""
    when = "" if failure.started else " before its program started"
    return f"Attempt {attempt.number} was ended{when} by a user{why}. A cancelled job is never retried."
