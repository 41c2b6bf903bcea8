"""Deletes jobs that ended long ago; the schema's cascades delete the rows that belong to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, delete, func, insert, select, tuple_

from holdfast.compiled.records import dump_json, load_json
from holdfast.compiled.workloads import arrays_needed_by, awaited_by, still_awaited
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.terms.workload_kinds import ARRAY
from holdfast.ports.requests import RequestKind
from holdfast.ports.retention import AwaitedWork, FinishedJob, LedDirectory
from holdfast.storage.sql import declared, tables
from holdfast.storage.sql.admission import AFTER, lock_specs
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.query import history_of, owners
from holdfast.storage.sql.rows.job_lists import STATE_UNINDEXED
from holdfast.storage.sql.submission import delete_unused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from holdfast.domain.workloads.base import Workload


_ENDED_STATES = tuple(sorted(state.value for state in JOB_TERMINAL))
_FORGET_HISTORY = delete(tables.history).where(history_of(bindparam("job", type_=Text), [*EntityKind]))
_MAY_NEED_TASKS = (tables.workloads.c.kind == ARRAY) & (
    tables.workloads.c.state.contains('"origins"') | tables.workloads.c.spec.contains(AFTER)
)
"""Most stored arrays have ended and take nothing over; reading them in every step would be a waste."""
_IN_PROGRESS = (tables.workloads.c.kind == ARRAY) & ~tables.workloads.c.state.contains('"status"')
"""Arrays that have not ended, as far as they can be read: text within stored JSON has no bare quotes."""
_WAITING_STATES = (JobState.WAITING.value, JobState.HELD.value)
_SPECS_PER_PART = 1000
_DISCARDS = declared.discards.c
_CLOCKS_DIFFER_S = 3600.0


class SqlRetentionStore(StorePart):
    """``RetentionStore``: what retention deletes."""

    def finished_jobs(self, *, after: int, limit: int) -> Sequence[FinishedJob]:
        jobs = tables.jobs
        query = (
            select(jobs.c.seq, jobs.c.id, jobs.c.updated_at).where(jobs.c.seq > after).order_by(jobs.c.seq).limit(limit)
        )
        with self._database.reading() as connection:
            rows = [
                row for state in _ENDED_STATES for row in connection.execute(query.where(jobs.c.state == state)).all()
            ]
        return [FinishedJob(*row) for row in sorted(rows)[:limit]]

    def count_finished(self) -> int:
        query = select(func.count()).select_from(tables.jobs).where(tables.jobs.c.state.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def expired_jobs(self, *, until: float, limit: int) -> Sequence[str]:
        jobs, expiring = tables.jobs, tables.workloads
        due = expiring.c.expires_at.is_not(None) & (expiring.c.expires_at <= until)
        query = select(jobs.c.id).join(expiring, expiring.c.id == jobs.c.id)
        query = query.where(due, STATE_UNINDEXED.in_(_ENDED_STATES))
        with self._database.reading() as connection:
            expired = connection.execute(query.order_by(expiring.c.expires_at, jobs.c.id).limit(limit))
            return expired.scalars().all()

    def waited_for(self) -> AwaitedWork:
        with self._database.reading() as connection:
            return _waited_for(connection)

    def delete_finished(
        self, job_ids: Sequence[str], *, waited: AwaitedWork | None = None, dry_run: bool = False
    ) -> int:
        with self._database.writing() as connection:
            lock_specs(connection)
            return sum(_delete(connection, ids, waited, dry_run=dry_run) for ids in chunks(job_ids))

    def files_to_discard(self, place: str, *, limit: int, after: str = "") -> Sequence[str]:
        query = select(_DISCARDS.job_id).where(_DISCARDS.job_id > after).order_by(_DISCARDS.job_id).limit(limit)
        with self._database.reading() as connection:
            by_place = [
                connection.execute(query.where(_DISCARDS.place == location)).scalars() for location in {place, ""}
            ]
            return sorted(set().union(*by_place))[:limit]

    def files_discarded(self, place: str, job_ids: Sequence[str]) -> None:
        here = delete(declared.discards).where(_DISCARDS.place.in_({place, ""}))
        with self._database.writing() as connection:
            for ids in chunks(job_ids):
                connection.execute(here.where(_DISCARDS.job_id.in_(ids)))

    def forget_places(self, *, left_before: float, limit: int) -> int:
        places, discards = declared.places, declared.discards
        left = select(places.c.id).where(places.c.left_at < left_before)
        some = select(_DISCARDS.place, _DISCARDS.job_id).where(_DISCARDS.place.in_(left)).limit(limit)
        with self._database.writing() as connection:
            jobs = connection.execute(
                delete(discards).where(tuple_(_DISCARDS.place, _DISCARDS.job_id).in_(some))
            ).rowcount
            if jobs < limit:
                connection.execute(delete(places).where(places.c.left_at < left_before))
        return jobs

    def delete_keys(self, *, before: float, limit: int) -> int:
        table = tables.idempotency
        old = select(table.c.key).where(table.c.created_at < before).limit(limit)
        with self._database.writing() as connection:
            return connection.execute(delete(table).where(table.c.key.in_(old))).rowcount

    def delete_audit(self, *, before: float, limit: int) -> int:
        table = tables.audit
        oldest = select(table.c.seq, table.c.at).order_by(table.c.seq).limit(limit).subquery()
        old = select(oldest.c.seq).where(oldest.c.at < before)
        with self._database.writing() as connection:
            return connection.execute(delete(table).where(table.c.seq.in_(old))).rowcount

    def specs_with(self, part: str) -> Iterator[str]:
        workloads, specs = tables.workloads.c, tables.specs.c
        for key, body in ((specs.digest, specs.body), (workloads.id, workloads.spec)):
            query = select(key, body).where(body.contains(part, autoescape=True)).order_by(key).limit(_SPECS_PER_PART)
            rows = self._rows(query)
            while rows:
                yield from (row[1] for row in rows)
                rows = self._rows(query.where(key > rows[-1][0])) if len(rows) == _SPECS_PER_PART else ()

    def _rows(self, query: Select[Any]) -> Sequence[Any]:
        with self._database.reading() as connection:
            return connection.execute(query).all()


def _delete(connection: Connection, ids: Sequence[str], waited: AwaitedWork | None, *, dry_run: bool) -> int:
    jobs = tables.jobs
    chosen = select(jobs.c.id, jobs.c.spec, jobs.c.submitted_at, jobs.c.updated_at, jobs.c.set_id).where(
        jobs.c.id.in_(ids), jobs.c.state.in_(_ENDED_STATES)
    )
    # The rows are locked before the requests are read: a retry locks the job, too.
    rows = connection.execute(chosen.with_for_update()).all()
    waited = waited or _waited_for(connection)
    needed = _asked_for(connection, ids) | waited.ids | _waited_for_since(connection, waited.last)
    if tasks := {row.id: row.set_id for row in rows if row.set_id is not None}:
        needed |= _tasks_among(tasks, owners(connection, _MAY_NEED_TASKS))
        needed |= _counted(connection, tasks)
    going = [row for row in rows if row.id not in needed]
    if dry_run or not going:
        return len(going)
    _remember_files(connection, going)
    gone = {row.id: row.spec for row in going}
    # Neither table has a foreign key to cascade by.
    connection.execute(_FORGET_HISTORY, [{"job": job_id} for job_id in gone])
    connection.execute(delete(tables.workloads).where(tables.workloads.c.id.in_(gone)))
    deleted = connection.execute(delete(jobs).where(jobs.c.id.in_(gone))).rowcount
    delete_unused(connection, gone.values())
    return deleted


def _remember_files(connection: Connection, jobs: Iterable[Row[*tuple[Any, ...]]]) -> None:
    """Record which data directories may hold files of the jobs."""
    places = [LedDirectory(*row) for row in connection.execute(select(declared.places))]
    rows = [
        {"place": place, "job_id": job.id}
        for job in jobs
        for place in _may_have_files(places, job.submitted_at, job.updated_at)
    ]
    connection.execute(insert(declared.discards), rows)


def _asked_for(connection: Connection, ids: Sequence[str]) -> set[str]:
    """Return the jobs that are to be retried."""
    table = tables.requests.c
    targets = [dump_json((job_id,)) for job_id in ids]
    query = select(table.job_ids).where(table.kind == RequestKind.RETRY.value, table.job_ids.in_(targets))
    return {load_json(text)[0] for text in connection.execute(query).scalars()}


def _counted(connection: Connection, tasks: Mapping[str, str]) -> set[str]:
    """Return the tasks of unfinished arrays, which a restarting controller counts."""
    workloads = tables.workloads.c
    going = set(
        connection.execute(select(workloads.id).where(workloads.id.in_({*tasks.values()}), _IN_PROGRESS)).scalars()
    )
    return {task for task, array in tasks.items() if array in going}


def _waited_for(connection: Connection) -> AwaitedWork:
    """Read what work waits for and has not been told about: a restarting controller looks it up.

    The last controller may have been killed between the commit of an end and the commits that tell those who wait.
    """
    last = connection.execute(select(func.max(tables.jobs.c.seq))).scalar_one() or 0
    awaited = _named(connection)
    for owner in owners(connection, tables.workloads.c.spec.contains(AFTER)):
        awaited.update(awaited_by(owner))
    return AwaitedWork(awaited, last)


def _waited_for_since(connection: Connection, last: int) -> set[str]:
    """Read what newer jobs wait for, and workloads that the controller has not accepted yet."""
    requests, awaited = tables.requests.c, _named(connection, tables.jobs.c.seq > last) | _named_again(connection)
    texts = connection.execute(select(requests.job_ids).where(requests.kind == RequestKind.SUBMIT.value)).scalars()
    for some in chunks([key for text in texts for key in load_json(text)]):
        for owner in owners(connection, tables.workloads.c.id.in_(some)):
            awaited.update(awaited_by(owner))
    return awaited


def _named(connection: Connection, *only: ColumnElement[bool]) -> set[str]:
    """Return what jobs wait for, or some of them."""
    jobs, specs, named = tables.jobs.c, tables.specs.c, set[str]()
    waiting = jobs.state.in_(_WAITING_STATES) & jobs.ready_at.is_(None) & specs.body.contains(AFTER)
    query = select(specs.body, jobs.met).join(tables.jobs, jobs.spec == specs.digest).where(waiting, *only)
    for body, met in connection.execute(query, execution_options={"yield_per": _SPECS_PER_PART}):
        named.update(still_awaited(body, met))
    return named


def _named_again(connection: Connection) -> set[str]:
    """Return what jobs about to be retried wait for: they check it again."""
    jobs, requests, named = tables.jobs.c, tables.requests.c, set[str]()
    texts = connection.execute(select(requests.job_ids).where(requests.kind == RequestKind.RETRY.value)).scalars()
    query = select(tables.specs.c.body).join(tables.jobs, jobs.spec == tables.specs.c.digest)
    for some in chunks([load_json(text)[0] for text in texts]):
        for body in connection.execute(query.where(jobs.id.in_(some), tables.specs.c.body.contains(AFTER))).scalars():
            named.update(still_awaited(body, None))
    return named


def _tasks_among(ids: Iterable[str], needing: Iterable[Workload]) -> set[str]:
    """Return the jobs that are tasks which unfinished arrays take over or wait for one by one."""
    arrays = {f"{key}-" for job in needing for key in arrays_needed_by(job)}
    return {key for key in ids if key.startswith(tuple(arrays))}


def _may_have_files(places: Iterable[LedDirectory], since: float, until: float) -> list[str]:
    """Return which data directories may hold files of a job of that period; an empty text means any."""
    return [
        place.id
        for place in places
        if place.came_at - _CLOCKS_DIFFER_S <= until
        and (place.left_at is None or since <= place.left_at + _CLOCKS_DIFFER_S)
    ] or [""]
