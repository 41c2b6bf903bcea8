"""Where programs of jobs answer, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.group import Grouped
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.errors import Conflict
from holdfast.storage.rules import gone_job, not_running, too_many_endpoints
from tools.memory_store.jobs import is_seen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from threading import RLock

    from holdfast.ports.endpoints import EndpointFilter, EndpointLimits, ProgramEndpoint
    from tools.memory_store.jobs import JobTable


class MemoryEndpointStore:
    """The store's part for endpoints."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Work on the tables of a store, under its lock."""
        self._endpoints_lock = lock
        self._answering = jobs
        self._endpoints: dict[str, ProgramEndpoint] = {}

    def register_endpoint(self, endpoint: ProgramEndpoint, now: float, bounds: EndpointLimits, *, renewed: bool) -> str:
        """Register an endpoint of the attempt of a job that runs; returns its id."""
        with self._endpoints_lock:
            job = self._answering.by_id.get(endpoint.job_id)
            if job is None:
                raise gone_job(endpoint.job_id)
            if job.state is not JobState.RUNNING or job.attempt != endpoint.attempt:
                raise not_running(endpoint, job.state, job.attempt)
            self._forget(now)
            known = self._known(endpoint, renewed=renewed)
            if known is None:
                own = [one for one in self._endpoints.values() if _run(one) == _run(endpoint)]
                if len(own) >= bounds.of_a_run or len(self._endpoints) >= bounds.in_all:
                    raise too_many_endpoints(bounds)
            key = known or endpoint.id
            self._endpoints[key] = evolve(endpoint, id=key)
            return key

    def _known(self, endpoint: ProgramEndpoint, *, renewed: bool) -> str | None:
        there = self._endpoints.get(endpoint.id)
        if not renewed:
            same = (one.id for one in self._endpoints.values() if _same(one) == _same(endpoint))
            return next(same, None)
        for key, one in [*self._endpoints.items()]:
            if key != endpoint.id and (*_run(one), one.name) == (*_run(endpoint), endpoint.name):
                del self._endpoints[key]
        if there is None or _run(there) == _run(endpoint):
            return None if there is None else there.id
        if there.job_id != endpoint.job_id:
            msg = f"the endpoint {endpoint.id!r} is another job's"
            raise Conflict(msg)
        del self._endpoints[there.id]
        return None

    def _forget(self, now: float) -> int:
        over = [key for key, one in self._endpoints.items() if not self._lasts(one, now)]
        for key in over:
            del self._endpoints[key]
        return len(over)

    def _lasts(self, one: ProgramEndpoint, now: float) -> bool:
        job = self._answering.by_id.get(one.job_id)
        runs = job is not None and job.state is JobState.RUNNING and job.attempt == one.attempt
        return runs and (one.until is None or one.until > now)

    def remove_endpoint(self, key: str) -> None:
        """Forget an endpoint; one that is not there stays so."""
        with self._endpoints_lock:
            self._endpoints.pop(key, None)

    def endpoint(self, key: str) -> ProgramEndpoint | None:
        """Return the endpoint of an id."""
        found = self._endpoints.get(key)
        return found if found is not None and found.job_id in self._answering.by_id else None

    def endpoints(self, where: EndpointFilter, now: float) -> Sequence[ProgramEndpoint]:
        """List the endpoints of attempts that run and whose lease is not over."""
        with self._endpoints_lock:
            there = [one for one in self._endpoints.values() if one.system == where.system and self._lasts(one, now)]
            return [one for one in there if self._is_meant(one, where)]

    def _is_meant(self, one: ProgramEndpoint, where: EndpointFilter) -> bool:
        below = where.below or Grouped("", below=True)
        return (
            where.name in {None, one.name}
            and (where.below is None or below.holds(one.name))
            and one.name.startswith(where.begins)
            and (where.job_names is None or one.job_name in where.job_names)
            and is_seen(self._answering.by_id[one.job_id], where.seen)
        )

    def delete_endpoints(self, now: float, *, limit: int) -> int:
        """Forget the endpoints that nobody finds any more; returns how many."""
        del limit
        with self._endpoints_lock:
            return self._forget(now)


def _run(one: ProgramEndpoint) -> tuple[str, str, int]:
    return one.job_id, one.system, one.rank


def _same(one: ProgramEndpoint) -> tuple[object, ...]:
    return *_run(one), one.attempt, one.name, one.address
