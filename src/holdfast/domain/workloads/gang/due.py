"""When a job moves on by time alone: its retry is due, it has waited too long, or its total deadline is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.spec import JobSpec


def total_deadline(job: Job, spec: JobSpec) -> float | None:
    """Return when all attempts at a job must be over, if it has a total deadline."""
    return None if spec.total_deadline_s is None else job.submitted_at + spec.total_deadline_s


def retry_due(job: Job) -> float | None:
    """Return when a job's back-off is over, if it is in one."""
    return job.retry_at if job.state is JobState.BACKOFF else None


def scheduling_timeout(job: Job, spec: JobSpec) -> float | None:
    """Return when a queued job has waited for a place too long, if its wait is limited."""
    if job.state is not JobState.QUEUED or spec.scheduling_timeout_s is None:
        return None
    return job.queued_at + spec.scheduling_timeout_s


def next_due(job: Job, spec: JobSpec) -> float | None:
    """Return the first of these times; ``None`` where time alone changes nothing."""
    if job.retry_at is None and spec.total_deadline_s is None and spec.scheduling_timeout_s is None:
        return None
    times = (retry_due(job), total_deadline(job, spec), scheduling_timeout(job, spec))
    return min((at for at in times if at is not None), default=None)
