"""The part of the storage port about endpoints: where programs of jobs answer, under names by which others find them.

One belongs to the attempt that registered it, and is there while that runs: the address of a dead program is no address
of the next. Some are leased, and there until their lease is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.access.group import Grouped


class ProgramEndpoint(Struct, frozen=True):
    """Where a program answers."""

    id: str
    system: str
    """By whose protocol it was registered; each finds its own."""
    name: str
    address: str
    job_id: str
    job_name: str
    """What its clients call the job."""
    attempt: int
    """Of the job; from 1."""
    rank: int
    metadata: Mapping[str, str]
    until: float | None = None
    """When its lease is over; ``None``: when its attempt is."""


class EndpointLimits(Struct, frozen=True):
    """How many endpoints there may be."""

    in_all: int
    of_a_run: int


class EndpointFilter(Struct, frozen=True):
    """Which endpoints to list; every field that is set must hold."""

    system: str
    name: str | None = None
    below: Grouped | None = None
    """Those whose names are so, or below that."""
    begins: str = ""
    """Those whose names begin with a text, wherever that ends."""
    job_names: frozenset[str] | None = None
    """Only those of jobs that are called so."""
    seen: Seen | None = None
    """Only those of jobs that somebody may know of; ``None``: of all."""


class EndpointStore(Protocol):
    """Endpoints, which every server on a database finds."""

    def register_endpoint(self, endpoint: ProgramEndpoint, now: float, bounds: EndpointLimits, *, renewed: bool) -> str:
        """Register an endpoint of the attempt of a job that runs; returns its id.

        What the job's earlier attempts left is forgotten with it.

        Args:
            endpoint: The endpoint.
            now: The time by which leases are over.
            bounds: How many there may be.
            renewed: One of this id is changed, and others of the run make way that have its name. Else the one that
                the run registered with the same name and address is changed, and keeps its id.

        Raises:
            NotFound: The job is gone.
            Conflict: Another attempt of it runs, or none; or the id is that of another job's endpoint.
            Refused: There are too many.
        """

    def remove_endpoint(self, key: str) -> None:
        """Forget an endpoint; one that is not there stays so."""

    def endpoint(self, key: str) -> ProgramEndpoint | None:
        """Return the endpoint of an id, also of an attempt that is over."""

    def endpoints(self, where: EndpointFilter, now: float) -> Sequence[ProgramEndpoint]:
        """List the endpoints of attempts that run and whose lease is not over, in the order in which they came."""

    def delete_endpoints(self, now: float, *, limit: int) -> int:
        """Forget up to ``limit`` endpoints that nobody finds any more; returns how many."""
