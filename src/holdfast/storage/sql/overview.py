"""Queries for lists of jobs: each runs once for the whole list."""

from __future__ import annotations

from collections import defaultdict
from operator import attrgetter
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, select

from holdfast.compiled.records import storable
from holdfast.domain.job import JobState
from holdfast.ports.overview import MOST_RANKS, Latest
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.damage import left_of_job, sound
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.query import ACTIVE_STATES, ATTEMPTS, RUNS, names_like
from holdfast.storage.sql.rows.conditions import seen_by
from holdfast.storage.sql.rows.job_lists import JOBS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import Connection

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, Run

_JOBS, _LABELS, _ATTEMPTS, _RUNS = tables.jobs.c, tables.job_labels.c, tables.attempts.c, tables.runs.c
_LAST_ATTEMPTS = ATTEMPTS.join(tables.jobs, and_(_JOBS.id == _ATTEMPTS.job_id, _JOBS.attempt == _ATTEMPTS.number))
_RUNS_OF_LAST = RUNS.join(tables.jobs, and_(_JOBS.id == _RUNS.job_id, _JOBS.attempt == _RUNS.attempt))
_LAST_RUNS = _RUNS_OF_LAST.where(_RUNS.rank < MOST_RANKS).order_by(_RUNS.generation, _RUNS.status_since)


class SqlOverviewStore(StorePart):
    """``OverviewStore``: queries for lists of jobs."""

    def queue_load(self, *, seen: Seen | None = None) -> Mapping[tuple[str, JobState], int]:
        query = select(_JOBS.queue, _JOBS.state, func.count()).where(_JOBS.state.in_(ACTIVE_STATES))
        if seen is not None:
            query = query.where(seen_by(seen))
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(_JOBS.queue, _JOBS.state)).all()
        return {(queue, JobState(state)): int(count) for queue, state, count in rows}

    def job_names(self, prefix: str, *, limit: int) -> Sequence[str]:
        with self._database.reading() as connection:
            return names_like(connection, prefix, limit=limit, is_sqlite=self._database.is_sqlite)

    def newest(
        self, states: Collection[JobState], *, limit: int, named: str = "", seen: Seen | None = None
    ) -> Sequence[Job]:
        read, jobs = codec.Reader(), []
        query = JOBS.order_by(_JOBS.seq.desc()).limit(limit)
        if seen is not None:
            query = query.where(seen_by(seen))
        if named:
            query = query.where(_JOBS.name.icontains(storable(named), autoescape=True))
        with self._database.reading() as connection:
            for state in states:  # One query per state, so that the index yields each in order.
                jobs += [left_of_job(read, row) for row in connection.execute(query.where(_JOBS.state == state))]
        return sorted(jobs, key=attrgetter("seq"), reverse=True)[:limit]

    def latest_of(self, job_ids: Sequence[str]) -> Mapping[str, Latest]:
        latest: dict[str, Latest] = {}
        with self._database.reading() as connection:
            for ids in chunks([*map(storable, job_ids)]):
                latest |= _latest(connection, ids)
        return latest

    def attempts_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        read = codec.Reader()
        attempts: dict[str, list[Attempt]] = defaultdict(list)
        with self._database.reading() as connection:
            for ids in chunks(job_ids):
                for attempt in sound(connection.execute(ATTEMPTS.where(_ATTEMPTS.job_id.in_(ids))), read.attempt):
                    attempts[attempt.job_id].append(attempt)
        return attempts

    def last_runs_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Run]]:
        read = codec.Reader()
        runs: dict[str, list[Run]] = defaultdict(list)
        with self._database.reading() as connection:
            for ids in chunks(job_ids):
                for run in sound(connection.execute(_RUNS_OF_LAST.where(_JOBS.id.in_(ids))), read.run):
                    runs[run.job_id].append(run)
        return runs


def _latest(connection: Connection, ids: Sequence[str]) -> dict[str, Latest]:
    read = codec.Reader()
    labels: dict[str, dict[str, str]] = defaultdict(dict)
    for job_id, key, value in connection.execute(select(tables.job_labels).where(_LABELS.job_id.in_(ids))):
        labels[job_id][key] = value
    attempts: dict[str, Attempt] = {}
    for attempt in sound(connection.execute(_LAST_ATTEMPTS.where(_JOBS.id.in_(ids))), read.attempt):
        attempts[attempt.job_id] = attempt
    runs: dict[str, dict[int, Run]] = defaultdict(dict)
    for run in sound(connection.execute(_LAST_RUNS.where(_JOBS.id.in_(ids))), read.run):
        runs[run.job_id][run.rank] = run
    existing = connection.execute(select(_JOBS.id).where(_JOBS.id.in_(ids))).scalars()
    return {
        job_id: Latest(labels[job_id], attempts.get(job_id), [run for _, run in sorted(runs[job_id].items())])
        for job_id in existing
    }
