"""Reads and commits lifecycle state for the controller, its only writer: one transaction per tick."""

from __future__ import annotations

import logging
import math
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Text, and_, bindparam, cast, func, insert, select, text, union, union_all, update

from holdfast.compiled.records import storable
from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.record import astuple
from holdfast.domain.terms.workload_kinds import UNREAD
from holdfast.domain.workloads.base import Owner
from holdfast.errors import Conflict, Internal, NotLeader, Refused
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import LiveSession, News, Snapshot
from holdfast.ports.workloads import Left
from holdfast.storage.sql import codec, declared, tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.damage import UNREADABLE, left_of_job, left_of_owner, refuse, sound
from holdfast.storage.sql.logs import append_audited, append_events, recent_losses, set_log_row
from holdfast.storage.sql.notifications import notification_row
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.query import (
    ACTIVE_STATES,
    ATTEMPTS,
    RUNS,
    going_on,
    read_quarantined,
)
from holdfast.storage.sql.rows.job_lists import JOBS
from holdfast.storage.sql.rows.requests import read_request
from holdfast.storage.sql.rows.sessions import end_sessions
from holdfast.storage.sql.submission import append_jobs, change_specs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Select

    from holdfast.domain.access import Principal
    from holdfast.domain.job import Job, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.domain.sessions.model import Kernel
    from holdfast.domain.workloads.base import Workload
    from holdfast.errors import HoldfastError
    from holdfast.ports.store import Changes, RunsAs
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database

T = TypeVar("T")
_log = logging.getLogger(__name__)
_ROWS_AT_A_TIME = 5000

_ACTIVE_JOBS = JOBS.where(tables.jobs.c.state.in_(ACTIVE_STATES))
_ACTIVE_ATTEMPTS = ATTEMPTS.where(tables.ATTEMPT_ACTIVE)
_CURRENT_RUNS = RUNS.join(
    tables.attempts,
    (tables.attempts.c.job_id == tables.runs.c.job_id) & (tables.attempts.c.number == tables.runs.c.attempt),
).where(
    # Repeating the subquery keeps SQLite from scanning every run there ever was.
    tables.runs.c.job_id.in_(select(tables.attempts.c.job_id).where(tables.ATTEMPT_ACTIVE)),
    tables.ATTEMPT_ACTIVE,
    (tables.attempts.c.dispatch == tables.runs.c.dispatch) | tables.RUN_ACTIVE,
)
_STATES = sorted(state.value for state in JobState)
_state = tables.jobs.c.state
_BETWEEN = (and_(_state > state, _state < following) for state, following in pairwise(_STATES))
_UNKNOWN_STATES = union_all(
    # Searches range by range, which the index answers; otherwise every job there ever was is read.
    *(select(tables.jobs.c.id, _state).where(among) for among in (_state < _STATES[0], *_BETWEEN, _state > _STATES[-1]))
)
_HELD = select(
    declared.leadership.c.epoch, declared.leadership.c.owner, declared.leadership.c.expires_at
).with_for_update()
_LED = update(declared.leadership)
_EPOCH = select(declared.leadership.c.epoch).with_for_update(read=True)
_CLOCK = text("SELECT extract(epoch FROM clock_timestamp())::double precision")
_NEWS = select(declared.settings.c.catalogue_version, select(tables.requests.c.id).exists())
_REQUESTS = select(tables.requests).order_by(tables.requests.c.id).limit(bindparam("most"))
_JOBS_BY_ID = JOBS.where(tables.jobs.c.id.in_(bindparam("ids", expanding=True)))
_KNOWN = union(
    *(
        select(table.c.id).where(table.c.id.in_(bindparam("ids", expanding=True)))
        for table in (tables.jobs, tables.workloads)
    )
)
_NO_SUCH_JOB = "a change is about a job that does not exist"
_NAMED = 10
"""How many submitters an error about foreign work looks up."""
_earlier = tables.history.alias("earlier")
_WAITING_STATES = tuple(state.value for state in (JobState.QUEUED, JobState.HELD))
_SHOWN = 3


def _last_step(job_id: ColumnElement[str], number: ColumnElement[int]) -> Select[Any]:
    """Select the last step of attempts."""
    return _last_row(EntityKind.ATTEMPT, job_id.concat("/").concat(cast(number, Text)))


def _last_row(kind: EntityKind, name: ColumnElement[str]) -> Select[Any]:
    """Select the last rows of entities in the history."""
    newest = select(func.max(_earlier.c.seq)).where(_earlier.c.kind == kind.value, _earlier.c.id == name)
    return select(tables.history).where(
        tables.history.c.kind == kind.value,
        tables.history.c.id == name,
        tables.history.c.seq == newest.correlate_except(_earlier).scalar_subquery(),
    )


