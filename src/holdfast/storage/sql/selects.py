"""Queries that several parts of the store share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import literal, select

from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.workloads.base import Quarantined
from holdfast.storage.sql import tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection

JOBS = select(*tables.jobs.columns, tables.specs.c.body).join(tables.specs)
"""Rows as ``codec.Reader.job`` reads them."""
ATTEMPTS = select(tables.attempts).order_by(tables.attempts.c.job_id, tables.attempts.c.number)
RUNS = select(tables.runs).order_by(
    tables.runs.c.job_id, tables.runs.c.attempt, tables.runs.c.dispatch, tables.runs.c.rank
)
ACTIVE_STATES = tuple(sorted(state.value for state in JobState if state not in JOB_TERMINAL))
STATE_UNINDEXED = tables.jobs.c.state.concat("")
"""A job's state where its index must not be used: in queries that few jobs match, whatever their state."""

_IDS_PER_QUERY = 1000


def history_of(job_id: str | ColumnElement[str]) -> ColumnElement[bool]:
    """Match the history of a job's attempts, whose ids begin with the job's and a slash."""
    history, job = tables.history, literal(job_id) if isinstance(job_id, str) else job_id
    after = job.concat("0")  # what follows the slash
    return (history.c.kind == EntityKind.ATTEMPT.value) & (history.c.id > job.concat("/")) & (history.c.id < after)


def quarantined(connection: Connection) -> dict[str, Quarantined]:
    """Read which workloads are quarantined."""
    return {row.id: Quarantined(*row) for row in connection.execute(select(tables.quarantine))}


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Split ids into chunks that fit one statement."""
    for start in range(0, len(ids), _IDS_PER_QUERY):
        yield ids[start : start + _IDS_PER_QUERY]
