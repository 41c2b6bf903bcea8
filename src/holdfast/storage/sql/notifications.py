"""The outbox: notifications, from the commit that made them true until they are forgotten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, func, select, true, update

from holdfast.compiled.records import dump_record, load_json, load_record, record_of, storable
from holdfast.domain.audit import Act, on_notification
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.events.workloads import NotificationDead, NotificationDelivered
from holdfast.domain.failure import Failure
from holdfast.domain.job import JobState
from holdfast.domain.notifications.notification import DeliveryState, Notification, OutcomeReport, describe_failure
from holdfast.errors import NotFound
from holdfast.storage.sql import tables
from holdfast.storage.sql.batch import chunks
from holdfast.storage.sql.damage import UNREADABLE, Damaged, sound
from holdfast.storage.sql.logs import append_audited, append_events
from holdfast.storage.sql.part import StorePart

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Connection, Row, Table

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.ports.notifications import NotificationFilter
    from holdfast.storage.sql.batch import Batches
    from holdfast.storage.sql.engine import Database

_table = tables.notifications
_ALL = select(_table)
_WAITS = tables.NOTIFICATION_WAITS
_before = _table.alias()
_IN_TURN = ~exists().where(
    _before.c.about == _table.c.about,
    _before.c.notifier == _table.c.notifier,
    _before.c.seq < _table.c.seq,
    _before.c.state == DeliveryState.WAITING.value,
)
"""A notifier hears about one thing in order: what is told later waits for what is still to be delivered."""
_CHANGING = ("body", "state", "tries", "since", "next_at", "settled_at", "error")


def notification_row(notification: Notification) -> tuple[Any, ...]:
    """Return a notification's row without ``seq``."""
    return (notification.id, notification.to, notification.report.id, notification.created_at, *_changing(notification))


def _changing(notification: Notification) -> tuple[Any, ...]:
    body = dump_record(notification.report)
    return (
        body,
        notification.state.value,
        notification.tries,
        notification.since,
        notification.next_at,
        notification.settled_at,
        storable(notification.error),
    )


def _read(row: Row[Any]) -> Notification:
    try:
        report = record_of(OutcomeReport, load_json(row.body))
    except UNREADABLE as error:  # An unreadable notification must not hold up the others.
        message = f"what was to be told cannot be read: {error}"
        report = OutcomeReport(
            event="unreadable", kind="job", id=row.about, name="", at=row.created_at, state="", reason=message
        )
    return Notification(
        id=row.id,
        to=row.notifier,
        report=report,
        created_at=row.created_at,
        state=DeliveryState(row.state),
        tries=row.tries,
        since=row.since,
        next_at=row.next_at,
        settled_at=row.settled_at,
        error=row.error,
        seq=row.seq,
    )


def _cause(failure: str) -> str:
    try:
        return describe_failure(load_record(Failure, failure))
    except UNREADABLE:
        return describe_failure(None)


def _without(ids: Collection[str], notifiers: Collection[str]) -> list[ColumnElement[bool]]:
    listed = ((_table.c.id, ids), (_table.c.notifier, notifiers))
    return [column.not_in(list(names)) for column, names in listed if names]


def _write(connection: Connection, notification: Notification, *where: ColumnElement[bool]) -> bool:
    values = dict(zip(_CHANGING, _changing(notification), strict=True))
    return connection.execute(update(_table).where(_table.c.id == notification.id, *where).values(values)).rowcount > 0


def _is_about_work_of(principal: Principal) -> ColumnElement[bool]:
    """Match notifications about the work of a user; an account created again under the same name is another user."""

    def theirs(table: Table) -> ColumnElement[bool]:
        account = (
            true()
            if principal.uid is None
            else table.c.submitter_uid.is_(None) | (table.c.submitter_uid == principal.uid)
        )
        return exists().where(table.c.id == _table.c.about, table.c.submitted_by == storable(principal.name), account)

    return theirs(tables.jobs) | theirs(tables.workloads)


def _settle(connection: Connection, notification: Notification) -> bool:
    """Store the outcome of a delivery, if the notification still waits as it did before."""
    waits = _table.c.state == DeliveryState.WAITING.value
    return _write(connection, notification, waits, _table.c.since == notification.since)