_sessions, _kernels, _later = tables.sessions, tables.kernels, tables.sessions.alias("later")
_newest = select(func.max(_later.c.retry_count)).where(_later.c.job_id == _sessions.c.job_id)
_LIVE_SESSIONS = (
    select(_sessions)
    .join(tables.jobs, tables.jobs.c.id == _sessions.c.job_id)
    .where(
        tables.jobs.c.state.in_(ACTIVE_STATES),
        _sessions.c.retry_count == _newest.correlate(_sessions).scalar_subquery(),
    )
)
_live = _LIVE_SESSIONS.subquery("live")
_LIVE_KERNELS = select(_kernels).join(_live, _live.c.id == _kernels.c.session_id)
_name_of_session = _live.c.job_id.concat("/").concat(cast(_live.c.retry_count, Text))
_LAST_OF_SESSIONS = (
    _last_row(EntityKind.SESSION, _name_of_session).select_from(_live),
    _last_row(EntityKind.KERNEL, _name_of_session.concat("/").concat(cast(_kernels.c.rank, Text))).select_from(
        _live.join(_kernels, _live.c.id == _kernels.c.session_id)
    ),
)
_LAST_HISTORY = (
    _last_step(tables.attempts.c.job_id, tables.attempts.c.number).where(tables.ATTEMPT_ACTIVE),
    _last_step(tables.jobs.c.id, tables.jobs.c.attempt + 1).where(
        tables.jobs.c.state.in_(_WAITING_STATES),
        # Only jobs that something happened to: up to a million others may wait untouched.
        (tables.jobs.c.updated_at != tables.jobs.c.submitted_at) | (tables.jobs.c.reason != ""),
    ),
)


