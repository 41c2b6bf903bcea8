"""Endpoints: the addresses of jobs' programs, registered under names so that others find them.

An endpoint belongs to the attempt that registered it, and exists while that runs. Endpoints are stored, because
programs do not notice that a server was restarted, and would not register again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.domain.access.grants import Right
from holdfast.domain.access.group import BELOW, Grouped
from holdfast.domain.access.places import WorkScope
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Conflict, InvalidRequest, NotFound, Problem
from holdfast.ports.endpoints import EndpointFilter, EndpointLimits, ProgramEndpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.service.operations.backend import Backend

BOUNDS = EndpointLimits(in_all=10_000, of_a_run=100)
LONGEST_NAME, LONGEST_ADDRESS, LONGEST_ID = 1_023, 1_023, 255
"""In bytes, as PostgreSQL's indexes are limited."""
LARGEST_METADATA = 4_096
"""In characters, names and values together."""


class Registration(Struct, frozen=True):
    """A request to register an endpoint of a job."""

    name: str
    address: str
    job: Job
    """Its current state."""
    job_name: str
    """Its name among its clients."""
    rank: int = 0
    metadata: Mapping[str, str] = {}
    id: str = ""
    """The id of a new or renewed endpoint; empty to have one assigned."""
    lease_s: float | None = None
    """How long it lasts unless it is renewed; ``None``: as long as the attempt runs."""


class EndpointDirectory(Struct, frozen=True):
    """The endpoints of the clients of one protocol."""

    backend: Backend
    system: str

    def register(self, caller: Caller, registration: Registration) -> str:
        """Register an endpoint of a job's running attempt; returns its id, which stays the same if it is repeated.

        Raises:
            InvalidRequest: The registration is not valid; with all problems.
            NotFound: The job is gone.
            Conflict: The job does not run, or the id belongs to another endpoint.
            Refused: There are too many endpoints.
            Forbidden: The caller may not register endpoints of this job.
        """
        problems = [*_problems(registration)]
        if problems:
            raise InvalidRequest("; ".join(map(str, problems)), problems=problems)
        job, now = registration.job, self.backend.clock.now()
        if not _is_its_own(caller, job.id):
            self.backend.seeing(caller).require(Right.CANCEL, [job])
        if job.state is not JobState.RUNNING:
            msg = f"the job is {job.state}: only a running job can register endpoints"
            raise Conflict(msg)
        endpoint = ProgramEndpoint(
            id=registration.id or self.backend.ids.new(),
            system=self.system,
            name=registration.name,
            address=registration.address,
            job_id=job.id,
            job_name=registration.job_name,
            attempt=job.attempt,
            rank=registration.rank,
            metadata=registration.metadata,
            until=None if registration.lease_s is None else now + registration.lease_s,
        )
        return self.backend.store.register_endpoint(endpoint, now, BOUNDS, renewed=bool(registration.id))

    def unregister(self, caller: Caller, key: str) -> None:
        """Remove an endpoint, if it exists.

        Raises:
            Forbidden: The caller may not remove it.
        """
        store = self.backend.store
        endpoint = store.endpoint(key)
        if endpoint is None or endpoint.system != self.system:
            return
        if not _is_its_own(caller, endpoint.job_id):
            self.backend.seeing(caller).require(Right.CANCEL, store.jobs_by_id([endpoint.job_id]))
        store.remove_endpoint(key)

    def lookup(self, caller: Caller, name: str) -> ProgramEndpoint:
        """Return the most recently registered endpoint of a name.

        Raises:
            NotFound: No running attempt has registered it.
        """
        endpoints = self.list(caller, EndpointFilter(self.system, name=name))
        if not endpoints:
            msg = f"endpoint {name!r} does not exist"
            raise NotFound(msg, hint="an endpoint exists while the attempt that registered it runs")
        return endpoints[-1]

    def below(self, caller: Caller, prefix: str) -> Sequence[ProgramEndpoint]:
        """List the endpoints of a name and below it; with a slash at the end of ``prefix``, only those below."""
        if not prefix or prefix.endswith(BELOW):
            return self.list(caller, EndpointFilter(self.system, begins=prefix))
        return self.list(caller, EndpointFilter(self.system, below=Grouped(prefix, below=True)))

    def list(self, caller: Caller, where: EndpointFilter) -> Sequence[ProgramEndpoint]:
        """List the current endpoints that the caller may see."""
        texts = (where.name or "", where.begins, "" if where.below is None else where.below.name)
        if any("\0" in text for text in texts):
            return ()  # no name contains a NUL
        seen = self.backend.seeing(caller).readable()
        if seen is not None and seen.places is not None and caller.principal.limit is not None:
            seen = evolve(seen, places=(*seen.places, *self._family(caller.principal.limit.job)))
        return self.backend.store.endpoints(evolve(where, seen=seen), self.backend.clock.now())

    def _family(self, job_id: str) -> Sequence[WorkScope]:
        """Return where a job's own token finds endpoints: in all jobs below its topmost ancestor.

        These are launched to talk to each other. The job sees nothing else of them, and cannot act on them.
        """
        top, below = "", ""
        while job_id and (jobs := self.backend.store.jobs_by_id([job_id])):
            if group := load_spec(jobs[0].spec).identity:  # without an identity that job may not see them itself
                top, below = job_id, group
            job_id = jobs[0].parent
        return (WorkScope(job=top), WorkScope(group=below + BELOW)) if top else ()


def _is_its_own(caller: Caller, job_id: str) -> bool:
    """Whether the caller is the job itself. It ends by returning, so it has no right to cancel itself."""
    limit = caller.principal.limit
    return limit is not None and limit.job == job_id


def _problems(registration: Registration) -> Iterable[Problem]:
    limits = (
        ("name", registration.name, LONGEST_NAME),
        ("address", registration.address, LONGEST_ADDRESS),
        ("endpoint_id", registration.id, LONGEST_ID),
    )
    for path, text, longest in limits:
        size = len(text.encode("utf-8", "surrogatepass"))
        if not text and path != "endpoint_id":
            yield Problem(path, "is required")
        elif size > longest:
            yield Problem(path, f"has {size} bytes", allowed=(f"1 to {longest}",))
        elif "\0" in text:
            yield Problem(path, "contains a NUL")
    size = sum(len(key) + len(value) for key, value in registration.metadata.items())
    if size > LARGEST_METADATA:
        yield Problem("metadata", f"has {size} characters", allowed=(f"up to {LARGEST_METADATA}",))
