"""A client of the door: submits calls, waits for them, ends them. It rides out a server that is killed or restarted."""

from __future__ import annotations

import os
import pickle
import time
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from holdfast.api.fluster._generated import cluster
from holdfast.fluster.launching import packed
from holdfast.fluster.local import LocalCluster

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from google.protobuf.message import Message

    from holdfast.fluster.launching import Entrypoint, RetryConfig

M = TypeVar("M", bound="Message")
SERVICE = "/fluster.cluster.ControllerService/"
FINISHED = frozenset(
    {
        cluster.JOB_STATE_SUCCEEDED,
        cluster.JOB_STATE_FAILED,
        cluster.JOB_STATE_KILLED,
        cluster.JOB_STATE_WORKER_FAILED,
        cluster.JOB_STATE_UNSCHEDULABLE,
    }
)
PATIENCE_S = 600.0
"""How long a server may be away."""
_AGAIN = frozenset({"unavailable", "internal", "deadline_exceeded", "resource_exhausted"})
_FIRST_S, _LONGEST_S, _FACTOR, _LIMIT_S = 0.1, 2.0, 1.5, 60.0


class JobId(str):
    """The full name of a job; a child's has its parent's before the last slash."""

    __slots__ = ()


class ClusterError(Exception):
    """A call was refused."""

    def __init__(self, code: str, message: str) -> None:
        """Remember Connect's code, such as ``already_exists``, and why."""
        super().__init__(f"{code}: {message}")
        self.code = code


class RpcClusterClient:
    """Calls a cluster at an address."""

    def __init__(
        self, address: str, *, token: str | None = None, bundle: bytes | None = None, patience_s: float = PATIENCE_S
    ) -> None:
        """Remember where it is; nothing is sent yet.

        Args:
            address: The server's, such as ``http://127.0.0.1:7070``.
            token: What it is shown; by default ``HOLDFAST_TOKEN``, if that is set.
            bundle: The workspace of jobs, as a zip archive.
            patience_s: How long the server may be away before a call fails.
        """
        shown = token or os.environ.get("HOLDFAST_TOKEN")
        headers = {"content-type": "application/proto"} | ({"authorization": f"Bearer {shown}"} if shown else {})
        self._http = httpx.Client(base_url=address.rstrip("/"), headers=headers, timeout=_LIMIT_S)
        self._bundle = bundle
        self._patience_s = patience_s

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
        """Submit a call; returns the full name of its job.

        Raises:
            ClusterError: It is refused, as a name that is taken.
            ValueError: The name has a slash.
            TypeError: The call cannot be pickled.
        """
        if "/" in name:
            msg = f"the name {name!r} has a slash: children are submitted in their parent"
            raise ValueError(msg)
        sent = cluster.Controller.LaunchJobRequest(
            name=f"{parent}/{name}" if parent else name,
            serialized_entrypoint=entrypoint.serialized(),
            resources=resources,
            environment=environment,
            ports=ports or (),
            scheduling_timeout_seconds=scheduling_timeout_seconds,
            parent_job_id=parent,
            retry=None if retry is None else retry.message(),
        )
        if parent and os.environ.get("FLUSTER_BUNDLE_GCS_PATH"):
            sent.bundle_gcs_path = os.environ["FLUSTER_BUNDLE_GCS_PATH"]
        elif self._bundle is not None:
            sent.bundle_blob = self._bundle
        return JobId(self._call("LaunchJob", sent, cluster.Controller.LaunchJobResponse).job_id)

    def status(self, job_id: str, *, include_result: bool = False) -> cluster.JobStatus:
        """Say how a job does.

        Raises:
            ClusterError: There is no such job.
        """
        sent = cluster.Controller.GetJobStatusRequest(job_id=job_id, include_result=include_result)
        return self._call("GetJobStatus", sent, cluster.Controller.GetJobStatusResponse).job

    def result(self, job_id: str) -> Any:  # noqa: ANN401 - whatever was returned
        """Return what the call of a job that succeeded returned; read only what you trust.

        Raises:
            LookupError: It left no result.
        """
        body = self.status(job_id, include_result=True).serialized_result
        if not body:
            msg = f"job {job_id!r} has no result"
            raise LookupError(msg)
        return pickle.loads(body)  # noqa: S301 - of the caller's own job

    def wait(self, job_id: str, timeout: float = 300.0, poll_interval: float = _LONGEST_S) -> cluster.JobStatus:
        """Wait until a job has ended, and say how; what runs meanwhile is asked for more and more seldom.

        Raises:
            TimeoutError: It has not ended by then.
            ClusterError: There is no such job.
        """
        until, pause_s = time.monotonic() + timeout, _FIRST_S
        while True:
            status = self.status(job_id)
            if status.state in FINISHED:
                return status
            left_s = until - time.monotonic()
            if left_s <= 0:
                msg = f"job {job_id!r} has not ended within {timeout:g} s"
                raise TimeoutError(msg)
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * _FACTOR, poll_interval)

    def terminate(self, job_id: str) -> None:
        """End a job and its children; one that has ended stays as it ended."""
        self._call("TerminateJob", cluster.Controller.TerminateJobRequest(job_id=job_id), cluster.Empty)

    def terminate_prefix(self, prefix: str) -> list[JobId]:
        """End the job of a name and all below it, also where there is no such job itself; returns those that ran."""
        going = [JobId(job.job_id) for job in self.list_jobs(prefix=prefix) if job.state not in FINISHED]
        for job_id in sorted(going, key=lambda name: name.count("/")):
            self.terminate(job_id)
        return going

    def list_jobs(self, *, states: Collection[int] | None = None, prefix: str | None = None) -> list[cluster.JobStatus]:
        """List jobs: of some states, or the one of a name with all below it; ``a`` is not the prefix of ``ab``."""
        found = self._call("ListJobs", cluster.Controller.ListJobsRequest(), cluster.Controller.ListJobsResponse).jobs
        return [
            job
            for job in found
            if (states is None or job.state in states)
            and (prefix is None or job.job_id == prefix or job.job_id.startswith(f"{prefix}/"))
        ]

    def close(self) -> None:
        """Close its connections; jobs go on."""
        self._http.close()

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def _call(self, name: str, sent: Message, answered: type[M]) -> M:
        """Call a method, again and again while there is no server; the door takes the same launch as one."""
        until, pause_s = time.monotonic() + self._patience_s, _FIRST_S
        while True:
            try:
                answer = self._http.post(SERVICE + name, content=sent.SerializeToString())
                if answer.status_code == httpx.codes.OK:
                    return answered.FromString(answer.content)
                error: Exception = _refusal(answer)
                if isinstance(error, ClusterError) and error.code not in _AGAIN:
                    raise error
            except httpx.TransportError as away:
                error = away
            if time.monotonic() >= until:
                raise error
            time.sleep(pause_s)
            pause_s = min(pause_s * _FACTOR, _LONGEST_S)


