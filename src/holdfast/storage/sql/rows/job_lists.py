"""Lists of jobs by filter: one query per filter, or one per state, each built once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, or_, select

from holdfast.compiled.records import storable
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.rows.conditions import in_group, seen_by

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.ports.store import JobFilter

JOBS = select(*tables.jobs.columns, tables.specs.c.body).join(tables.specs)
"""Columns as ``codec.Reader.job`` reads them."""
STATE_UNINDEXED = tables.jobs.c.state.concat("")
"""A job's state without the use of its index, for queries that match few jobs in any state."""
_LISTED = JOBS.add_columns(tables.quarantine.c.id.label("left_alone")).join(
    tables.quarantine, tables.quarantine.c.id == tables.jobs.c.id, isouter=True
)
_MOST_KEPT = 256


def rows_of(connection: Connection, where: JobFilter, after: int, limit: int | None) -> Sequence[Row[*tuple[Any, ...]]]:
    """Read rows of jobs in order of submission from ``seq > after``, each with ``left_alone``.

    ``left_alone`` is ``None`` for a job that is not quarantined.
    """
    make = _queries.__wrapped__ if where.ids is not None else _queries  # Lists of ids differ each time and are long.
    parameters = {"after": after} if limit is None else {"after": after, "most": limit}
    queries = make(where, limited=limit is not None)
    rows = [row for query in queries for row in connection.execute(query, parameters).all()]
    if len(queries) > 1:
        rows.sort(key=lambda row: row.seq)
    return rows[:limit]


@lru_cache(maxsize=_MOST_KEPT)
def _queries(where: JobFilter, *, limited: bool) -> tuple[Select[Any], ...]:
    """Build the queries of a filter; their parameters are ``after`` and, with a limit, ``most``."""
    base = _filtered(where).where(tables.jobs.c.seq > bindparam("after")).order_by(tables.jobs.c.seq)
    return tuple(_by_state(base.limit(bindparam("most")) if limited else base, where))


def _by_state(base: Select[Any], where: JobFilter) -> list[Select[Any]]:
    """Build one query per state: only then does the index yield them in order, so that a limit stops early."""
    if where.states is None:
        return [base]
    if where.job_set is not None:  # A set has few jobs, and its own index yields them in order.
        return [base.where(STATE_UNINDEXED.in_(sorted(where.states)))]
    return [base.where(tables.jobs.c.state == state.value) for state in where.states]


def _filtered(where: JobFilter) -> Select[Any]:
    jobs, labels = tables.jobs, tables.job_labels
    query = _LISTED
    equal = ((jobs.c.queue, where.queue), (jobs.c.name, where.name), (jobs.c.set_id, where.job_set))
    query = query.where(*(column == expected for column, expected in equal if expected is not None))
    if where.submitted_by is not None:
        query = query.where(jobs.c.submitted_by == storable(where.submitted_by))
    if where.group is not None:
        query = query.where(in_group(jobs.c.group_name, where.group))
    if where.named is not None:
        names = declared.names.c
        query = query.where(jobs.c.id.in_(select(names.job_id).where(in_group(names.name, where.named))))
    if where.seen is not None:
        query = query.where(seen_by(where.seen))
    if where.ids is not None:
        query = query.where(jobs.c.id.in_(sorted(map(storable, where.ids))))
    if not where.tasks:
        query = query.where(or_(jobs.c.replicated_job.is_(None), jobs.c.replicated_job != ""))
    if where.reasoned:
        query = query.where(jobs.c.reason != "")
    if where.quarantined:
        query = query.where(tables.quarantine.c.id.is_not(None))
    for key, value in where.labels:
        query = query.where(jobs.c.id.in_(select(labels.c.job_id).where(labels.c.key == key, labels.c.value == value)))
    return query
