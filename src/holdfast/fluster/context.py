"""The job that a call is made in, and what the call can find out about it."""

from __future__ import annotations

import os
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from holdfast.fluster.client import FlusterClient
from holdfast.fluster.inside import CONTROLLER_ADDRESS, JobId, current_job, own_job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.fluster.endpoints import EndpointRegistry, Resolver

_PORT = "FLUSTER_PORT_"


@dataclass(frozen=True)
class FlusterContext:
    """The job, and which attempt of it this is."""

    job_id: JobId
    """Empty outside any job."""
    attempt_id: int = 0
    """From 0."""
    worker_id: str = ""
    ports: Mapping[str, int] = field(default_factory=dict)
    """By name, in lower case and with ``_`` for ``-``."""

    @property
    def parent_job_id(self) -> JobId | None:
        """The job that this one is a child of, if it is one."""
        above = self.job_id.rpartition("/")[0]
        return JobId(above) if above else None

    @property
    def namespace(self) -> str:
        """The name of the root job of this one's family."""
        return self.job_id.partition("/")[0]

    def get_port(self, name: str) -> int:
        """Return the number of a port that the job requested.

        Raises:
            KeyError: It requested none of that name.
        """
        port = self.ports.get(name.lower().replace("-", "_"))
        if port is None:
            msg = f"the job requested no port {name!r}; its ports are: {', '.join(sorted(self.ports)) or 'none'}"
            raise KeyError(msg)
        return port

    @property
    def client(self) -> FlusterClient:
        """A client of the cluster that runs this job; jobs submitted by it are children of this one.

        Raises:
            RuntimeError: This job does not have the cluster's address.
        """
        address = os.environ.get(CONTROLLER_ADDRESS) or os.environ.get("HOLDFAST_URL")
        if not address:
            msg = f"{CONTROLLER_ADDRESS} is not set in this job"
            raise RuntimeError(msg)
        return _client(address, self.job_id)

    @property
    def registry(self) -> EndpointRegistry:
        """Where this program registers its address."""
        return self.client.endpoint_registry

    @property
    def resolver(self) -> Resolver:
        """Where it finds other jobs of its family."""
        return self.client.resolver()


_scope: ContextVar[FlusterContext | None] = ContextVar("fluster_context", default=None)


def create_context_from_env() -> FlusterContext:
    """Read the context from the variables of a job."""
    ports = {name.removeprefix(_PORT).lower(): int(to) for name, to in os.environ.items() if name.startswith(_PORT)}
    return FlusterContext(
        own_job(),
        int(os.environ.get("FLUSTER_ATTEMPT_ID", "0")),
        os.environ.get("FLUSTER_WORKER_ID", ""),
        ports,
    )


def fluster_ctx() -> FlusterContext:
    """Return the context of the job that this program runs in; outside a job, one with an empty name."""
    return _scope.get() or create_context_from_env()


def get_fluster_ctx() -> FlusterContext | None:
    """Return the context of the job that this program runs in; ``None`` outside a job."""
    context = fluster_ctx()
    return context if context.job_id else None


@contextmanager
def fluster_ctx_scope(context: FlusterContext) -> Iterator[FlusterContext]:
    """Use a context as the program's own while this is open."""
    tokens = _scope.set(context), current_job.set(context.job_id)
    try:
        yield context
    finally:
        _scope.reset(tokens[0])
        current_job.reset(tokens[1])


@cache
def _client(address: str, job_id: JobId) -> FlusterClient:
    return FlusterClient.remote(address, parent=job_id)
