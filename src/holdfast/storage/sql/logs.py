"""The event log, the audit log and the logs of job sets: appended by writers' transactions, read in order.

Sequence numbers must grow in the order of commits. SQLite has one writer at a time. PostgreSQL assigns a number when a
row is inserted, and a transaction that commits later may hold the smaller one; so an appending transaction takes an
advisory lock as the last thing before its commit, and keeps it until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import bindparam, func, insert, select, text

from holdfast.compiled.records import dump_json, load_json, read_record, record_of, storable
from holdfast.domain.access import Principal
from holdfast.domain.audit import Act, AuditEntry, Caller, StoredAuditEntry
from holdfast.domain.events.operators import NodeLost, OperatorActed
from holdfast.domain.events.registry import BY_KIND, BY_NAME, StoredEvent
from holdfast.domain.terms.kinds import SubjectName
from holdfast.domain.workloads.jobset.state import SetDecision, SetEvent, SetLogEntry
from holdfast.errors import Internal
from holdfast.ports.events import EVERYTHING
from holdfast.ports.store import RECENT_EVENTS
from holdfast.storage.sql import tables
from holdfast.storage.sql.batch import AUDIT_NEW, chunks
from holdfast.storage.sql.damage import Damaged, sound
from holdfast.storage.sql.part import StorePart
from holdfast.storage.sql.rows.conditions import in_group, seen_by

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Row, Select

    from holdfast.domain.audit import AuditedChange
    from holdfast.domain.events.registry import Event, EventRecord
    from holdfast.ports.events import EventFilter
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database

T = TypeVar("T")
_NOBODYS = (None, None, None)
_OF_SETS: Mapping[str, type[SetDecision | SetEvent]] = {"decision": SetDecision, "event": SetEvent}
_KIND_OF = {kind: name for name, kind in _OF_SETS.items()}
_ACTED = BY_KIND[OperatorActed].name
_EVENTS = tables.events
_LAST = select(func.max(_EVENTS.c.seq)).scalar_subquery()
_RECENT_LOSSES = (
    select(_EVENTS)
    .where(_EVENTS.c.type == BY_KIND[NodeLost].name, _EVENTS.c.seq > _LAST - bindparam("newest"))
    .order_by(_EVENTS.c.seq)
)
_LOCK = text("SELECT pg_advisory_xact_lock(1076755031)")
"""Any number but the migrations'; every version of Holdfast must use the same one."""


class SqlLogStore(StorePart):
    """``EventStore``, ``AuditStore`` and the logs of job sets, for readers."""

    def __init__(self, database: Database, batches: Batches) -> None:
        super().__init__(database, batches)
        self._damaged_events, self._damaged_entries = Damaged("event"), Damaged("entry of the audit log")

    def events(self, *, after: int = 0, limit: int, where: EventFilter = EVERYTHING) -> Sequence[StoredEvent]:
        with self._database.reading() as connection:
            return _page(
                connection, _filtered(select(tables.events), where), _event, self._damaged_events, after, limit
            )

    def last_event_seq(self) -> int:
        with self._database.reading() as connection:
            last: int | None = connection.execute(select(func.max(tables.events.c.seq))).scalar()
        return last or 0

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        table = tables.set_log
        query = select(table).where(table.c.set_id == storable(set_id), table.c.seq > after).order_by(table.c.seq)
        with self._database.reading() as connection:
            return [*sound(connection.execute(query.limit(limit)).all(), read_set_log)]

    def record(self, entry: AuditEntry) -> None:
        with self._database.writing() as connection:
            _take_turn(connection)
            connection.execute(insert(tables.audit).values(_audit_row(entry)))

    def audit(self, *, after: int = 0, limit: int) -> Sequence[StoredAuditEntry]:
        with self._database.reading() as connection:
            return _page(connection, select(tables.audit), _entry, self._damaged_entries, after, limit)


def _page(
    connection: Connection,
    query: Select[Any],
    read: Callable[[Row[*tuple[Any, ...]]], T],
    damaged: Damaged,
    after: int,
    limit: int,
) -> list[T]:
    """Read the oldest readable rows with ``seq > after``; fewer than the limit only at the end of the log."""
    seq, records = query.selected_columns["seq"], list[T]()
    while (room := limit - len(records)) > 0:
        rows = connection.execute(query.where(seq > after).order_by(seq).limit(room)).all()
        records += sound(rows, read, damaged.note)
        if len(rows) < room:
            break
        after = rows[-1][0]
    return records


def recent_losses(connection: Connection) -> list[StoredEvent]:
    """Read the node losses among the newest events, in order."""
    return [*sound(connection.execute(_RECENT_LOSSES, {"newest": RECENT_EVENTS}), _event)]


def append_events(connection: Connection, batches: Batches, records: Iterable[EventRecord]) -> None:
    """Append events; must be the last statement of a transaction."""
    rows: list[tuple[Any, ...]] = []
    for job_id, at, event, group, owner in records:
        entry, data = BY_KIND[type(event)], dump_json(event)
        owned = _NOBODYS if owner is None else (storable(owner.submitted_by), owner.submitter_uid, owner.queue)
        named = storable(group) if group else None
        rows.append((job_id, job_id, job_id, entry.name, entry.version, at, data, named, *owned))
    if rows:
        _take_turn(connection)
        batches.events.run(connection, rows)


