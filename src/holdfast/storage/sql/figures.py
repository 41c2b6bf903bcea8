"""Figures over many jobs, one aggregating query each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import JSON, and_, case, cast, func, or_, select, union_all

from holdfast.domain.failure import DELIBERATE, EndedBy
from holdfast.domain.lifecycle import Ending
from holdfast.ports.overview import AttemptFigures, FailureFigures, Recoveries, Share, UsageFigures
from holdfast.storage.sql import codec, tables
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import seen_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, FromClause, Select, Table

    from holdfast.ports.overview import FigureScope

_JOBS, _LABELS, _ATTEMPTS = tables.jobs.c, tables.job_labels.c, tables.attempts.c
_RUNS = tables.runs.c
_TOLD = ("cause", "category", "subcategory", "node")


class SqlFigureStore(StorePart):
    """``OverviewStore``: the aggregated figures."""

    def job_figures(self, scope: FigureScope) -> Mapping[str, int]:
        query = select(_JOBS.state, func.count()).where(_lasts(tables.jobs, scope)).group_by(_JOBS.state)
        with self._database.reading() as connection:
            return {state: int(count) for state, count in connection.execute(_jobs_of(query, scope))}

    def wall_time(self, scope: FigureScope) -> float:
        query = select(func.sum(_span(tables.jobs, scope))).where(_lasts(tables.jobs, scope))
        with self._database.reading() as connection:
            return float(connection.execute(_jobs_of(query, scope)).scalar() or 0.0)

    def attempt_figures(self, scope: FigureScope) -> Mapping[str | None, AttemptFigures]:
        earlier = tables.attempts.alias("earlier")
        follows = and_(earlier.c.job_id == _ATTEMPTS.job_id, earlier.c.number == _ATTEMPTS.number - 1)
        retried = func.sum(case((self._has_failed(earlier), 1), else_=0))
        query = select(_ATTEMPTS.ending, func.count(), retried, func.sum(_span(tables.attempts, scope)))
        query = query.select_from(tables.attempts.join(earlier, follows, isouter=True))
        query = query.where(_lasts(tables.attempts, scope), _of_jobs(tables.attempts, scope))
        with self._database.reading() as connection:
            rows = connection.execute(query.group_by(_ATTEMPTS.ending)).all()
        return {row[0]: AttemptFigures(int(row[1]), int(row[2]), float(row[3] or 0.0)) for row in rows}

    def failure_figures(self, scope: FigureScope) -> Sequence[FailureFigures]:
        lost = union_all(*(self._failures(table, scope) for table in (tables.attempts, tables.runs))).subquery()
        columns = [lost.c[name] for name in _TOLD]
        query = select(*columns, func.count().label("times"), func.sum(lost.c.lost_s)).group_by(*columns)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(func.count().desc(), *columns)).all()
        return [FailureFigures(*row[:4], int(row[4]), float(row[5] or 0.0)) for row in rows]

    def _failures(self, table: Table, scope: FigureScope) -> Select[Any]:
        columns: list[Any] = [func.coalesce(self._said(table.c.failure, name), "").label(name) for name in _TOLD]
        query = select(*columns, _span(table, scope).label("lost_s"))
        return query.where(self._has_failed(table), _ended(table, scope), _of_jobs(table, scope))

    def _has_failed(self, table: FromClause) -> ColumnElement[bool]:
        """Match attempts that failed and were not stopped on request."""
        ended_by = func.coalesce(self._said(table.c.failure, "ended_by"), EndedBy.ITSELF.value)
        return and_(table.c.failure.is_not(None), ended_by.not_in(sorted(DELIBERATE)))

    def _said(self, column: ColumnElement[str], name: str) -> ColumnElement[str]:
        """Select a field of a stored record."""
        if self._database.is_sqlite:
            return func.json_extract(column, f"$.{name}")
        return func.json_extract_path_text(cast(column, JSON), name)

    def usage_figures(self, scope: FigureScope, share: Share, label: str = "") -> Sequence[UsageFigures]:
        runs, of_attempt = tables.runs, and_(_ATTEMPTS.job_id == _RUNS.job_id, _ATTEMPTS.number == _RUNS.attempt)
        joined = runs.join(tables.jobs, _JOBS.id == _RUNS.job_id).join(tables.attempts, of_attempt)
        if share is Share.LABEL:
            named = and_(_LABELS.job_id == _JOBS.id, _LABELS.key == label)
            joined = joined.join(tables.specs).join(tables.job_labels, named, isouter=True)
        failed = or_(_ATTEMPTS.ending == str(Ending.FAILED), _RUNS.failure.is_not(None))
        key = [
            func.coalesce(self._shared(share, label), "").label("name"),
            *(_RUNS.cpu_m, _RUNS.memory, _RUNS.gpu, _RUNS.named),
            case((failed, 1), else_=0).label("wasted"),
        ]
        runs_of_jobs = select(*key, _span(runs, scope).label("ran_s")).select_from(joined)
        runs_of_jobs = runs_of_jobs.where(_lasts(runs, scope), or_(_RUNS.ended_at.is_not(None), tables.RUN_ACTIVE))
        used = _jobs_of(runs_of_jobs.where(_RUNS.started_at.is_not(None)), scope).subquery()
        same = used.c["name", "cpu_m", "memory", "gpu", "named", "wasted"]
        query = select(*same, func.count(), func.sum(used.c.ran_s)).group_by(*same).order_by(*same)
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [
            UsageFigures(name, codec.read_amount(*amount), bool(wasted), int(count), float(ran_s or 0.0))
            for name, *amount, wasted, count, ran_s in rows
        ]

    def _shared(self, share: Share, label: str) -> ColumnElement[str]:
        """Return the column that shares are grouped by; labels of an array's tasks are only in their specifications."""
        if share is not Share.LABEL:
            return {Share.USER: _JOBS.submitted_by, Share.QUEUE: _JOBS.queue, Share.GROUP: _JOBS.group_name}[share]
        body, path = tables.specs.c.body, ("spec", "labels", label)
        if self._database.is_sqlite:
            written = func.json_extract(body, f'$.spec.labels."{label}"')
        else:
            written = func.json_extract_path_text(cast(body, JSON), *path)
        return case((_JOBS.replicated_job == "", written), else_=_LABELS.value)

    def recoveries(self, scope: FigureScope) -> Recoveries:
        later = tables.attempts.alias("later")
        follows = and_(later.c.job_id == _ATTEMPTS.job_id, later.c.number == _ATTEMPTS.number + 1)
        query = (
            select(func.count(), func.avg(later.c.started_at - _ATTEMPTS.ended_at))
            .select_from(tables.attempts.join(later, follows))
            .where(self._has_failed(tables.attempts), _ATTEMPTS.ended_at.is_not(None))
            .where(later.c.started_at >= scope.since)
            .where(_of_jobs(tables.attempts, scope))
        )
        with self._database.reading() as connection:
            count, mean_s = connection.execute(query).one()
        return Recoveries(int(count), None if mean_s is None else float(mean_s))


