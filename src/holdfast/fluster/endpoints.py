"""The addresses of programs of jobs: registered by them, and found by others below the same root job."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.fluster.rpc_client import RpcClusterClient


@dataclass(frozen=True)
class ResolvedEndpoint:
    """An address that was found."""

    url: str
    actor_id: str
    """The id of the registration, which differs for another program."""
    metadata: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ResolveResult:
    """The addresses that were found under a name."""

    name: str
    endpoints: list[ResolvedEndpoint] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether no address was found."""
        return not self.endpoints

    def first(self) -> ResolvedEndpoint:
        """Return the one that was registered first.

        Raises:
            ValueError: There is none.
        """
        if not self.endpoints:
            msg = f"nobody has registered {self.name!r}"
            raise ValueError(msg)
        return self.endpoints[0]


class EndpointRegistry:
    """Registers the address of a job's program; names are below the root job."""

    def __init__(self, client: RpcClusterClient, job_id: Callable[[], str]) -> None:
        """``job_id`` returns the name of this program's job."""
        self._client, self._job_id = client, job_id

    def register(self, name: str, address: str, metadata: Mapping[str, str] | None = None) -> str:
        """Register an address, such as ``127.0.0.1:8080``, while this attempt runs; returns the registration's id.

        Raises:
            RuntimeError: This program does not run in a job.
            ClusterError: The registration is refused.
        """
        job_id = self._job_id()
        return self._client.register_endpoint(below(job_id, name), address, job_id, metadata)

    def unregister(self, endpoint_id: str) -> None:
        """Remove a registration, if it exists."""
        self._client.unregister_endpoint(endpoint_id)


class Resolver:
    """Finds the addresses that programs have registered below this one's root job."""

    def __init__(self, client: RpcClusterClient, job_id: Callable[[], str]) -> None:
        """``job_id`` returns the name of this program's job."""
        self._client, self._job_id = client, job_id

    def resolve(self, name: str) -> ResolveResult:
        """Find all addresses that are registered under a name.

        Raises:
            RuntimeError: This program does not run in a job.
        """
        full_name = below(self._job_id(), name)
        endpoints = [endpoint for endpoint in self._client.list_endpoints(full_name) if endpoint.name == full_name]
        return ResolveResult(
            name,
            [
                ResolvedEndpoint(f"http://{endpoint.address}", endpoint.endpoint_id, dict(endpoint.metadata))
                for endpoint in endpoints
            ],
        )


def below(job_id: str, name: str) -> str:
    """Return the full name of an endpoint.

    Raises:
        RuntimeError: This program does not run in a job.
    """
    if not job_id:
        msg = "this program does not run in a job: endpoints have names within the family of a job"
        raise RuntimeError(msg)
    return f"{job_id.partition('/')[0]}/{name}"
