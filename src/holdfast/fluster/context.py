"""What a call finds out about the job that it is made in."""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast.fluster.client import FlusterClient, JobId


@dataclass(frozen=True)
class FlusterContext:
    """The job, and which attempt of it this is."""

    job_id: JobId
    attempt_id: int
    """From 0."""
    worker_id: str

    @property
    def parent_job_id(self) -> JobId | None:
        """The job that this one is a child of, if it is one."""
        above = self.job_id.rpartition("/")[0]
        return JobId(above) if above else None

    @property
    def namespace(self) -> str:
        """The name of the job above all others that this one is below."""
        return self.job_id.partition("/")[0]

    def get_port(self, name: str) -> int:
        """Return the number of a port that the job asked for.

        Raises:
            KeyError: It asked for none of that name.
        """
        return int(os.environ[f"FLUSTER_PORT_{name.upper().replace('-', '_')}"])

    @property
    def client(self) -> FlusterClient:
        """Return a client of the cluster that runs this job; what it submits are children of the job.

        Raises:
            RuntimeError: This job was not told where that is.
        """
        address = os.environ.get("FLUSTER_CONTROLLER_ADDRESS")
        if not address:
            msg = "FLUSTER_CONTROLLER_ADDRESS is not set in this job"
            raise RuntimeError(msg)
        return FlusterClient.remote(address, parent=self.job_id)


def fluster_ctx() -> FlusterContext | None:
    """Return the job that this program is the call of; ``None`` outside any."""
    job_id = os.environ.get("FLUSTER_JOB_ID")
    if not job_id:
        return None
    attempt = int(os.environ.get("FLUSTER_ATTEMPT_ID", "0"))
    return FlusterContext(JobId(job_id), attempt, os.environ.get("FLUSTER_WORKER_ID", ""))