class SqlNotificationStore(StorePart):
    """``NotificationStore``: the outbox."""

    def __init__(self, database: Database, batches: Batches) -> None:
        super().__init__(database, batches)
        self._damaged = Damaged("notification")

    def due_notifications(
        self, now: float, *, limit: int, but: Collection[str] = (), not_to: Collection[str] = ()
    ) -> Sequence[Notification]:
        query = _ALL.where(_WAITS, _IN_TURN, _table.c.next_at <= now, *_without(but, not_to))
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(_table.c.next_at, _table.c.seq).limit(limit))
            return [*sound(rows, _read)]

    def next_notification_at(self, *, but: Collection[str] = (), not_to: Collection[str] = ()) -> float | None:
        query = select(func.min(_table.c.next_at)).where(_WAITS, _IN_TURN, *_without(but, not_to))
        with self._database.reading() as connection:
            next_at: float | None = connection.execute(query).scalar_one()
        return next_at

    def settle_notifications(self, changed: Sequence[Notification]) -> Sequence[Notification]:
        with self._database.writing() as connection:
            stored = [notification for notification in changed if _settle(connection, notification)]
            append_events(connection, self._batches, _settled_events(stored))
        return stored

    def notification(self, notification_id: str) -> Notification:
        with self._database.reading() as connection:
            row = connection.execute(_ALL.where(_table.c.id == storable(notification_id))).one_or_none()
        if row is None:
            message = f"no notification has the id {notification_id!r}"
            raise NotFound(message, hint="list them with: holdfast notify list")
        return _read(row)

    def notifications(self, where: NotificationFilter, *, after: int = 0, limit: int) -> Sequence[Notification]:
        query = _ALL.order_by(_table.c.seq)
        equal = {_table.c.state: where.state, _table.c.notifier: where.to, _table.c.about: where.about}
        equal[_table.c.id] = where.id
        if where.of is not None:
            query = query.where(_is_about_work_of(where.of))
        for column, value in equal.items():
            if value is not None:
                query = query.where(column == storable(str(value)))
        with self._database.reading() as connection:
            page: list[Notification] = []
            while room := limit - len(page):
                rows = connection.execute(query.where(_table.c.seq > after).limit(room)).all()
                page += sound(rows, _read, self._damaged.note)
                if len(rows) < room:
                    break
                after = rows[-1].seq  # Damaged rows do not end the list.
            return page

    def replay_notifications(self, ids: Sequence[str], now: float, *, caller: Caller | None = None) -> int:
        done: list[Notification] = []
        with self._database.writing() as connection:
            for some in chunks([*map(storable, ids)]):
                over = _table.c.state != DeliveryState.WAITING.value
                # Locked, so that the second of two simultaneous replays finds it waiting already.
                held = _ALL.where(_table.c.id.in_(some), over).with_for_update()
                dead = [*sound(connection.execute(held), _read)]
                for notification in dead:
                    _write(connection, notification.replayed(now))
                done += dead
            changes = [on_notification(caller, Act.REPLAY, notification.id) for notification in done]
            append_audited(connection, self._batches, [change for change in changes if change is not None])
        return len(done)

    def delete_notifications(self, *, settled_before: float, limit: int) -> int:
        is_old = _table.c.settled_at < settled_before
        old = select(_table.c.seq).where(is_old).limit(limit)
        with self._database.writing() as connection:
            # Checked again for each row: somebody may have replayed it while this statement waited.
            return connection.execute(delete(_table).where(_table.c.seq.in_(old), is_old)).rowcount

    def count_notifications(self) -> Mapping[str, int]:
        query = select(_table.c.state, func.count()).group_by(_table.c.state)
        with self._database.reading() as connection:
            return {row.state: row[1] for row in connection.execute(query)}

    def causes_of(self, owner: str) -> Mapping[str, int]:
        jobs, attempts = tables.jobs, tables.attempts
        last = (attempts.c.job_id == jobs.c.id) & (attempts.c.number == jobs.c.attempt)
        failed = (jobs.c.set_id == owner) & (jobs.c.state == JobState.FAILED.value)
        query = select(attempts.c.failure, func.count()).select_from(jobs).outerjoin(attempts, last).where(failed)
        causes: dict[str, int] = {}
        with self._database.reading() as connection:
            for text, count in connection.execute(query.group_by(attempts.c.failure)):
                name = _cause(text)
                causes[name] = causes.get(name, 0) + count
        return dict(sorted(causes.items(), key=lambda entry: (-entry[1], entry[0])))


def _settled_events(changed: Iterable[Notification]) -> Iterator[EventRecord]:
    """Yield the events of notifications that were delivered or given up."""
    for notification in changed:
        at, about = notification.settled_at or 0.0, notification.report.id
        if notification.state is DeliveryState.DELIVERED:
            yield EventRecord(
                None, at, NotificationDelivered(notification.id, notification.to, about, notification.tries)
            )
        elif notification.state is DeliveryState.DEAD:
            yield EventRecord(
                None,
                at,
                NotificationDead(notification.id, notification.to, about, notification.tries, notification.error),
            )
