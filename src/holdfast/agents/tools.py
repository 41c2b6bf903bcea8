"""The tools: submit, list, look, why, logs, retry and cancel, each one call of the public client."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from holdfast.agents.limits import Allowance, ToolLimits
from holdfast.client import Client
from holdfast.errors import HoldfastError, Refused
from holdfast.wire.jobs import JobView

_LONGEST_TEXT = 40_000
"""Characters of a log that one answer holds: the last ones."""
_UNSERVED = "no server is running; the job starts once a person runs `holdfast up`"
_STATES = Literal["Queued", "Running", "BackOff", "Held", "Waiting", "Succeeded", "Failed", "Cancelled"]
Reference = Annotated[str, Field(description="A job's id, its name (the newest of that name), or the start of its id.")]


class JobRequest(BaseModel):
    """A program to run to completion."""

    model_config = ConfigDict(extra="forbid")

    command: Annotated[list[str] | None, Field(description="The program and its arguments; or use shell.")] = None
    shell: Annotated[str | None, Field(description="A command line for /bin/sh, instead of command.")] = None
    name: Annotated[str | None, Field(description="The job's name; default the program's.")] = None
    queue: str | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    env: Annotated[dict[str, str], Field(description="Environment variables of the program.")] = Field(
        default_factory=dict
    )
    working_dir: Annotated[str | None, Field(description="An absolute path; default where these tools run.")] = None
    cpu: Annotated[float | None, Field(description="Cores; default 1.")] = None
    memory: Annotated[str | None, Field(description="Limit, such as 2Gi.")] = None
    gpu: Annotated[int | float | None, Field(description="GPUs, or a share of one such as 0.25.")] = None
    retries: Annotated[int | None, Field(ge=0, le=100, description="Retry after a failure, up to this many times.")] = (
        None
    )
    retry_policies: Annotated[list[str], Field(description="Names of stored retry policies, in order.")] = Field(
        default_factory=list
    )
    deadline: Annotated[str | None, Field(description="Longest time one attempt may run, such as 30m.")] = None


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the tools use of their process."""

    connect: Callable[[], AbstractContextManager[Client]]
    is_looked_after: Callable[[], bool]
    """Whether a server runs the jobs."""
    working_dir: str
    env: Mapping[str, str]
    """The variables of this process that programs get."""


