"""Endpoints: where programs of jobs answer, under names by which others find them.

One belongs to the attempt that registered it, and is found while that runs. They are stored: programs do not notice
that a server was killed, and would not register again.
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
"""Bytes: what an index of PostgreSQL holds is counted so."""
LARGEST_METADATA = 4_096
"""Characters, names and values together."""


class Registration(Struct, frozen=True):
    """What somebody wants to register for a job."""

    name: str
    address: str
    job: Job
    """As it is now."""
    job_name: str
    """What its clients call it."""
    rank: int = 0
    metadata: Mapping[str, str] = {}
    id: str = ""
    """Of one that is new or renewed; empty: one is given."""
    lease_s: float | None = None
    """For how long, unless it is renewed; ``None``: while the attempt runs."""


class EndpointDirectory(Struct, frozen=True):
    """Those that clients of one protocol register and find."""

    backend: Backend
    system: str

    def register(self, caller: Caller, registration: Registration) -> str:
        """Register an endpoint of a job's running attempt, and return its id; the same again has the id it had.

        Raises:
            InvalidRequest: It is not valid; with all problems.
            NotFound: The job is gone.
            Conflict: The job does not run, or that id is another's.
            Refused: There are too many.
            Forbidden: It is not the caller's to say where the job answers.
        """
        problems = [*_problems(registration)]
        if problems:
            raise InvalidRequest("; ".join(map(str, problems)), problems=problems)
        job, now = registration.job, self.backend.clock.now()
        if not _is_its_own(caller, job.id):
            self.backend.seeing(caller).require(Right.CANCEL, [job])
        if job.state is not JobState.RUNNING:
            msg = f"the job is {job.state}: endpoints are those of a program that runs"
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
        """Forget an endpoint; one that is not there stays so.

        Raises:
            Forbidden: It is not the caller's.
        """
        store = self.backend.store
        endpoint = store.endpoint(key)
        if endpoint is None or endpoint.system != self.system:
            return
        if not _is_its_own(caller, endpoint.job_id):
            self.backend.seeing(caller).require(Right.CANCEL, store.jobs_by_id([endpoint.job_id]))
        store.remove_endpoint(key)

    def lookup(self, caller: Caller, name: str) -> ProgramEndpoint:
        """Return the endpoint of a name that was registered last.

        Raises:
            NotFound: No program that runs has it.
        """
        endpoints = self.list(caller, EndpointFilter(self.system, name=name))
        if not endpoints:
            msg = f"endpoint {name!r} does not exist"
            raise NotFound(msg, hint="it is there while the attempt runs that registered it")
        return endpoints[-1]

    def below(self, caller: Caller, prefix: str) -> Sequence[ProgramEndpoint]:
        """List the endpoints of a name and those below it; of a prefix that ends with a slash only the latter."""
        if not prefix or prefix.endswith(BELOW):
            return self.list(caller, EndpointFilter(self.system, begins=prefix))
        return self.list(caller, EndpointFilter(self.system, below=Grouped(prefix, below=True)))

    def list(self, caller: Caller, where: EndpointFilter) -> Sequence[ProgramEndpoint]:
        """List the endpoints that there are now and that somebody may know of."""
        texts = (where.name or "", where.begins, "" if where.below is None else where.below.name)
        if any("\0" in text for text in texts):
            return ()  # none has one in its name
        seen = self.backend.seeing(caller).readable()
        if seen is not None and seen.places is not None and caller.principal.limit is not None:
            seen = evolve(seen, places=(*seen.places, *self._family(caller.principal.limit.job)))
        return self.backend.store.endpoints(evolve(where, seen=seen), self.backend.clock.now())

    def _family(self, job_id: str) -> Sequence[WorkScope]:
        """Return where those are among whom a job finds programs by its own token: all below the job above all others.

        They are launched to speak to each other. It learns nothing else of them, and does nothing to them.
        """
        top, below = "", ""
        while job_id and (jobs := self.backend.store.jobs_by_id([job_id])):
            if group := load_spec(jobs[0].spec).identity:  # else that job may not know of them itself
                top, below = job_id, group
            job_id = jobs[0].parent
        return (WorkScope(job=top), WorkScope(group=below + BELOW)) if top else ()


def _is_its_own(caller: Caller, job_id: str) -> bool:
    """Whether the job itself asks, which ends by returning and so cannot cancel itself."""
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
            yield Problem(path, "has a NUL in it")
    size = sum(len(key) + len(value) for key, value in registration.metadata.items())
    if size > LARGEST_METADATA:
        yield Problem("metadata", f"has {size} characters", allowed=(f"up to {LARGEST_METADATA}",))