class FlusterClient(RpcClusterClient):
    """A client with a workspace, whose jobs are children of the one it is made in."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        bundle: bytes | None = None,
        patience_s: float = PATIENCE_S,
        parent: str = "",
        cluster: LocalCluster | None = None,
    ) -> None:
        """Remember where it is, whose children its jobs are, and the cluster that ends with it, if one does."""
        super().__init__(address, token=token, bundle=bundle, patience_s=patience_s)
        self._parent = parent
        self._cluster = cluster

    @classmethod
    def remote(
        cls, url: str, *, workspace: Path | None = None, token: str | None = None, parent: str = ""
    ) -> FlusterClient:
        """Return a client of a cluster; jobs find the files of the workspace in their work directories."""
        return cls(url, token=token, bundle=None if workspace is None else packed(workspace), parent=parent)

    @classmethod
    def local(cls, *, workspace: Path | None = None) -> FlusterClient:
        """Return a client of a cluster of its own on this machine, which ends with it, and with it its jobs."""
        bundle = None if workspace is None else packed(workspace)
        started = LocalCluster()
        return cls(started.url, token=started.token, bundle=bundle, cluster=started)

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
        """Submit a call, as a child of the job that this client is made in; see ``RpcClusterClient.submit``."""
        return super().submit(
            entrypoint,
            name,
            resources,
            environment,
            ports,
            scheduling_timeout_seconds,
            retry,
            parent=parent or self._parent,
        )

    def close(self) -> None:
        """Close its connections; end a cluster of its own, with all that still goes on there."""
        if self._cluster is None:
            super().close()
            return
        try:
            self._end_all()
        finally:
            super().close()
            self._cluster.close()

    def _end_all(self) -> None:
        for job in self.list_jobs():
            if job.state not in FINISHED:
                self.terminate(job.job_id)
        until = time.monotonic() + _LIMIT_S
        while time.monotonic() < until and any(job.state not in FINISHED for job in self.list_jobs()):
            time.sleep(_FIRST_S)


def _refusal(answer: httpx.Response) -> ClusterError:
    try:
        told = answer.json()
        return ClusterError(str(told["code"]), str(told.get("message", "")))
    except (ValueError, KeyError, TypeError):
        code = "unavailable" if answer.is_server_error else "unknown"
        return ClusterError(code, f"HTTP status {answer.status_code}")
