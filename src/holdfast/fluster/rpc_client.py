"""The client of Fluster's door: submits calls, waits for them, ends them, and reads their output."""

from __future__ import annotations

import os
import pickle
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.api.fluster._generated import cluster
from holdfast.fluster.calling import CONTROLLER, FACTOR, FIRST_S, LIMIT_MS, LONGEST_S, PATIENCE_S, Calling
from holdfast.fluster.inside import JobId
from holdfast.fluster.logs import LogFilter, LogFollower, NoWorkerError, read

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from google.protobuf.message import Message

    from holdfast.fluster.launching import Entrypoint, RetryConfig
    from holdfast.fluster.logs import LogEntry

M = TypeVar("M", bound="Message")
FINISHED = frozenset(
    {
        cluster.JOB_STATE_SUCCEEDED,
        cluster.JOB_STATE_FAILED,
        cluster.JOB_STATE_KILLED,
        cluster.JOB_STATE_WORKER_FAILED,
        cluster.JOB_STATE_UNSCHEDULABLE,
    }
)
_FOLLOWED_S = 0.5


class RpcClusterClient:
    """Calls a cluster at an address."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        bundle: bytes | None = None,
        bundle_gcs_path: str | None = None,
        patience_s: float = PATIENCE_S,
        timeout_ms: int = LIMIT_MS,
        parent: str = "",
    ) -> None:
        """Prepare to call a cluster; nothing is sent yet.

        Args:
            address: The server's address, such as ``http://127.0.0.1:7070``.
            token: The token to send; by default ``HOLDFAST_TOKEN``, if that is set.
            bundle: The workspace of jobs, as a zip archive.
            bundle_gcs_path: The path of a stored workspace, instead of ``bundle``; see ``FLUSTER_BUNDLE_GCS_PATH``.
            patience_s: How long the server may be away before a call fails.
            timeout_ms: How long one try of a call may take.
            parent: The full name of the job whose children its jobs are, unless a submission names another.
        """
        self._calling = Calling(address, token=token, patience_s=patience_s, timeout_ms=timeout_ms)
        self._bundle = bundle
        self._bundle_path = bundle_gcs_path
        self._parent = parent

    @property
    def address(self) -> str:
        """The server's address."""
        return self._calling.address

    def submit(
        self,
        entrypoint: Entrypoint,
        name: str,
        resources: cluster.ResourceSpec,
        environment: cluster.EnvironmentConfig | None = None,
        ports: Sequence[str] | None = None,
        scheduling_timeout_seconds: int = 0,
        retry: RetryConfig | None = None,
        *,
        parent: str = "",
    ) -> JobId:
        """Submit a call, and return the full name of its job.

        Raises:
            ClusterError: It is refused, for example because the name is taken.
            ValueError: The name has a slash.
            TypeError: The call cannot be pickled.
        """
        if "/" in name:
            msg = f"the name {name!r} has a slash; to submit a child, submit it in its parent"
            raise ValueError(msg)
        parent = parent or self._parent
        request = cluster.Controller.LaunchJobRequest(
            name=f"{parent}/{name}" if parent else name,
            serialized_entrypoint=entrypoint.serialized(),
            resources=resources,
            environment=environment,
            ports=ports or (),
            scheduling_timeout_seconds=scheduling_timeout_seconds,
            parent_job_id=parent,
            retry=None if retry is None else retry.message(),
        )
        kept = self._bundle_path or (os.environ.get("FLUSTER_BUNDLE_GCS_PATH") if parent else None)
        if self._bundle is not None:
            request.bundle_blob = self._bundle
        elif kept:
            request.bundle_gcs_path = kept
        return JobId(self._call("LaunchJob", request, cluster.Controller.LaunchJobResponse).job_id)

    def status(self, job_id: str, *, include_result: bool = False) -> cluster.JobStatus:
        """Read a job's status.

        Raises:
            ClusterError: There is no such job.
        """
        request = cluster.Controller.GetJobStatusRequest(job_id=job_id, include_result=include_result)
        return self._call("GetJobStatus", request, cluster.Controller.GetJobStatusResponse).job

    def result(self, job_id: str) -> Any:  # noqa: ANN401 - whatever was returned
        """Return the result of a job that succeeded; it is unpickled, so read only results that you trust.

        Raises:
            LookupError: It left no result.
        """
        body = self.status(job_id, include_result=True).serialized_result
        if not body:
            msg = f"job {job_id!r} has no result"
            raise LookupError(msg)
        return pickle.loads(body)  # noqa: S301 - of the caller's own job

    def wait(
        self, job_id: str, timeout: float = 300.0, poll_interval: float = LONGEST_S, *, stream_logs: bool = False
    ) -> cluster.JobStatus:
        """Wait until a job has ended, with growing pauses, and return its last status.

        Args:
            job_id: The job.
            timeout: How long to wait, in seconds.
            poll_interval: The longest pause between two requests.
            stream_logs: Whether to print its output.

        Raises:
            TimeoutError: It has not ended by then.
            ClusterError: There is no such job.
        """
        reader, status = self.log_reader(job_id, LogFilter()), cluster.JobStatus()
        for status in self.watch(job_id, timeout, poll_interval):
            if stream_logs:
                sys.stdout.writelines(f"{entry.data}\n" for entry in reader.news(status.worker_address))
                sys.stdout.flush()
        return status

    def watch(
        self, job_id: str, timeout: float, poll_interval: float, *, pause: Callable[[float], object] = time.sleep
    ) -> Iterator[cluster.JobStatus]:
        """Yield a job's status again and again until it has ended, including the last one.

        Raises:
            TimeoutError: It has not ended by then.
            ClusterError: There is no such job.
        """
        until, pause_s = time.monotonic() + timeout, FIRST_S
        while True:
            status = self.status(job_id)
            yield status
            if status.state in FINISHED:
                return
            left_s = until - time.monotonic()
            if left_s <= 0:
                msg = f"job {job_id!r} has not ended within {timeout:g} s"
                raise TimeoutError(msg)
            pause(min(pause_s, left_s))
            pause_s = min(pause_s * FACTOR, poll_interval)

    def fetch_logs(
        self,
        job_id: str,
        *,
        start_ms: int = 0,
        max_lines: int = 0,
        end_ms: int = 0,
        start_line: int = 0,
        regex: str = "",
    ) -> list[LogEntry]:
        """Read the output of a job's current or last attempt so far, from the worker that has it.

        Args:
            job_id: The job.
            start_ms: Only lines written after this.
            max_lines: How many, 0 for all; lines of one millisecond come together, even if they are a few more.
            end_ms: Only lines written up to this; 0 for no limit.
            start_line: The number of the first line, from 0; negative for that many last lines.
            regex: A pattern in the lines, in RE2 syntax.

        Raises:
            ValueError: No worker has it yet, or it waits to run again.
            ClusterError: There is no such job, or an argument is not valid.
        """
        return [*self._lines(job_id, LogFilter(regex, start_line, start_ms, end_ms, max_lines))]

    def follow_logs(
        self,
        job_id: str,
        *,
        start_ms: int = 0,
        start_line: int = 0,
        regex: str = "",
        timeout: float = float("inf"),
        poll_interval: float = _FOLLOWED_S,
    ) -> Iterator[LogEntry]:
        """Yield the output of a job, each line once, until it has ended, attempt after attempt.

        The last lines of an attempt are missed if the next attempt begins before the next request.

        Raises:
            TimeoutError: It has not ended by then.
            ClusterError: There is no such job, or an argument is not valid.
        """
        reader = self.log_reader(job_id, LogFilter(regex, start_line, start_ms))
        for status in self.watch(job_id, timeout, poll_interval):
            yield from reader.news(status.worker_address)

    def log_reader(self, job_id: str, limits: LogFilter) -> LogFollower:
        """Return a reader of a job's log that continues where it stopped."""
        return LogFollower(limits, partial(self._lines, job_id))

    def _lines(self, job_id: str, limits: LogFilter, place: str = "") -> Iterator[LogEntry]:
        """Yield lines from a worker's address, or from the one in the status if there is none or it does not answer.

        Raises:
            NoWorkerError: The job has no worker.
        """
        tried: list[str] = []

        def where() -> str:
            now = self.status(job_id).worker_address if tried or not place else place
            if not (now or place):
                msg = f"no worker has job {job_id!r}: it has printed nothing, or waits to be run again"
                raise NoWorkerError(msg)
            worker = self._calling.at(now or place)
            if worker in tried:
                return self.address  # a client behind a tunnel may reach no other
            tried.append(worker)
            return worker

        return read(self._calling, job_id, limits, where)

    def terminate(self, job_id: str) -> None:
        """End a job and its children; jobs that have ended are left alone."""
        self._call("TerminateJob", cluster.Controller.TerminateJobRequest(job_id=job_id), cluster.Empty)

    def terminate_prefix(self, prefix: str, *, exclude_finished: bool = True) -> list[JobId]:
        """End the job with a name, if there is one, and all below it; returns those that ran.

        Args:
            prefix: The name, or ``name/`` for the jobs below it only.
            exclude_finished: Whether to leave out jobs that have ended.
        """
        going = [
            JobId(job.job_id)
            for job in self.list_jobs(prefix=prefix)
            if not (exclude_finished and job.state in FINISHED)
        ]
        for job_id in sorted(going, key=lambda name: name.count("/")):
            self.terminate(job_id)
        return going

    def list_jobs(self, *, states: Collection[int] | None = None, prefix: str | None = None) -> list[cluster.JobStatus]:
        """List jobs, by default all.

        Args:
            states: Only jobs in these states.
            prefix: ``a`` selects that job and all below it, but not ``ab``; ``a/`` only those below it.
        """
        statuses = self._call(
            "ListJobs", cluster.Controller.ListJobsRequest(), cluster.Controller.ListJobsResponse
        ).jobs
        above = None if prefix is None else f"{prefix.removesuffix('/')}/"
        return [
            job
            for job in statuses
            if (states is None or job.state in states)
            and (above is None or job.job_id == prefix or job.job_id.startswith(above))
        ]

    def register_endpoint(self, name: str, address: str, job_id: str, metadata: Mapping[str, str] | None = None) -> str:
        """Register an endpoint for the lifetime of the job's current attempt. Returns the registration id."""
        request = cluster.Controller.RegisterEndpointRequest(
            name=name, address=address, job_id=job_id, metadata=metadata or {}
        )
        return self._call("RegisterEndpoint", request, cluster.Controller.RegisterEndpointResponse).endpoint_id

    def unregister_endpoint(self, endpoint_id: str) -> None:
        """Remove a registration, if it exists."""
        request = cluster.Controller.UnregisterEndpointRequest(endpoint_id=endpoint_id)
        self._call("UnregisterEndpoint", request, cluster.Empty)

    def list_endpoints(self, prefix: str) -> list[cluster.Controller.Endpoint]:
        """List the endpoints with a prefix."""
        request = cluster.Controller.ListEndpointsRequest(prefix=prefix)
        return [*self._call("ListEndpoints", request, cluster.Controller.ListEndpointsResponse).endpoints]

    def close(self) -> None:
        """Close its connections; jobs go on."""
        self._calling.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _call(self, name: str, request: Message, answered: type[M]) -> M:
        return self._calling(f"{CONTROLLER}{name}", request, answered)
