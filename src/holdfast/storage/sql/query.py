"""Queries for readers.

Every method is one transaction of its own, so every answer is a consistent snapshot.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from holdfast.domain.job import JobState
from holdfast.storage.refusals import SHORTEST_PREFIX, ambiguous_job, no_such_job
from holdfast.storage.sql import codec, selects, tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.workloads.base import Quarantined
    from holdfast.ports.store import JobFilter
    from holdfast.storage.sql.engine import Database

_SHOWN = 5
"""How many candidates an ambiguous prefix lists."""


class SqlQueryStore:
    """The readers' part of the store."""

    def __init__(self, database: Database) -> None:
        """Work on an open database whose schema is current."""
        self._database = database

    def job(self, reference: str) -> Job:
        """Find a job by id, newest name, or unique id prefix.

        Raises:
            NotFound: None matches, or a prefix is ambiguous.
        """
        with self._database.reading() as connection:
            row = _find(connection, codec.storable(reference))
        return codec.Reader().job(row)

    def jobs(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Sequence[Job]:
        """List jobs in order of submission, those with ``seq > after``."""
        base = _filtered(where).where(tables.jobs.c.seq > after).order_by(tables.jobs.c.seq).limit(limit)
        read = codec.Reader()
        with self._database.reading() as connection:
            found = [read.job(row) for query in _by_state(base, where) for row in connection.execute(query)]
        found.sort(key=attrgetter("seq"))
        return found[:limit]

    def job_states(self, job_ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of those jobs, cheaply; unknown ids are left out."""
        query = select(tables.jobs.c.id, tables.jobs.c.state)
        found: dict[str, JobState] = {}
        with self._database.reading() as connection:
            for ids in selects.chunks([*map(codec.storable, job_ids)]):
                rows = connection.execute(query.where(tables.jobs.c.id.in_(ids)))
                found.update((job_id, JobState(state)) for job_id, state in rows)
        return found

    def count_by_state(self) -> Mapping[str, int]:
        """Count jobs by state."""
        query = select(tables.jobs.c.state, func.count()).group_by(tables.jobs.c.state)
        with self._database.reading() as connection:
            return {state: int(count) for state, count in connection.execute(query)}

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """List a job's attempts, by number."""
        read = codec.Reader()
        return [read.attempt(row) for row in self._rows(selects.ATTEMPTS.where(tables.attempts.c.job_id == job_id))]

    def runs(self, job_id: str) -> Sequence[Run]:
        """List a job's runs, by attempt, dispatch and rank."""
        read = codec.Reader()
        return [read.run(row) for row in self._rows(selects.RUNS.where(tables.runs.c.job_id == job_id))]

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        """List the phases a job's attempts went through, in order."""
        read = codec.Reader()
        rows = [read.history(row) for row in self._rows(select(tables.history).where(selects.history_of(job_id)))]
        return sorted(rows, key=attrgetter("attempt", "seq"))

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported."""
        read = codec.Reader()
        table = tables.nodes
        return [read.node(row) for row in self._rows(select(table).order_by(table.c.executor, table.c.name))]

    def running(self) -> Iterable[Run]:
        """List runs that are not terminal."""
        read = codec.Reader()
        return [read.run(row) for row in self._rows(selects.RUNS.where(tables.RUN_ACTIVE))]

    def quarantined(self) -> Mapping[str, Quarantined]:
        """Return the workloads that are quarantined, by id."""
        with self._database.reading() as connection:
            return selects.quarantined(connection)

    def _rows(self, query: Select[Any]) -> Sequence[Row[*tuple[Any, ...]]]:
        with self._database.reading() as connection:
            return connection.execute(query).all()


def _by_state(base: Select[Any], where: JobFilter) -> list[Select[Any]]:
    """One query for each state: only then the index gives them in order, and a limit stops early."""
    if where.states is None:
        return [base]
    if where.job_set is not None:  # its own index gives the few jobs of a set in order
        return [base.where(selects.STATE_UNINDEXED.in_(sorted(where.states)))]
    return [base.where(tables.jobs.c.state == state.value) for state in where.states]


def _filtered(where: JobFilter) -> Select[Any]:
    jobs, labels = tables.jobs, tables.job_labels
    query = selects.JOBS
    if where.queue is not None:
        query = query.where(jobs.c.queue == where.queue)
    if where.name is not None:
        query = query.where(jobs.c.name == where.name)
    if where.job_set is not None:
        query = query.where(jobs.c.set_id == where.job_set)
    if where.quarantined:
        query = query.where(jobs.c.id.in_(select(tables.quarantine.c.id)))
    for key, value in where.labels:
        query = query.where(jobs.c.id.in_(select(labels.c.job_id).where(labels.c.key == key, labels.c.value == value)))
    return query


def _find(connection: Connection, reference: str) -> Row[*tuple[Any, ...]]:
    jobs = tables.jobs
    row: Row[*tuple[Any, ...]] | None = connection.execute(selects.JOBS.where(jobs.c.id == reference)).first()
    if row is None:
        newest = selects.JOBS.where(jobs.c.name == reference).order_by(jobs.c.seq.desc()).limit(1)
        row = connection.execute(newest).first()
    if row is None and len(reference) >= SHORTEST_PREFIX and reference.isascii():
        row = _find_by_prefix(connection, reference)
    if row is None:
        raise no_such_job(reference)
    return row


def _find_by_prefix(connection: Connection, prefix: str) -> Row[*tuple[Any, ...]] | None:
    column = tables.jobs.c.id
    beyond = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    some = selects.JOBS.where(column >= prefix, column < beyond).order_by(column).limit(_SHOWN)
    rows = connection.execute(some).all()
    if len(rows) > 1:
        raise ambiguous_job(prefix, [row.id for row in rows])
    return rows[0] if rows else None
