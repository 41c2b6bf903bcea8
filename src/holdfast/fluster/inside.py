"""The job that this program runs in, if it does."""

from __future__ import annotations

import os
from contextvars import ContextVar

CONTROLLER_ADDRESS = "FLUSTER_CONTROLLER_ADDRESS"


class JobId(str):
    """The full name of a job; a child's has its parent's before the last slash."""

    __slots__ = ()


current_job: ContextVar[JobId | None] = ContextVar("fluster_job", default=None)
"""The job that a context sets, which takes precedence over the variables."""


def own_job() -> JobId:
    """Return the name of the job, empty outside a job."""
    job_id = current_job.get()
    return JobId(os.environ.get("FLUSTER_JOB_ID", "")) if job_id is None else job_id
