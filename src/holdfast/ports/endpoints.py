"""The part of the storage port about endpoints: addresses of jobs' programs, registered under names.

An endpoint belongs to the attempt that registered it and is valid while that runs: a dead program's address is not its
successor's. Some are leased, and valid until the lease expires.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped


class ProgramEndpoint(Struct, frozen=True):
    """The address of a program."""

    id: str
    system: str
    """The protocol by which it was registered; each finds only its own."""
    name: str
    address: str
    job_id: str
    job_name: str
    """The job's name in that protocol."""
    attempt: int
    """The job's attempt, from 1."""
    rank: int
    metadata: Mapping[str, str]
    until: float | None = None
    """When its lease expires; ``None`` if it has none."""


class EndpointLimits(Struct, frozen=True):
    """The most endpoints of a run, and in all."""

    in_all: int
    of_a_run: int


class EndpointFilter(Struct, frozen=True):
    """A selection of endpoints; every field that is set must hold."""

    system: str
    name: str | None = None
    below: Grouped | None = None
    """Names, or names below them."""
    begins: str = ""
    """Names that begin with a text."""
    job_names: frozenset[str] | None = None
    """Names of jobs."""
    seen: Seen | None = None
    """Only endpoints of jobs that the caller may know of; ``None``: all."""


class EndpointStore(Protocol):
    """Endpoints, shared by all servers on a database."""

    def register_endpoint(self, endpoint: ProgramEndpoint, now: float, bounds: EndpointLimits, *, renewed: bool) -> str:
        """Register an endpoint of a job's running attempt. Returns its id.

        Endpoints of the job's earlier attempts are deleted.

        Args:
            endpoint: The endpoint.
            now: The time for leases.
            bounds: The limits.
            renewed: Whether to replace the endpoint with this id, and others of the run with its name. Otherwise an
                endpoint that the run registered with the same name and address is changed, and keeps its id.

        Raises:
            NotFound: The job is gone.
            Conflict: Another attempt runs, or none; or the id belongs to another job's endpoint.
            Refused: There are too many.
        """

    def remove_endpoint(self, key: str) -> None:
        """Delete an endpoint, if it exists."""

    def endpoint(self, key: str) -> ProgramEndpoint | None:
        """Return an endpoint by its id, even if its attempt has ended."""

    def endpoints(self, where: EndpointFilter, now: float) -> Sequence[ProgramEndpoint]:
        """List the endpoints of running attempts whose lease has not expired, in order of registration."""

    def delete_endpoints(self, now: float, *, limit: int) -> int:
        """Delete up to ``limit`` expired endpoints; returns how many."""