def append_audited(connection: Connection, batches: Batches, audited: Sequence[AuditedChange]) -> None:
    """Append audit entries; must be the last statement of a transaction."""
    if not audited:
        return
    records = [record for change in audited for record in change.records]
    append_events(connection, batches, _of_jobs(connection, batches, records))
    rows = [_audit_row(change.entry) for change in audited]
    batches.audit.run(connection, [tuple(row[name] for name in AUDIT_NEW) for row in rows])


def _of_jobs(connection: Connection, batches: Batches, records: Sequence[EventRecord]) -> list[EventRecord]:
    """List requests about jobs among the events of those jobs and of their groups, while the jobs exist."""
    groups: dict[str, str | None] = {}
    for ids in chunks([record.job_id for record in records if record.job_id is not None]):
        groups.update(tuple(row) for row in batches.known_jobs.rows(connection, ids))
    return [
        record._replace(
            job_id=record.job_id if record.job_id in groups else None, group=groups.get(record.job_id or "") or ""
        )
        for record in records
    ]


def set_log_row(entry: SetLogEntry) -> tuple[Any, ...]:
    """Return the row of a job set's log entry, without ``seq``."""
    return entry.set_id, entry.at, _KIND_OF[type(entry.what)], dump_json(entry.what)


def read_set_log(row: Sequence[Any]) -> SetLogEntry:
    """Build a job set's log entry from its row.

    Raises:
        Internal: It is of a kind that this version does not know.
    """
    seq, set_id, at, kind, body = row
    if kind not in _OF_SETS:
        message = f"the log of a job set holds {kind!r}, which this version of Holdfast does not know"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")
    return SetLogEntry(set_id=set_id, at=at, what=record_of(_OF_SETS[kind], load_json(body)), seq=seq)


def _take_turn(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def _filtered(query: Select[Any], where: EventFilter) -> Select[Any]:
    table, jobs = tables.events, tables.jobs
    if where.job_id is not None:
        query = query.where(table.c.job_id == where.job_id)
    if where.types is not None:
        query = query.where(table.c.type.in_(sorted(where.types)))
    if where.queue is not None:
        query = query.where(select(jobs.c.id).where(jobs.c.id == table.c.job_id, jobs.c.queue == where.queue).exists())
    if where.job_set is not None:
        of_job = select(jobs.c.id).where(jobs.c.id == table.c.job_id, jobs.c.set_id == where.job_set).exists()
        own = table.c.job_id.is_(None) & table.c.data.contains(dump_json({"job_set": where.job_set})[1:-1])
        query = query.where(of_job | own)
    if where.group is not None:
        # For one group the index yields what follows a position; for several it would yield everything each time.
        column = table.c.group_name.concat("") if where.group.below else table.c.group_name
        query = query.where(in_group(column, where.group))
    if where.seen is not None:
        of_job = select(jobs.c.id).where(jobs.c.id == table.c.job_id, seen_by(where.seen)).exists()
        own = table.c.submitted_by.is_not(None) & seen_by(where.seen, table)
        query = query.where(of_job | own)
    if not where.acts:
        query = query.where((table.c.type != _ACTED) | table.c.job_id.is_not(None))
    return query


def _event(row: Row[*tuple[Any, ...]]) -> StoredEvent:
    seq, job_id, job_seq, name, version, at, data, group, *_ = row
    entry = BY_NAME.get(name)
    if entry is None or entry.version != version:
        message = f"event {seq} is {name!r} version {version}, which this version of Holdfast does not know"
        raise Internal(message, hint="a newer Holdfast wrote it, or the database is damaged")
    kind: Callable[..., Event] = entry.kind
    try:
        event: Event = read_record(entry.kind, data)
    except ValueError:  # A program may print lone surrogates, and a row may be damaged.
        event = kind(**{field: _tuples(value) for field, value in load_json(data).items()})
    return StoredEvent(seq, job_id, job_seq, at, event, group or "")


def _tuples(value: object) -> object:
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value


def _audit_row(entry: AuditEntry) -> dict[str, Any]:
    caller = entry.caller
    return {
        "at": caller.at,
        "actor": storable(caller.actor),
        "act": entry.act.value,
        "subject": entry.subject,
        "name": storable(entry.name),
        "origin": storable(caller.origin),
        "request_id": storable(caller.request_id),
        "outcome": entry.outcome,
        "detail": storable(entry.detail),
    }


def _entry(row: Row[*tuple[Any, ...]]) -> StoredAuditEntry:
    seq, at, actor, act, subject, name, origin, request_id, outcome, detail = tuple(row)
    caller = Caller(Principal(actor), at, origin, request_id)
    return StoredAuditEntry(seq, AuditEntry(caller, Act(act), SubjectName(subject), name, outcome, detail))
