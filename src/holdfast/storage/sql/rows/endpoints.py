"""Endpoints that programs of jobs register: valid while their attempt runs, deleted when an old one is met.

Each read checks the job's current attempt, so that the end of an attempt costs nothing extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, and_, delete, func, insert, or_, select, text, update

from holdfast.compiled.records import dump_json, load_json, storable
from holdfast.domain.job import JobState
from holdfast.errors import Conflict, NotFound, Refused
from holdfast.ports.endpoints import ProgramEndpoint
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.damage import sound
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import begins_with, in_group, seen_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row

    from holdfast.ports.endpoints import EndpointFilter, EndpointLimits

_TABLE = declared.endpoints
_ROWS = _TABLE.c
_JOBS = tables.jobs.c
_RUNS = and_(_JOBS.id == _ROWS.job_id, _JOBS.attempt == _ROWS.attempt, _JOBS.state == JobState.RUNNING.value)
_COLUMNS = tuple(column for column in _ROWS if column.name != "seq")
_LOCK = 0x_401D_E4D5
"""Serialises registrations, because they are counted."""


class SqlEndpointStore(StorePart):
    """``EndpointStore``: endpoints of running programs."""

    def register_endpoint(self, endpoint: ProgramEndpoint, now: float, bounds: EndpointLimits, *, renewed: bool) -> str:
        """Register an endpoint of a job's running attempt. Returns its id."""
        with self._database.writing() as connection:
            if not self._database.is_sqlite:  # SQLite has one writer at a time.
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
            _require_attempt(connection, endpoint)
            stale = (_ROWS.attempt != endpoint.attempt) | (_ROWS.until <= now)
            connection.execute(delete(_TABLE).where(_ROWS.job_id == endpoint.job_id, stale))
            existing_id = _known(connection, endpoint, now, renewed=renewed)
            if existing_id is not None:
                connection.execute(update(_TABLE).where(_ROWS.id == existing_id).values(_values(endpoint, existing_id)))
                return existing_id
            _require_room(connection, endpoint, now, bounds)
            connection.execute(insert(_TABLE).values(_values(endpoint, endpoint.id)))
        return endpoint.id

    def remove_endpoint(self, key: str) -> None:
        """Delete an endpoint; does nothing if there is none."""
        with self._database.writing() as connection:
            connection.execute(delete(_TABLE).where(_ROWS.id == storable(key)))

    def endpoint(self, key: str) -> ProgramEndpoint | None:
        """Return an endpoint by its id, even if its attempt has ended."""
        with self._database.reading() as connection:
            rows = connection.execute(select(*_COLUMNS).where(_ROWS.id == storable(key)))
            return next(sound(rows, _read), None)

    def endpoints(self, where: EndpointFilter, now: float) -> Sequence[ProgramEndpoint]:
        """List the endpoints of running attempts whose lease has not expired, in order of registration."""
        query = select(*_COLUMNS).join(tables.jobs, _RUNS).where(_lasts(now), *_meant(where)).order_by(_ROWS.seq)
        with self._database.reading() as connection:
            return [*sound(connection.execute(query), _read)]

    def delete_endpoints(self, now: float, *, limit: int) -> int:
        """Delete up to ``limit`` endpoints that have expired; returns how many."""
        over = select(_ROWS.id).where(_is_over(now)).limit(limit)
        with self._database.reading() as connection:
            if connection.execute(over.limit(1)).first() is None:
                return 0
        with self._database.writing() as connection:
            return connection.execute(delete(_TABLE).where(_ROWS.id.in_(over))).rowcount


def _require_attempt(connection: Connection, endpoint: ProgramEndpoint) -> None:
    """Make sure that the endpoint's attempt runs; when that ends, so does the endpoint."""
    job = connection.execute(select(_JOBS.state, _JOBS.attempt).where(_JOBS.id == endpoint.job_id)).first()
    if job is None:
        message = f"job {endpoint.job_id!r} was deleted meanwhile"
        raise NotFound(message)
    if job.attempt != endpoint.attempt:
        message = "another attempt of the job is the current one by now"
        raise Conflict(message)
    if job.state != JobState.RUNNING:
        message = f"the job is {job.state}: only a running job can register endpoints"
        raise Conflict(message)


def _known(connection: Connection, endpoint: ProgramEndpoint, now: float, *, renewed: bool) -> str | None:
    """Return the id of the same endpoint registered before; an expired one is deleted."""
    run = [getattr(_ROWS, name) == getattr(endpoint, name) for name in ("job_id", "system", "attempt", "rank", "name")]
    if not renewed:
        same = (*run, _ROWS.address == endpoint.address)
        return connection.execute(select(_ROWS.id).where(*same).limit(1)).scalar()
    connection.execute(delete(_TABLE).where(*run, _ROWS.id != endpoint.id))
    row = connection.execute(select(_ROWS.job_id, _ROWS.system, _ROWS.rank).where(_ROWS.id == endpoint.id)).first()
    if row is None:
        return None
    if tuple(row) == (endpoint.job_id, endpoint.system, endpoint.rank):
        return endpoint.id
    own = (_ROWS.id == endpoint.id) & (or_(_is_over(now), _ROWS.job_id == endpoint.job_id))
    if connection.execute(delete(_TABLE).where(own)).rowcount == 0:
        msg = f"the endpoint {endpoint.id!r} is another job's"
        raise Conflict(msg, hint="choose another id")
    return None


def _require_room(connection: Connection, endpoint: ProgramEndpoint, now: float, bounds: EndpointLimits) -> None:
    counted = select(func.count()).select_from(_TABLE)
    own = counted.where(_ROWS.job_id == endpoint.job_id, _ROWS.rank == endpoint.rank)
    if connection.execute(own).scalar_one() >= bounds.of_a_run:
        raise _too_many(bounds)
    if connection.execute(counted).scalar_one() >= bounds.in_all:
        connection.execute(delete(_TABLE).where(_is_over(now)))
        if connection.execute(counted).scalar_one() >= bounds.in_all:
            raise _too_many(bounds)


def _lasts(now: float) -> ColumnElement[bool]:
    return or_(_ROWS.until.is_(None), _ROWS.until > now)


def _is_over(now: float) -> ColumnElement[bool]:
    return or_(_ROWS.until <= now, ~select(_JOBS.id).where(_RUNS).correlate(_TABLE).exists())


def _meant(where: EndpointFilter) -> Sequence[ColumnElement[bool]]:
    conditions = [_ROWS.system == where.system]
    if where.name is not None:
        conditions.append(_ROWS.name == where.name)
    if where.below is not None:
        conditions.append(in_group(_ROWS.name, where.below))
    if where.begins:
        conditions.append(begins_with(_ROWS.name, where.begins))
    if where.job_names is not None:
        conditions.append(_ROWS.job_name.in_(sorted(where.job_names)))
    if where.seen is not None:
        conditions.append(seen_by(where.seen))
    return conditions


def _values(endpoint: ProgramEndpoint, key: str) -> Mapping[str, Any]:
    values = {column.name: getattr(endpoint, column.name) for column in _COLUMNS}
    return {**values, "id": key, "metadata": dump_json(endpoint.metadata)}


def _read(row: Row[*tuple[Any, ...]]) -> ProgramEndpoint:
    key, system, name, address, job_id, job_name, attempt, rank, stored, until = row
    return ProgramEndpoint(key, system, name, address, job_id, job_name, attempt, rank, load_json(stored), until)


def _too_many(bounds: EndpointLimits) -> Refused:
    message = f"there are too many endpoints: {bounds.of_a_run} of a run, {bounds.in_all:,} in all"
    return Refused(message, hint="unregister some")
