"""Deletes finished jobs, and specifications that no job refers to any more.

Rows that belong to a job are deleted by the schema's cascades.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Text, bindparam, delete, exists, func, select, text

from holdfast.domain.job import JOB_TERMINAL
from holdfast.ports.retention import FinishedJob
from holdfast.storage.sql import selects, tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection

    from holdfast.storage.sql.engine import Database

_ENDED_STATES = tuple(sorted(state.value for state in JOB_TERMINAL))
_FORGET_HISTORY = delete(tables.history).where(selects.history_of(bindparam("job", type_=Text)))
_SPECS_LOCK = 0x_401D_5BEC
_ended = func.coalesce(tables.jobs.c.ended_at, tables.jobs.c.updated_at)


def keep_specs(connection: Connection) -> None:
    """Keep every specification until the transaction ends, for a submission that reuses one."""
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time
        connection.execute(text("SELECT pg_advisory_xact_lock_shared(:lock)"), {"lock": _SPECS_LOCK})


class SqlRetentionStore:
    """The store's part for retention."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def finished_jobs(self, *, after: int, limit: int) -> Sequence[FinishedJob]:
        """List the first finished jobs with ``seq > after``, in order of submission."""
        jobs = tables.jobs
        query = select(jobs.c.seq, jobs.c.id, _ended).where(jobs.c.seq > after).order_by(jobs.c.seq).limit(limit)
        with self._database.reading() as connection:
            rows = [
                row for state in _ENDED_STATES for row in connection.execute(query.where(jobs.c.state == state)).all()
            ]
        return [FinishedJob(*row) for row in sorted(rows)[:limit]]

    def count_finished(self) -> int:
        """Count finished jobs."""
        query = select(func.count()).select_from(tables.jobs).where(tables.jobs.c.state.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def expired_jobs(self, *, until: float, limit: int) -> Sequence[str]:
        """List ids of finished jobs whose own time to live was over by then, the earliest first."""
        jobs, expiring = tables.jobs, tables.workloads
        due = expiring.c.expires_at.is_not(None) & (expiring.c.expires_at <= until)
        query = select(jobs.c.id).join(expiring, expiring.c.id == jobs.c.id)
        query = query.where(due, selects.STATE_UNINDEXED.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            found = connection.execute(query.order_by(expiring.c.expires_at, jobs.c.id).limit(limit))
            return found.scalars().all()

    def delete_finished(self, job_ids: Sequence[str]) -> int:
        """Delete those jobs with all that is stored about them; jobs that have not ended are left alone."""
        with self._database.writing() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _SPECS_LOCK})
            return sum(_delete(connection, ids) for ids in selects.chunks(job_ids))

    def delete_keys(self, *, before: float, limit: int) -> int:
        """Forget up to ``limit`` idempotency keys first used before that time; returns how many."""
        table = tables.idempotency
        old = select(table.c.key).where(table.c.created_at < before).limit(limit)
        with self._database.writing() as connection:
            return connection.execute(delete(table).where(table.c.key.in_(old))).rowcount


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    jobs, specs = tables.jobs, tables.specs
    chosen = jobs.c.id.in_(ids) & jobs.c.state.in_(_ENDED_STATES)
    found = connection.execute(select(jobs.c.id, jobs.c.spec).where(chosen)).all()
    digests = {digest for _, digest in found}
    if found:  # neither has a foreign key to cascade by
        connection.execute(_FORGET_HISTORY, [{"job": job_id} for job_id, _ in found])
        connection.execute(delete(tables.workloads).where(tables.workloads.c.id.in_(job_id for job_id, _ in found)))
    deleted = connection.execute(delete(jobs).where(chosen)).rowcount
    unused = ~exists().where(jobs.c.spec == specs.c.digest)
    connection.execute(delete(specs).where(specs.c.digest.in_(digests), unused))
    return deleted