def _lasts(table: Table, scope: FigureScope) -> ColumnElement[bool]:
    return or_(table.c.ended_at.is_(None), table.c.ended_at >= scope.since)


def _ended(table: Table, scope: FigureScope) -> ColumnElement[bool]:
    return table.c.ended_at >= scope.since


def _span(table: Table, scope: FigureScope) -> ColumnElement[float]:
    """Select how long something ran within the period; 0 if it never started."""
    began = case((table.c.started_at > scope.since, table.c.started_at), else_=scope.since)
    ended = func.coalesce(table.c.ended_at, scope.until)
    ran = case((ended > began, ended - began), else_=0.0)
    return case((table.c.started_at.is_(None), 0.0), else_=ran)


def _jobs_of(query: Select[Any], scope: FigureScope) -> Select[Any]:
    if scope.queue is not None:
        query = query.where(_JOBS.queue == scope.queue)
    if scope.seen is not None:
        query = query.where(seen_by(scope.seen))
    for key, value in scope.labels:
        named = select(_LABELS.job_id).where(_LABELS.key == key, _LABELS.value == value)
        query = query.where(_JOBS.id.in_(named))
    return query


def _of_jobs(table: Table, scope: FigureScope) -> ColumnElement[bool]:
    """Match what belongs to the selected jobs; without a filter everything matches."""
    if scope.queue is None and scope.seen is None and not scope.labels:
        return table.c.job_id.is_not(None)
    return table.c.job_id.in_(_jobs_of(select(_JOBS.id), scope))
