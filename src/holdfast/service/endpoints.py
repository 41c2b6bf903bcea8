"""Endpoints: where programs of jobs answer, under names by which others find them.

One belongs to the attempt that registered it, and is there while that runs: the address of a dead program is no
address of the next. They are kept in memory, as they mean nothing once their programs are gone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.job import JobState
from holdfast.domain.record import Struct, evolve
from holdfast.errors import Conflict, InvalidRequest, NotFound, Problem, Refused
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.domain.job import Job
    from holdfast.service.operations.backend import Backend

MOST, MOST_EACH = 10_000, 100
"""Endpoints in all, and of one job."""
LONGEST_NAME, LONGEST_ADDRESS = 1_023, 255
LARGEST_METADATA = 4_096
"""Characters, names and values together."""


class Endpoint(Struct, frozen=True):
    """Where a program answers."""

    id: str
    name: str
    address: str
    job_id: str
    job_name: str
    """What its clients call the job."""
    attempt: int
    metadata: Mapping[str, str]


class Endpoints:
    """Those that there are."""

    def __init__(self, backend: Backend) -> None:
        """Begin with none."""
        self._backend = backend
        self._lock = threading.Lock()
        self._known: dict[str, Endpoint] = {}

    def register(self, caller: Caller, job: Job, asked: Endpoint) -> str:
        """Register an endpoint of a job's running attempt, and return its id; the same again has the id it had.

        Args:
            caller: Who asks.
            job: The job, as it is now.
            asked: The endpoint, which has neither an id nor an attempt yet.

        Raises:
            InvalidRequest: It is not valid; with all problems.
            Conflict: The job does not run.
            Refused: There are too many.
            Forbidden: It is not the caller's to say where the job answers.
        """
        problems = [*_problems(asked)]
        if problems:
            raise InvalidRequest("; ".join(map(str, problems)), problems=problems)
        self._backend.seeing(caller).require(Right.CANCEL, [job])
        if job.state is not JobState.RUNNING:
            msg = f"the job is {job.state}: endpoints are those of a program that runs"
            raise Conflict(msg)
        with self._lock:
            own = [one for one in self._known.values() if one.job_id == job.id]
            if len(self._known) >= MOST or any(one.attempt != job.attempt for one in own):
                self._forget_ended()
                own = [one for one in own if one.id in self._known]
            same = next((one for one in own if (one.name, one.address) == (asked.name, asked.address)), None)
            if same is None and (len(own) >= MOST_EACH or len(self._known) >= MOST):
                msg = f"there are too many endpoints: {MOST_EACH} of a job, {MOST:,} in all"
                raise Refused(msg, hint="unregister some")
            key = self._backend.ids.new() if same is None else same.id
            self._known[key] = evolve(asked, id=key, attempt=job.attempt)
        return key

    def unregister(self, caller: Caller, key: str) -> None:
        """Forget an endpoint; one that is not there stays so.

        Raises:
            Forbidden: It is not the caller's.
        """
        known = self._known.get(key)
        if known is None:
            return
        self._backend.seeing(caller).require(Right.CANCEL, self._backend.store.jobs_by_id([known.job_id]))
        with self._lock:
            self._known.pop(key, None)

    def lookup(self, caller: Caller, name: str) -> Endpoint:
        """Return the endpoint of a name that was registered last.

        Raises:
            NotFound: No program that runs has it.
        """
        found = [one for one in self._seen(caller) if one.name == name]
        if not found:
            msg = f"endpoint {name!r} does not exist"
            raise NotFound(msg, hint="it is there while the attempt runs that registered it")
        return found[-1]

    def named(self, caller: Caller, prefix: str) -> Sequence[Endpoint]:
        """List the endpoints whose names begin so."""
        return [one for one in self._seen(caller) if one.name.startswith(prefix)]

    def _seen(self, caller: Caller) -> list[Endpoint]:
        """Return those that are there now and that somebody may know of."""
        with self._lock:
            self._forget_ended()
            there = [*self._known.values()]
        if not there:
            return []
        where = self._backend.seeing(caller).listed(JobFilter(ids=frozenset(one.job_id for one in there)))
        known = {job.id for job in self._backend.store.jobs(where)}
        return [one for one in there if one.job_id in known]

    def _forget_ended(self) -> None:
        """Forget those of attempts that do not run any more."""
        ids = {one.job_id for one in self._known.values()}
        jobs = {job.id: job for job in self._backend.store.jobs_by_id([*ids]) if job.state is JobState.RUNNING}
        ended = [
            key for key, one in self._known.items() if one.job_id not in jobs or jobs[one.job_id].attempt != one.attempt
        ]
        for key in ended:
            del self._known[key]


def _problems(asked: Endpoint) -> Iterable[Problem]:
    for path, text, longest in (("name", asked.name, LONGEST_NAME), ("address", asked.address, LONGEST_ADDRESS)):
        if not text:
            yield Problem(path, "is required")
        elif len(text) > longest:
            yield Problem(path, f"has {len(text)} characters", allowed=(f"1 to {longest}",))
    size = sum(len(key) + len(value) for key, value in asked.metadata.items())
    if size > LARGEST_METADATA:
        yield Problem("metadata", f"has {size} characters", allowed=(f"up to {LARGEST_METADATA}",))
