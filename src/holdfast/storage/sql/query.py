"""Readers' queries, and the parts of them that other modules of the store share.

Every method is a transaction of its own, so every answer is a consistent snapshot.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Text, and_, bindparam, func, literal, or_, select

from holdfast.compiled.records import dump_json, storable
from holdfast.domain.job import JOB_TERMINAL, JobState
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.suggestion import closest
from holdfast.domain.workloads.base import Owner, Quarantined, Workload
from holdfast.errors import NotFound
from holdfast.ports.names import ListedName, NamedJob
from holdfast.ports.overview import StateOfJob
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Listed
from holdfast.ports.workloads import EVERY, AskedOf, Unreadable, leave_out
from holdfast.storage.sql import codec, declared, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.damage import left_of_job, left_of_owner, refuse, sound, state_left
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import begins_with, in_group, seen_by
from holdfast.storage.sql.rows.job_lists import JOBS, STATE_UNINDEXED, rows_of
from holdfast.storage.sql.rows.requests import read_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.errors import HoldfastError, Internal
    from holdfast.ports.store import JobFilter
    from holdfast.ports.workloads import OnUnreadable, W, WorkloadFilter

ATTEMPTS = select(tables.attempts).order_by(tables.attempts.c.job_id, tables.attempts.c.number)
RUNS = select(tables.runs).order_by(
    tables.runs.c.job_id, tables.runs.c.attempt, tables.runs.c.dispatch, tables.runs.c.rank
)
ACTIVE_STATES = tuple(sorted(state.value for state in JobState if state not in JOB_TERMINAL))

_LAST_CHARACTER = "\U0010ffff"
_SHOWN = 5
"""How many candidates the error about an ambiguous prefix lists."""
_TABLE = tables.workloads
_NAMES = declared.names
_IN_ORDER = select(_TABLE).order_by(_TABLE.c.name, _TABLE.c.id)
_GOING_ON = _IN_ORDER.join(tables.jobs, tables.jobs.c.id == _TABLE.c.id, isouter=True).where(
    or_(tables.jobs.c.id.is_(None), STATE_UNINDEXED.in_(ACTIVE_STATES))
)


_JOB = bindparam("of_job", type_=Text())
_ATTEMPTS_OF = ATTEMPTS.where(tables.attempts.c.job_id == _JOB)
_JOB_OF = JOBS.where(tables.jobs.c.id == _JOB)
_RUNS_OF = RUNS.where(tables.runs.c.job_id == _JOB)
_RUN = select(tables.runs).where(tables.runs.c.uid == bindparam("of_uid", type_=Text()))
_NODES = select(tables.nodes).order_by(tables.nodes.c.executor, tables.nodes.c.name)
_QUARANTINED = select(tables.quarantine)
_MOST_NEAR = 300
_SHORTEST_PREFIX = 6


def history_of(
    job_id: str | ColumnElement[str], kinds: Sequence[EntityKind] = (EntityKind.ATTEMPT,)
) -> ColumnElement[bool]:
    """Match the history of a job's attempts, or other parts; their ids begin with the job's id and a slash."""
    history, job = tables.history, literal(job_id) if isinstance(job_id, str) else job_id
    after = job.concat("0")  # The character after the slash.
    # Not ``IN``, whose list would be expanded for each of many jobs.
    of_kinds = or_(*(history.c.kind == kind.value for kind in kinds))
    return of_kinds & (history.c.id > job.concat("/")) & (history.c.id < after)


def read_quarantined(connection: Connection) -> dict[str, Quarantined]:
    """Read which workloads are quarantined, and why."""
    return {row.id: Quarantined(*row) for row in connection.execute(_QUARANTINED)}


def names_like(connection: Connection, prefix: str, *, limit: int, is_sqlite: bool) -> Sequence[str]:
    """List the names with a prefix, of jobs outside job sets and arrays: each once, in order."""
    name, begun = tables.jobs.c.name, storable(prefix)
    begins = name.startswith(begun, autoescape=True)
    if is_sqlite:  # LIKE ignores case in SQLite and so does not use the index.
        begins = and_(name >= begun, name < f"{begun}{_LAST_CHARACTER}")
    query = select(name).where(begins, tables.jobs.c.set_id.is_(None)).distinct().order_by(name).limit(limit)
    return connection.execute(query).scalars().all()


def going_on(connection: Connection) -> tuple[dict[str, Workload], dict[str, tuple[str, HoldfastError]]]:
    """Read the workloads of unfinished jobs and those without a job, and why some cannot be read."""
    unreadable: dict[str, tuple[str, HoldfastError]] = {}
    rows = connection.execute(_GOING_ON)
    read = sound(rows, codec.read_workload, lambda row, why: unreadable.update({row.id: (row.kind, why)}))
    return {workload.id: workload for workload in read}, unreadable


def owners(connection: Connection, *only: ColumnElement[bool]) -> Iterator[Owner]:
    """Yield the workloads that own jobs, or some of them; unreadable ones are left out."""
    query = select(_TABLE).where(_TABLE.c.name.is_not(None), *only)
    for owner in sound(connection.execute(query), codec.read_workload):
        if isinstance(owner, Owner):
            yield owner


class SqlQueryStore(StorePart):
    """``QueryStore``, ``NameStore`` and ``WorkloadQueries``: the readers' part of the store."""

    def job(self, reference: str, *, seen: Seen | None = None) -> Job:
        jobs, text = tables.jobs, storable(reference)
        visible = JOBS if seen is None else JOBS.where(seen_by(seen))
        with self._database.reading() as connection:
            query = _JOB_OF if seen is None else visible.where(jobs.c.id == text)
            row = connection.execute(query, {"of_job": text} if seen is None else {}).first()
            if row is None:
                newest = visible.where(jobs.c.name == text).order_by(jobs.c.seq.desc()).limit(1)
                row = connection.execute(newest).first()
            if row is None and len(text) >= _SHORTEST_PREFIX and text.isascii():
                row = _find_by_prefix(connection, visible, text)
            if row is None and "@" in text and text.isascii():
                name, _, prefix = text.rpartition("@")
                named = visible.where(jobs.c.name == name)
                row = _find_by_prefix(connection, named, prefix) if name and prefix else None
        if row is None:
            raise _no_such_job(reference, self._near(text) if seen is None else ())
        return left_of_job(codec.Reader(), row)

    def _near(self, reference: str) -> Sequence[str]:
        """List similar names for a hint: those with the same first letter."""
        with self._database.reading() as connection:
            return names_like(connection, reference[:1], limit=_MOST_NEAR, is_sqlite=self._database.is_sqlite)

    def jobs(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Sequence[Job]:
        return self.listed(where, after=after, limit=limit).jobs

    def listed(self, where: JobFilter, *, after: int = 0, limit: int | None = None) -> Listed:
        with self._database.reading() as connection:
            rows = rows_of(connection, where, after, limit)
            quarantined = read_quarantined(connection) if any(row.left_alone is not None for row in rows) else {}
        read = codec.Reader()
        return Listed([left_of_job(read, row) for row in rows], quarantined)

    def job_states(self, job_ids: Sequence[str]) -> Mapping[str, StateOfJob]:
        jobs, states = tables.jobs.c, dict[str, StateOfJob]()
        query = select(jobs.id, jobs.state, jobs.started_at.is_not(None))
        with self._database.reading() as connection:
            for ids in chunks([*map(storable, job_ids)]):
                rows = connection.execute(query.where(jobs.id.in_(ids)))
                states.update((job_id, StateOfJob(state_left(state), bool(started))) for job_id, state, started in rows)
        return states

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        query = select(tables.jobs.c.state, func.count()).group_by(tables.jobs.c.state)
        if owner is not None:
            own = select(STATE_UNINDEXED.label("state")).where(tables.jobs.c.set_id == owner).subquery()
            query = select(own.c.state, func.count()).group_by(own.c.state)
        with self._database.reading() as connection:
            return {state: int(count) for state, count in connection.execute(query)}

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        read = codec.Reader()
        return [*sound(self._rows(_ATTEMPTS_OF, of_job=job_id), read.attempt)]

    def runs(self, job_id: str) -> Sequence[Run]:
        read = codec.Reader()
        return [*sound(self._rows(_RUNS_OF, of_job=job_id), read.run)]

    def run(self, uid: str) -> Run | None:
        read = codec.Reader()
        return next(iter(sound(self._rows(_RUN, of_uid=storable(uid)), read.run)), None)

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        read = codec.Reader()
        rows = self._rows(select(tables.history).where(history_of(job_id)))
        return sorted(sound(rows, read.history), key=attrgetter("attempt", "seq"))

    def nodes(self) -> Sequence[Node]:
        read = codec.Reader()
        return [*sound(self._rows(_NODES), read.node)]

    def running(self) -> Iterable[Run]:
        read = codec.Reader()
        return [*sound(self._rows(RUNS.where(tables.RUN_ACTIVE)), read.run)]

    def quarantined(self) -> Mapping[str, Quarantined]:
        with self._database.reading() as connection:
            return read_quarantined(connection)

    def named(self, names: Sequence[str]) -> Mapping[str, NamedJob]:
        named_jobs: dict[str, NamedJob] = {}
        with self._database.reading() as connection:
            for some in chunks([storable(name) for name in names]):
                rows = connection.execute(select(_NAMES).where(_NAMES.c.name.in_(some)))
                named_jobs.update({row.name: NamedJob(*row) for row in rows})
        return named_jobs

    def names_of(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        names: dict[str, str] = {}
        with self._database.reading() as connection:
            for some in chunks(job_ids):
                rows = connection.execute(select(_NAMES.c.job_id, _NAMES.c.name).where(_NAMES.c.job_id.in_(some)))
                names.update({row.job_id: row.name for row in rows})
        return names

    def beginning(self, prefix: str, *, seen: Seen | None = None) -> Sequence[ListedName]:
        jobs = tables.jobs
        query = select(_NAMES.c.name, jobs.c.id, jobs.c.seq, STATE_UNINDEXED).join(jobs, jobs.c.id == _NAMES.c.job_id)
        query = query.where(begins_with(_NAMES.c.name, prefix))
        if seen is not None:
            query = query.where(seen_by(seen))
        rows = self._rows(query.order_by(jobs.c.seq))
        return [ListedName(name, job_id, seq, state_left(state)) for name, job_id, seq, state in rows]

    def workload(self, kind: type[W], reference: str) -> W:
        with self._database.reading() as connection:
            return _workload(connection, kind, reference)

    def left_of(self, kind: type[W], reference: str) -> W:
        with self._database.reading() as connection:
            return _workload(connection, kind, reference, left_of_owner)

    def workloads(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        unreadable: OnUnreadable = leave_out,
    ) -> Sequence[W]:
        with self._database.reading() as connection:
            return _page(connection, kind, where, after, limit, unreadable)

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        workloads_read: list[W] = []
        with self._database.reading() as connection:
            for some in chunks([*{*ids}]):
                workloads_read += _workloads(connection, kind, select(_TABLE).where(_TABLE.c.id.in_(some)))
        return {workload.id: workload for workload in workloads_read}

    def reran(self, root: str) -> Mapping[int, str]:
        table = tables.reruns
        query = select(table.c.task, table.c.array).where(table.c.root == storable(root))
        return {row.task: row.array for row in self._rows(query.order_by(table.c.task, table.c.number))}

    def asked_of(self, kind: type[W], reference: str) -> AskedOf[W]:
        with self._database.reading() as connection:
            (pending,) = _asked_of(connection, [_workload(connection, kind, reference)])
        return pending

    def all_asked_of(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        unreadable: OnUnreadable = leave_out,
    ) -> Sequence[AskedOf[W]]:
        with self._database.reading() as connection:
            return _asked_of(connection, _page(connection, kind, where, after, limit, unreadable))

    def children_of(self, owner: str) -> Sequence[Job]:
        read = codec.Reader()
        query = JOBS.where(tables.jobs.c.set_id == owner).order_by(tables.jobs.c.seq)
        return [*sound(self._rows(query), read.job, refuse)]

    def _rows(self, query: Select[Any], **values: str) -> Sequence[Row[*tuple[Any, ...]]]:
        with self._database.reading() as connection:
            return connection.execute(query, values).all()


def _find_by_prefix(connection: Connection, visible: Select[Any], prefix: str) -> Row[*tuple[Any, ...]] | None:
    column = tables.jobs.c.id
    beyond = prefix[:-1] + chr(ord(prefix[-1]) + 1)
    some = visible.where(column >= prefix, column < beyond).order_by(column).limit(_SHOWN)
    rows = connection.execute(some).all()
    if len(rows) > 1:
        ids = ", ".join(row.id for row in rows)
        message = f"more than one job id begins with {prefix!r}: {ids}"
        raise NotFound(message, hint="give more of the id")
    return rows[0] if rows else None


def _workloads(
    connection: Connection,
    kind: type[W],
    query: Select[Any],
    read: Callable[[Sequence[Any]], Workload] = codec.read_workload,
) -> list[W]:
    rows = connection.execute(query if kind is Workload else query.where(_TABLE.c.kind == kind.kind))
    return [cast("W", read(row)) for row in rows]


def _workload(
    connection: Connection,
    kind: type[W],
    reference: str,
    read: Callable[[Sequence[Any]], Workload] = codec.read_workload,
) -> W:
    text = storable(reference)
    query = select(_TABLE).where(or_(_TABLE.c.id == text, _TABLE.c.name == text))
    candidates = _workloads(connection, kind, query, read)
    if not candidates:
        message = f"no {kind.noun} has the id or name {reference!r}"
        raise NotFound(message, hint=f"list {kind.noun}s with: holdfast get {kind.kind}s")
    return next((candidate for candidate in candidates if candidate.id == text), candidates[0])


def _page(
    connection: Connection,
    kind: type[W],
    where: WorkloadFilter,
    after: str,
    limit: int | None,
    unreadable: OnUnreadable,
) -> list[W]:
    query = _IN_ORDER.where(_TABLE.c.kind == kind.kind).limit(limit)
    if where.submitted_by is not None:
        query = query.where(_TABLE.c.submitted_by == storable(where.submitted_by))
    if where.group is not None:
        query = query.where(in_group(_TABLE.c.group_name, where.group))
    if where.seen is not None:
        query = query.where(seen_by(where.seen, _TABLE))
    page: list[W] = []
    while limit is None or len(page) < limit:
        rows = connection.execute(query.where(_TABLE.c.name > storable(after))).all()
        damaged = partial(_tell_unreadable, unreadable)
        page += [cast("W", workload) for workload in sound(rows, codec.read_workload, damaged)]
        if limit is None or len(rows) < limit:
            break
        after = rows[-1].name  # Damaged rows do not end the list.
    return page[:limit]


def _tell_unreadable(unreadable: OnUnreadable, row: Row[*tuple[Any, ...]], why: Internal) -> None:
    unreadable(Unreadable(row.id, row.name, why.message))


def _asked_of(connection: Connection, workloads: Sequence[W]) -> list[AskedOf[W]]:
    """Add the pending requests of workloads; each such request concerns one."""
    table, by_target = tables.requests, defaultdict[str, list[Request]](list)
    for ids in chunks([dump_json((workload.id,)) for workload in workloads]):
        query = select(table).where(table.c.kind != RequestKind.SUBMIT, table.c.job_ids.in_(ids)).order_by(table.c.id)
        for request in sound(connection.execute(query), read_request):
            by_target[request.targets[0]].append(request)
    return [AskedOf(workload, by_target[workload.id]) for workload in workloads]


def _no_such_job(reference: str, names: Sequence[str] = ()) -> NotFound:
    """Return the error of an unknown job, with the closest name as a hint."""
    hint = closest(reference, names) or "list jobs with: holdfast get jobs"
    return NotFound(f"no job has the id or name {reference!r}", hint=hint)
