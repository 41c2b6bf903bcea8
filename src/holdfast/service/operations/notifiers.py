"""Tests notifiers, and lists and replays notifications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Act, AuditEntry, Subject
from holdfast.domain.notifications.notification import Notification, OutcomeReport
from holdfast.domain.record import Struct, evolve
from holdfast.domain.rights import Reach, reach
from holdfast.errors import Conflict, NotFound
from holdfast.ports.notifications import NotificationFilter
from holdfast.service.access.asking import asks
from holdfast.service.access.hiding import report_without_logs
from holdfast.service.operations.catalogue import Notifiers
from holdfast.service.operations.seeing import Seeing
from holdfast.service.refusals import audited

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.audit import Caller
    from holdfast.ports.clock import Clock, Ids
    from holdfast.ports.notifications import Sender, SendResult
    from holdfast.ports.store import Store
    from holdfast.service.access.book import AccessBook

LARGEST_PAGE = 1000


class Notifications(Struct, frozen=True):
    """The notifications, sent and pending."""

    store: Store
    clock: Clock
    access: AccessBook | None = None
    """Limits answers to what the caller may see."""

    @asks(Right.WATCH, Subject.NOTIFICATION)
    def page(
        self, caller: Caller, where: NotificationFilter, *, after: int = 0, limit: int = LARGEST_PAGE
    ) -> tuple[Sequence[Notification], int | None]:
        """List notifications in order of commits; returns also after which one the list continues, if it does.

        Callers who are not operators see those about their own work. Program output is shown only to those who may
        read the log; of deleted work, only to admins.
        """
        listed = self.store.notifications(_seen_by(caller, where), after=after, limit=limit + 1)
        shown = listed[:limit]
        return self._shown(caller, shown), shown[-1].seq if len(listed) > limit else None

    def _shown(self, caller: Caller, notifications: Sequence[Notification]) -> Sequence[Notification]:
        read = Seeing(self.store, self.access, caller).read_of(
            {notification.report.id for notification in notifications}
        )
        return [
            notification
            if notification.report.id in read
            else evolve(notification, report=report_without_logs(notification.report))
            for notification in notifications
        ]

    @asks(Right.WATCH, Subject.NOTIFICATION)
    def get(self, caller: Caller, notification_id: str) -> Notification:
        """Read a notification.

        Raises:
            NotFound: It does not exist, or the caller may not see it.
        """
        where = _seen_by(caller, NotificationFilter(id=notification_id))
        if where.of is not None and not self.store.notifications(where, limit=1):
            message = f"you have no notification with the id {notification_id!r}"
            raise NotFound(message, hint="list them with: holdfast notify list")
        return self._shown(caller, [self.store.notification(notification_id)])[0]

    @asks(Right.CHANGE, Subject.NOTIFICATION)
    def replay(self, caller: Caller, notification_id: str) -> Notification:
        """Send a notification that was delivered or given up once more, under its id.

        Raises:
            NotFound: It does not exist.
            Conflict: It is still waiting for delivery.
        """
        with audited(self.store, caller, Act.REPLAY, Subject.NOTIFICATION, notification_id):
            notification = self.get(caller, notification_id)
            if not self.store.replay_notifications([notification.id], self.clock.now(), caller=caller):
                notification = self.get(caller, notification.id)  # it may have been deleted
                msg = f"notification {notification.id} is still waiting for delivery"
                raise Conflict(msg, hint="run holdfast notify show to see its next try")
            return self.get(caller, notification_id)

    @asks(Right.CHANGE, Subject.NOTIFIER)
    def test(self, caller: Caller, name: str, telling: Callable[[], Sender], ids: Ids) -> tuple[str, SendResult]:
        """Send a test notification at once, with one try; returns its id and the result.

        Raises:
            NotFound: The notifier does not exist.
            Unavailable: This process cannot send notifications.
        """
        notifier, now = Notifiers(self.store).get(caller, name), self.clock.now()
        report = OutcomeReport(
            event="notifier.test",
            kind="job",
            id="test",
            name="test",
            at=now,
            state="Succeeded",
            reason=f"holdfast notify test {notifier.name}: nothing happened, this is only a test",
            submitted_at=now,
            complete=True,
        )
        notification = Notification(id=f"msg_{ids.new()}", to=notifier.name, report=report, created_at=now)
        result = telling().send(notifier, notification, now)
        self.store.record(AuditEntry(caller, Act.TEST, Subject.NOTIFIER, notifier.name, detail=result.error))
        return notification.id, result


def _seen_by(caller: Caller, where: NotificationFilter) -> NotificationFilter:
    """Limit a filter to the notifications that the caller may read."""
    everybodys = reach(caller.principal, Right.WATCH, Subject.NOTIFICATION) is Reach.ALL
    return where if everybodys else evolve(where, of=caller.principal)
