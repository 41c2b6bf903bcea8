"""Job sets and what belongs to them, as the controller and readers ask for them.

Decides how sets, their jobs and their logs are found; leaves changing them to the controller's and the ways in's
parts, and building records to ``jobset_rows`` and ``codec``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from holdfast.storage.refusals import no_such_job_set
from holdfast.storage.sql import codec, jobset_rows, selects, tables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.domain.job import Job
    from holdfast.domain.jobset.stored import JobSet, SetLogEntry
    from holdfast.domain.podjob.stored import PodJob
    from holdfast.storage.sql.engine import Database

_BY_NAME = select(tables.job_sets).order_by(tables.job_sets.c.name)
_PODS_OF_ACTIVE_JOBS = (
    select(tables.pod_jobs).join(tables.jobs).where(selects.STATE_UNINDEXED.in_(selects.ACTIVE_STATES))
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
        table, wanted = tables.job_sets, codec.storable(reference)
        rows = _rows(self._database, select(table).where(or_(table.c.id == wanted, table.c.name == wanted)))
        if not rows:
            raise no_such_job_set(reference)
        return jobset_rows.read_job_set(next((row for row in rows if row.id == wanted), rows[0]))

    def job_sets(self, *, after: str = "", limit: int | None = None) -> Sequence[JobSet]:
        """List job sets by name, those whose name comes after ``after``."""
        query = _BY_NAME.where(tables.job_sets.c.name > codec.storable(after)).limit(limit)
        return [jobset_rows.read_job_set(row) for row in _rows(self._database, query)]

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

    def pod_jobs(self, job_ids: Sequence[str]) -> Mapping[str, PodJob]:
        """Return what is remembered of those jobs' pods, by job id; others are left out."""
        table = tables.pod_jobs
        found: dict[str, PodJob] = {}
        with self._database.reading() as connection:
            for ids in selects.chunks(job_ids):
                found.update(_pod_jobs(connection, select(table).where(table.c.job_id.in_(ids))))
        return found


def _rows(database: Database, query: Select[Any]) -> Sequence[Row[*tuple[Any, ...]]]:
    with database.reading() as connection:
        return connection.execute(query).all()


def all_sets(connection: Connection) -> list[JobSet]:
    """Read every job set, by name."""
    return [jobset_rows.read_job_set(row) for row in connection.execute(_BY_NAME)]


def active_pod_jobs(connection: Connection) -> dict[str, PodJob]:
    """Read what is remembered of the pods of every job that is not terminal."""
    return _pod_jobs(connection, _PODS_OF_ACTIVE_JOBS)


def _pod_jobs(connection: Connection, query: Select[Any]) -> dict[str, PodJob]:
    jobs = map(jobset_rows.read_pod_job, connection.execute(query))
    return {job.job_id: job for job in jobs}
