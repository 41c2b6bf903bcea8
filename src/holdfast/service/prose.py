"""Says in one sentence where a job is, pure; leaves the story of a decision to ``domain.policy.explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job

_STATE_WORDS = {
    JobState.QUEUED: "waits for a place",
    JobState.RUNNING: "is running",
    JobState.BACKOFF: "waits for its retry to be due",
    JobState.HELD: "is held for a person",
    JobState.WAITING: "waits for its job set",
    JobState.SUCCEEDED: "succeeded",
    JobState.FAILED: "failed",
    JobState.CANCELLED: "was cancelled",
}


def job_line(job: Job) -> str:
    """Say where a job is."""
    words = _STATE_WORDS[job.state]
    if job.attempt and job.state in {JobState.RUNNING, JobState.SUCCEEDED}:
        words += f" on attempt {job.attempt}" if job.state is JobState.SUCCEEDED else f", attempt {job.attempt}"
    elif job.attempt and job.state is JobState.FAILED:
        words += f" after {job.attempt} attempt{'s' if job.attempt > 1 else ''}"
    return f"Job {job.name} {words}" + (f": {job.reason}" if job.reason else "")


def cancelled_line(attempt: Attempt, failure: Failure) -> str:
    """Say how an attempt ended that no policy was asked about."""
    why = f": {failure.message}" if failure.message else ""
    when = "" if failure.started else " before its program started"
    return f"Attempt {attempt.number} was ended{when} by a user{why}. A cancelled job is never retried."


def undecided_line(attempt: Attempt, failure: Failure) -> str:
    """Say how an attempt failed whose pods were judged one by one, or whose job set was asked."""
    why = f": {failure.message}" if failure.message else ""
    return f"Attempt {attempt.number} failed{why}."
