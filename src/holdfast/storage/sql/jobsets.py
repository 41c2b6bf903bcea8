"""Queries for job sets and what belongs to them, for the controller and readers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from holdfast.ports.store import ASKED_OF_SETS, AskedOf, Request
from holdfast.storage.refusals import no_such_job_set
from holdfast.storage.sql import codec, jobset_rows, selects, tables
from holdfast.storage.sql.facts import dump_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.state import JobSet, SetLogEntry
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
    from holdfast.storage.sql.engine import Database

_BY_NAME = select(tables.job_sets).order_by(tables.job_sets.c.name)
_PODS_OF_ACTIVE_JOBS = (
    select(tables.kube_jobs).join(tables.jobs).where(selects.STATE_UNINDEXED.in_(selects.ACTIVE_STATES))
)


class SqlJobSetStore:
    """The part of the store about job sets."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def job_set(self, reference: str) -> JobSet:
        """Find a job set by id, or by name.

        Raises:
            NotFound: None matches.
        """
        with self._database.reading() as connection:
            return _find(connection, reference)

    def job_sets(self, *, after: str = "", limit: int | None = None) -> Sequence[JobSet]:
        """List job sets by name, those whose name comes after ``after``."""
        with self._database.reading() as connection:
            return _page(connection, after, limit)

    def asked_of(self, reference: str) -> AskedOf:
        """Find a job set by id, or by name, with its pending requests.

        Raises:
            NotFound: None matches.
        """
        with self._database.reading() as connection:
            (found,) = _asked_of(connection, [_find(connection, reference)])
        return found

    def all_asked_of(self, *, after: str = "", limit: int | None = None) -> Sequence[AskedOf]:
        """List job sets as ``job_sets`` does, each with its pending requests."""
        with self._database.reading() as connection:
            return _asked_of(connection, _page(connection, after, limit))

    def job_sets_by_id(self, set_ids: Sequence[str]) -> Sequence[JobSet]:
        """Return those job sets, by name; unknown ids are left out."""
        table = tables.job_sets
        rows = (
            row
            for ids in selects.chunks([*{*set_ids}])
            for row in _rows(self._database, _BY_NAME.where(table.c.id.in_(ids)))
        )
        return sorted(map(jobset_rows.read_job_set, rows), key=lambda found: found.name)

    def children_of(self, set_id: str) -> Sequence[Job]:
        """Return every job of a job set, in order of submission."""
        read = codec.Reader()
        query = selects.JOBS.where(tables.jobs.c.set_id == set_id).order_by(tables.jobs.c.seq)
        return [read.job(row) for row in _rows(self._database, query)]

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
        table = tables.set_log
        query = select(table).where(table.c.set_id == codec.storable(set_id), table.c.seq > after)
        return [
            jobset_rows.read_set_log(row) for row in _rows(self._database, query.order_by(table.c.seq).limit(limit))
        ]

    def kube_jobs(self, job_ids: Sequence[str]) -> Mapping[str, KubeJobRecord]:
        """Return the pod state of those jobs, by job id; others are left out."""
        table = tables.kube_jobs
        found: dict[str, KubeJobRecord] = {}
        with self._database.reading() as connection:
            for ids in selects.chunks(job_ids):
                found.update(_pod_jobs(connection, select(table).where(table.c.job_id.in_(ids))))
        return found


def _rows(database: Database, query: Select[Any]) -> Sequence[Row[*tuple[Any, ...]]]:
    with database.reading() as connection:
        return connection.execute(query).all()


def _find(connection: Connection, reference: str) -> JobSet:
    table, wanted = tables.job_sets, codec.storable(reference)
    rows = connection.execute(select(table).where(or_(table.c.id == wanted, table.c.name == wanted))).all()
    if not rows:
        raise no_such_job_set(reference)
    return jobset_rows.read_job_set(next((row for row in rows if row.id == wanted), rows[0]))


def _page(connection: Connection, after: str, limit: int | None) -> list[JobSet]:
    query = _BY_NAME.where(tables.job_sets.c.name > codec.storable(after)).limit(limit)
    return [jobset_rows.read_job_set(row) for row in connection.execute(query)]


def _asked_of(connection: Connection, sets: Sequence[JobSet]) -> list[AskedOf]:
    """Add the pending requests of sets; each of these requests is about one."""
    table, asked = tables.requests, defaultdict[str, list[Request]](list)
    for ids in selects.chunks([dump_json((each.id,)) for each in sets]):
        query = select(table).where(table.c.kind.in_(ASKED_OF_SETS), table.c.job_ids.in_(ids)).order_by(table.c.id)
        for request in map(codec.read_request, connection.execute(query)):
            asked[request.targets[0]].append(request)
    return [AskedOf(each, asked[each.id]) for each in sets]


def all_sets(connection: Connection) -> list[JobSet]:
    """Read every job set, by name."""
    return [jobset_rows.read_job_set(row) for row in connection.execute(_BY_NAME)]


def active_pod_jobs(connection: Connection) -> dict[str, KubeJobRecord]:
    """Read the pod state of every job that is not terminal."""
    return _pod_jobs(connection, _PODS_OF_ACTIVE_JOBS)


def _pod_jobs(connection: Connection, query: Select[Any]) -> dict[str, KubeJobRecord]:
    jobs = map(jobset_rows.read_pod_job, connection.execute(query))
    return {job.job_id: job for job in jobs}