class SqlControllerStore(StorePart):
    """``ControllerStore``: reads and writes for the controller, which writes while it holds the lease on this database.

    Taking the lease and committing lock the same row: a takeover waits for a commit under way, and a later commit of
    the former holder is refused. If machines share a database, only the database's clock counts.
    """

    def __init__(self, database: Database, batches: Batches) -> None:
        super().__init__(database, batches)
        self._epoch, self._news = database.text_of(_EPOCH), database.text_of(_NEWS)
        self.mark: Callable[[], object] = database.data_version if database.is_sqlite else _unmarked

    def lead(
        self,
        owner: str,
        ttl_s: float,
        now: float,
        *,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> int:
        """Take or renew the lease for ``ttl_s`` seconds; a database server uses its own clock instead of ``now``.

        Raises:
            NotLeader: Another owner's lease still runs; the message names it.
            Refused: Work here belongs to other accounts than the one that would run it.
        """
        with self._database.writing() as connection:
            epoch, holder, expires_at = connection.execute(_HELD).one()
            if not self._database.is_sqlite:
                now = connection.execute(_CLOCK).scalar_one()  # Read only after the wait for the row's lock.
            _require_free_lease(owner, heir_of=heir_of, holder=holder, left_s=expires_at - now)
            if runs_as is not None and holder != owner:
                _settle_accounts(connection, runs_as.account)
            led: int = epoch + (holder != owner)
            connection.execute(_LED, {"epoch": led, "owner": owner, "expires_at": now + ttl_s})
            if place and holder != owner:
                _come_to(connection, place, now)
        return led

    def load(self) -> Snapshot:
        """Read all unfinished work, and note which of it is damaged."""
        with self._database.reading() as connection:
            return _Loading(connection).snapshot()

    def news(self) -> News:
        with self._database.reading() as connection:
            version, is_asked = self._database.only_row(connection, self._news)
        return News(version, is_asked=bool(is_asked))

    def catalogue_version(self) -> int:
        return self.news().catalogue_version

    def requests(self, *, limit: int) -> Sequence[Request]:
        with self._database.reading() as connection:
            return [*map(_read_request, connection.execute(_REQUESTS, {"most": limit}))]

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        read = codec.Reader()
        jobs: dict[str, Job] = {}
        with self._database.reading() as connection:
            for ids in chunks(job_ids):
                rows = connection.execute(_JOBS_BY_ID, {"ids": ids})
                jobs.update((job.id, job) for job in sound(rows, read.job, refuse))
        return sorted(jobs.values(), key=attrgetter("seq"))

    def left_to_end(self, key: str) -> Left:
        jobs, read = tables.jobs.c, codec.Reader()
        query = JOBS.where((jobs.id == key) | (jobs.set_id == key)).order_by(jobs.seq)
        with self._database.reading() as connection:
            jobs_left = [left_of_job(read, row) for row in connection.execute(query)]
            row = connection.execute(select(tables.workloads).where(tables.workloads.c.id == key)).first()
        (owner,) = (*sound([row] if row is not None else (), left_of_owner), None)[:1]
        return Left(owner if isinstance(owner, Owner) else None, [job for job in jobs_left if not job.terminal])

    def commit(self, changes: Changes) -> None:
        batches = self._batches
        jobs = [*map(codec.changed_job_row, changes.jobs.values())]
        work = (
            (batches.attempts, [*map(codec.attempt_row, changes.attempts.values())]),
            (batches.runs, [*map(codec.run_row, changes.runs.values())]),
            (batches.history, [*map(codec.history_row, changes.history.values())]),
            (batches.sessions, [*map(codec.session_row, changes.sessions.values())]),
            (batches.kernels, [*map(codec.kernel_row, changes.kernels.values())]),
            (batches.nodes, [*map(codec.node_row, changes.nodes.values())]),
            (batches.workloads, [*map(codec.workload_row, changes.workloads.values())]),
            (batches.released, [*zip(changes.quarantined)]),
            (batches.quarantined, [*map(astuple, filter(None, changes.quarantined.values()))]),
            (batches.set_log, [*map(set_log_row, changes.set_log)]),
            (batches.forgotten, [*zip(changes.forgotten)]),
            (batches.handled, [*zip(changes.handled)]),
        )
        with self._database.writing() as connection:
            if changes.epoch is not None:
                [newest] = self._database.only_row(connection, self._epoch)
                if newest != changes.epoch:
                    message = (
                        f"another controller leads this database: its epoch is {newest}, this one's is {changes.epoch}"
                    )
                    raise Conflict(message, hint="nothing was changed")
            if changes.new_jobs:
                append_jobs(connection, batches, changes.new_jobs.values())
            if changes.specs:
                change_specs(connection, batches, [changes.jobs[key] for key in changes.specs if key in changes.jobs])
            if changes.priorities:
                batches.priorities.run(connection, [(priority, key) for key, priority in changes.priorities.items()])
            if batches.jobs.run(connection, jobs) != len(jobs):
                raise Internal(_NO_SUCH_JOB)
            _require_known(connection, batches, changes)
            for batch, rows in work:
                batch.run(connection, rows)
            for job in changes.unread.values():
                end_sessions(connection, job)
            batches.inherited_names.run(connection, [(parent, child) for child, parent in changes.retries.items()])
            if changes.notifications:
                batches.notifications.run(connection, [*map(notification_row, changes.notifications)])
            append_events(connection, batches, changes.events.values())
            append_audited(connection, batches, changes.audited)


def _unmarked() -> None:
    """Return no mark: a database server has none that is cheaper to read than the news."""


def _settle_accounts(connection: Connection, account: Principal | None) -> None:
    """Record whether programs run as their submitters; work from such a time never runs as another account."""
    noted = declared.leadership.c.as_submitters
    if account is not None and connection.execute(select(noted)).scalar_one():
        _require_own_work(account, [*_others(connection, account)])
    connection.execute(update(declared.leadership).values(as_submitters=account is None))


def _others(connection: Connection, account: Principal) -> Iterator[str]:
    """Find the submitters of work that is not the account's."""
    for table in (tables.jobs, tables.workloads):
        owner, uid = table.c.submitted_by, table.c.submitter_uid
        own = (owner == "") | (owner == storable(account.name)) & (uid.is_(None) | (uid == account.uid))
        yield from connection.execute(select(owner).where(~own).distinct().limit(_NAMED)).scalars()


def _come_to(connection: Connection, place: str, now: float) -> None:
    """Record that files of jobs are written to this data directory from now on."""
    places = declared.places
    connection.execute(update(places).where(places.c.id != place, places.c.left_at.is_(None)).values(left_at=now))
    if connection.execute(update(places).where(places.c.id == place).values(left_at=None)).rowcount == 0:
        connection.execute(insert(places).values(id=place, came_at=now))


class _Loading:
    """Reads unfinished work; a job with a damaged row is noted, and ended jobs are left out."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._read = codec.Reader()
        self._damaged: dict[str, tuple[str, HoldfastError]] = {}

    def snapshot(self) -> Snapshot:
        jobs = self._jobs()
        own, self._damaged = self._damaged, {}
        attempts = self._sound(_ACTIVE_ATTEMPTS, self._read.attempt)
        runs = self._sound(_CURRENT_RUNS, self._read.run)
        history = {row.id: row for query in _LAST_HISTORY for row in self._sound(query, self._read.history)}
        workloads, unreadable = going_on(self._connection)
        runs += self._last_runs(workloads.values(), {run.uid for run in runs})
        sessions = self._live_sessions(jobs)
        parts = self._damaged
        return Snapshot(
            jobs,
            attempts,
            runs,
            history,
            workloads,
            {**unreadable, **own, **({job.id: parts[job.id] for job in jobs if job.id in parts} if parts else {})},
            read_quarantined(self._connection),
            recent_losses(self._connection),
            sessions,
        )

    def _live_sessions(self, jobs: Iterable[Job]) -> list[LiveSession]:
        """Read the current session of each job that has one."""
        sessions = self._sound(_LIVE_SESSIONS, self._read.session)
        if not sessions:
            return []
        kernels: dict[str, list[Kernel]] = {}
        for kernel in self._sound(_LIVE_KERNELS, self._read.kernel):
            kernels.setdefault(kernel.session_id, []).append(kernel)
        last: dict[str, dict[str, HistoryRow]] = {}
        for query in _LAST_OF_SESSIONS:
            for row in self._sound(query, self._read.history):
                last.setdefault(row.job_id, {})[row.id] = row
        ids = {job.id for job in jobs}
        return [
            LiveSession(session, kernels.get(session.id, ()), last.get(session.job_id, {}))
            for session in sessions
            if session.job_id in ids
        ]

    def _jobs(self) -> list[Job]:
        rows = self._connection.execute(_ACTIVE_JOBS, execution_options={"yield_per": _ROWS_AT_A_TIME})
        jobs = [*sound(rows, self._read.job, self._note)]
        jobs.sort(key=attrgetter("seq"))  # Each state comes in order; sorting in the database would copy every row.
        for row in self._connection.execute(_UNKNOWN_STATES):
            self._note(row, Internal(f"the database holds a job that is {row.state!r}"))
        return jobs

    def _last_runs(self, workloads: Iterable[Workload], last: Container[str]) -> list[Run]:
        """Read the ended runs that workloads still need."""
        missing = [uid for workload in workloads for uid in workload.last_runs if uid not in last]
        queries = [RUNS.where(tables.runs.c.uid.in_(uids)) for uids in chunks(missing)]
        return [run for query in queries for run in self._sound(query, self._read.run)]

    def _sound(self, query: Select[Any], read: Callable[[Row[*tuple[Any, ...]]], T]) -> list[T]:
        return [*sound(self._connection.execute(query), read, self._note)]

    def _note(self, row: Row[*tuple[Any, ...]], why: Internal) -> None:
        columns = row._mapping  # noqa: SLF001 - its public name, so that columns cannot clash with it
        # A history row's id is ``<job>/<attempt>``.
        key = columns["job_id"] if "job_id" in columns else columns["id"].partition("/")[0]
        self._damaged.setdefault(key, (UNREAD, why))


def _read_request(row: Row[*tuple[Any, ...]]) -> Request:
    """Read a request; a damaged one becomes an empty request, so that it counts as handled and disappears."""
    try:
        return read_request(row)
    except UNREADABLE as error:
        _log.error("request %d cannot be read and is dropped: %s", row.id, error)
        return Request(RequestKind.SUBMIT, (), row.created_at, id=row.id)


def _require_known(connection: Connection, batches: Batches, changes: Changes) -> None:
    """Refuse rows that belong to no job or workload; the jobs that this commit changes are checked anyway."""
    checked = changes.jobs.keys() | {job_id for job_id, _ in changes.attempts}
    unchecked = set()
    for _, entity, _ in changes.history:
        unchecked.add(entity.partition("/")[0])
    if not unchecked <= checked:
        for ids in chunks([*unchecked - checked]):
            if len(batches.known_jobs.rows(connection, ids)) != len(ids):
                raise Internal(_NO_SUCH_JOB)
    if changes.workloads.keys() <= checked:
        return
    for ids in chunks([*changes.workloads.keys() - checked]):
        if len(connection.execute(_KNOWN, {"ids": ids}).all()) != len(ids):
            message = "a change is about a workload that does not exist"
            raise Internal(message)


def _require_free_lease(owner: str, *, heir_of: str | None, holder: str, left_s: float) -> None:
    """Check that a writer may take the lease: it is its own, its dead predecessor's, or has expired.

    Raises:
        NotLeader: Another writer holds it.
    """
    inherited = heir_of is not None and holder.startswith(heir_of)
    if holder != owner and not inherited and left_s > 0:
        message = f"the database is led by {holder}"
        hint = f"stop that process; if it was killed, its lease ends by itself in {math.ceil(left_s)} s"
        raise NotLeader(message, hint=hint)


def _require_own_work(account: Principal, others: Collection[str]) -> None:
    """Check that no work of others would run as ``account``, if programs ran as their submitters until now.

    Args:
        account: The account that would run everything.
        others: The submitters of other work.

    Raises:
        Refused: There is other work; ended jobs count, because they can be retried.
    """
    if others:
        message = (
            f"work in this database belongs to accounts of its own ({', '.join(sorted(others)[:_SHOWN])}), and would"
            f" run as {account.name}"
        )
        hint = "start Holdfast as root with --run-as submitter, or HOLDFAST_RUN_AS=submitter, as it was before"
        raise Refused(message, hint=hint)
