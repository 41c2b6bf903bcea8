"""A client with a workspace, whose jobs are children of the job in which it is created."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from holdfast.fluster.calling import FIRST_S, LIMIT_MS, PATIENCE_S
from holdfast.fluster.endpoints import EndpointRegistry, Resolver
from holdfast.fluster.inside import CONTROLLER_ADDRESS, own_job
from holdfast.fluster.launching import packed
from holdfast.fluster.local import LocalCluster
from holdfast.fluster.rpc_client import FINISHED, RpcClusterClient

if TYPE_CHECKING:
    from pathlib import Path

_END_S = 60.0


class FlusterClient(RpcClusterClient):
    """A client of a cluster elsewhere, or of one of its own."""

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
        cluster: LocalCluster | None = None,
    ) -> None:
        """``parent`` is the job whose children its jobs are, ``cluster`` a local one that ends with it."""
        super().__init__(
            address,
            token=token,
            bundle=bundle,
            bundle_gcs_path=bundle_gcs_path,
            patience_s=patience_s,
            timeout_ms=timeout_ms,
            parent=parent,
        )
        self._cluster = cluster
        self._started_by = os.getpid()

    @classmethod
    def remote(
        cls,
        controller_address: str,
        *,
        workspace: Path | None = None,
        bundle_gcs_path: str | None = None,
        timeout_ms: int = LIMIT_MS,
        token: str | None = None,
        parent: str | None = None,
    ) -> FlusterClient:
        """Return a client of a cluster; jobs find the files of the workspace in their work directories.

        Args:
            controller_address: The server's address.
            workspace: A folder on the caller's machine.
            bundle_gcs_path: The path of a stored workspace, instead of ``workspace``.
            timeout_ms: How long one try of a call may take.
            token: The token to send; by default ``HOLDFAST_TOKEN``, if that is set.
            parent: The job whose children its jobs are; by default this program's job, if that cluster runs it.
        """
        if parent is None and os.environ.get(CONTROLLER_ADDRESS) == controller_address:
            parent = own_job()
        return cls(
            controller_address,
            token=token,
            bundle=None if workspace is None else packed(workspace),
            bundle_gcs_path=bundle_gcs_path,
            timeout_ms=timeout_ms,
            parent=parent or "",
        )

    @classmethod
    def local(cls, *, workspace: Path | None = None) -> FlusterClient:
        """Return a client of a new cluster on this machine, which ends with the client, as do its jobs."""
        bundle = None if workspace is None else packed(workspace)
        started = LocalCluster()
        return cls(started.url, token=started.token, bundle=bundle, cluster=started)

    @property
    def endpoint_registry(self) -> EndpointRegistry:
        """Where this program registers its address."""
        return EndpointRegistry(self, self._inside)

    def resolver(self) -> Resolver:
        """Return a resolver of the addresses of this program's family of jobs."""
        return Resolver(self, self._inside)

    def _inside(self) -> str:
        return self._parent or own_job()

    def close(self) -> None:
        """Close the connections; end its local cluster, if it has one, with all jobs that still run there.

        A process forked from the one that started the cluster does not end it.
        """
        if self._cluster is None or os.getpid() != self._started_by:
            super().close()
            return
        try:
            self._end_all()
        finally:
            super().close()
            self._cluster.close()

    def shutdown(self, wait: bool = True) -> None:  # noqa: FBT001, FBT002 - as upstream has it
        """Close the client; with ``wait``, wait first for the jobs of its local cluster."""
        if wait and self._cluster is not None:
            for job in self.list_jobs():
                self.wait(job.job_id, timeout=float("inf"))
        self.close()

    def _end_all(self) -> None:
        for job in self.list_jobs():
            if job.state not in FINISHED:
                self.terminate(job.job_id)
        until = time.monotonic() + _END_S
        while time.monotonic() < until and any(job.state not in FINISHED for job in self.list_jobs()):
            time.sleep(FIRST_S)