class Tools:
    """The functions that an agent calls; their names, parameters and docstrings are what it sees."""

    def __init__(self, surroundings: ToolContext, limits: ToolLimits) -> None:
        self._surroundings = surroundings
        self._limits = limits
        self._allowance = Allowance(limits)

    def list_jobs(
        self,
        states: Annotated[list[_STATES] | None, Field(description="Only in these states.")] = None,
        queue: Annotated[str | None, Field(description="Only of this queue.")] = None,
        labels: Annotated[dict[str, str] | None, Field(description="Only with all of these labels.")] = None,
        limit: Annotated[int, Field(ge=1, le=200)] = 20,
    ) -> dict[str, Any]:
        """List the newest jobs, in the order they were submitted."""
        allowed = self._limits.queue_of(queue, "queue")
        queues: Sequence[str | None] = [allowed] if queue else self._limits.queues or [None]
        with self._surroundings.connect() as client:
            newest_of_queues = [
                deque(client.jobs(states=states or (), queue=queue_name, labels=labels), limit) for queue_name in queues
            ]
        newest = sorted((job for jobs in newest_of_queues for job in jobs), key=lambda job: job.id)[-limit:]
        return {"jobs": [plain(job) for job in newest], **self._note()}

    def get_job(self, job: Reference) -> dict[str, Any]:
        """Read everything about a job: its state and why, its attempts, how each ended and what was decided."""
        with self._surroundings.connect() as client:
            return {**plain(self._seen(client, job)), **self._note()}

    def why_job(
        self,
        job: Reference,
        attempt: Annotated[int | None, Field(ge=1, description="Number of the attempt; default the newest.")] = None,
    ) -> dict[str, Any]:
        """Explain the state of a job: what happened, which rule decided, and what follows."""
        with self._surroundings.connect() as client:
            return plain(client.why(self._seen(client, job).id, attempt=attempt))

    def job_logs(
        self,
        job: Reference,
        attempt: Annotated[int | None, Field(ge=1, description="Number of the attempt; default the newest.")] = None,
        rank: Annotated[int, Field(ge=0, description="Rank of a gang.")] = 0,
        lines: Annotated[int, Field(ge=1, le=2000, description="How many of the last lines.")] = 100,
    ) -> dict[str, Any]:
        """Read the last lines that a job printed."""
        with self._surroundings.connect() as client:
            chunk = client.logs(self._seen(client, job).id, attempt=attempt, rank=rank, tail=lines)
        shown = {"attempt": chunk.attempt, "rank": chunk.rank, "finished": chunk.finished}
        return {**shown, "text": chunk.text[-_LONGEST_TEXT:], "cut": len(chunk.text) > _LONGEST_TEXT}

    def submit_jobs(
        self, jobs: Annotated[list[JobRequest], Field(min_length=1, description="All are accepted, or none is.")]
    ) -> dict[str, Any]:
        """Submit programs to run to completion, with retries as requested; returns at once with their ids."""
        manifests = [self._manifest(job, f"jobs[{place}]") for place, job in enumerate(jobs)]
        self._allowance.take(len(manifests))
        try:
            with self._surroundings.connect() as client:
                accepted = client.submit_bulk(manifests)
        except HoldfastError:
            self._allowance.give_back(len(manifests))
            raise
        return {**plain(accepted), **self._note()}

    def retry_job(
        self, job: Reference, reason: Annotated[str, Field(description="The reason, recorded for others to see.")] = ""
    ) -> dict[str, Any]:
        """Give a job another attempt: release it if it is held, or retry one that failed or was cancelled."""
        with self._surroundings.connect() as client:
            job_view = self._changeable(client, job)
            if job_view.state == "Held":
                return {"done": "released", **plain(client.release(job_view.id, reason=reason))}
            if job_view.state not in {"Failed", "Cancelled"}:
                message = f"job {job_view.id} is {job_view.state}: there is nothing to retry"
                raise Refused(message)
            self._allowance.take(1)
            return {"done": "retried", **plain(client.retry(job_view.id, reason=reason)), **self._note()}

    def cancel_job(
        self, job: Reference, reason: Annotated[str, Field(description="The reason, recorded for others to see.")] = ""
    ) -> dict[str, Any]:
        """Cancel a job: its programs are stopped, and it is not retried."""
        with self._surroundings.connect() as client:
            job_view = self._changeable(client, job)
            return {**plain(client.cancel(job_view.id, reason=reason)), **self._note()}

    def _seen(self, client: Client, reference: str) -> JobView:
        job = client.job(reference)
        self._limits.require_sight(job)
        return job

    def _changeable(self, client: Client, reference: str) -> JobView:
        job = client.job(reference)
        self._limits.require_change(job, job.labels)
        return job

    def _note(self) -> dict[str, str]:
        return {} if self._surroundings.is_looked_after() else {"note": _UNSERVED}

    def _manifest(self, job: JobRequest, path: str) -> dict[str, Any]:
        resources = {"cpu": job.cpu, "memory": job.memory, "gpu": job.gpu}
        retry = None if job.retries is None else {"retryLimit": job.retries, "defaultAction": "Retry"}
        spec = {
            "command": job.command,
            "shell": job.shell,
            "queue": self._limits.queue_of(job.queue, f"{path}.queue"),
            "env": {**self._surroundings.env, **job.env},
            "workingDir": job.working_dir or self._surroundings.working_dir,
            "resources": given(resources),
            "retry": retry,
            "retryPolicies": job.retry_policies,
            "deadline": job.deadline,
        }
        metadata = {"name": job.name, "labels": {**job.labels, **self._limits.labels}}
        return {"apiVersion": "holdfast.dev/v1", "kind": "Job", "metadata": given(metadata), "spec": given(spec)}


def given(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out values that are not set."""
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def plain(thing: BaseModel) -> dict[str, Any]:
    """Turn an answer of the API into plain data."""
    fields: dict[str, Any] = thing.model_dump(mode="json", by_alias=True, exclude_none=True)
    return fields
