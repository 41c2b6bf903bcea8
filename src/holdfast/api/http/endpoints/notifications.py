"""Notifications, and testing a notifier; notifiers themselves are entries."""

from typing import Annotated

from holdfast.api.http.endpoints.endpoint import (
    Endpoints,
    Name,
    Param,
    Word,
)
from holdfast.api.http.endpoints.parameters import read_number, write_cursor
from holdfast.domain.audit import Caller
from holdfast.domain.notifications.notification import DeliveryState, Notification
from holdfast.domain.notifications.words import payload, subject
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.notifications import NotificationFilter
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.notifiers import LARGEST_PAGE, Notifications
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.notifications import NotificationPage, NotificationView, TestView

_NOTIFIERS = Endpoints("notifiers")
_NOTIFICATIONS = Endpoints("notifications")
ENDPOINTS = (_NOTIFIERS, _NOTIFICATIONS)

_PART = 100


@_NOTIFIERS.add("POST", "/notifiers/{name}/test", TestView, 404, summary="Test a notifier")
def test_notifier(backend: Backend, caller: Caller, name: Name) -> TestView:
    """Send a test message at once, with a single try, and return the outcome."""
    notifications = Notifications(backend.store, backend.clock, backend.access)
    message_id, result = notifications.test(caller, name, backend.telling, backend.ids)
    return TestView(id=message_id, to=name, delivered=not result.error, error=result.error)


@_NOTIFICATIONS.add("GET", "/notifications", NotificationPage, summary="List notifications")
def list_notifications(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    *,
    state: Annotated[str | None, Param("`Waiting`, `Delivered` or `Dead`.", max_length=20)] = None,
    to: Word = None,
    about: Annotated[str | None, Param("Id of a job or array.", max_length=255)] = None,
    limit: Annotated[int, Param(ge=1, le=LARGEST_PAGE)] = _PART,
    cursor: Annotated[str | None, Param("The `next_cursor` of the page before.", max_length=1000)] = None,
) -> NotificationPage:
    """List notifications, delivered or not, in commit order."""
    where = NotificationFilter(_state(state), to, about)
    mark = f"notifications/{state}/{to}/{about}"
    notifications = Notifications(backend.store, backend.clock, backend.access)
    listed, following = notifications.page(caller, where, after=read_number(cursor, mark), limit=limit)
    return NotificationPage(items=[*map(_notification_view, listed)], next_cursor=write_cursor(following, mark))


def _state(text: str | None) -> DeliveryState | None:
    if text is None:
        return None
    for state in DeliveryState:
        if state.value.lower() == text.lower():
            return state
    raise InvalidRequest(problems=[Problem("query.state", f"{text!r} is not a state", tuple(DeliveryState))])


@_NOTIFICATIONS.add("GET", "/notifications/{name}", NotificationView, 404, summary="Read a notification")
def get_notification(backend: Backend, caller: Caller, name: Name) -> NotificationView:
    """Read a notification by its id, with its payload."""
    notification = Notifications(backend.store, backend.clock, backend.access).get(caller, name)
    return _notification_view(notification).model_copy(update={"payload": payload(notification.report)})


@_NOTIFICATIONS.add("POST", "/notifications/{name}/replay", NotificationView, 404, 409, summary="Replay a notification")
def replay_notification(backend: Backend, caller: Caller, name: Name) -> NotificationView:
    """Send a notification again that was delivered or given up, under the same id."""
    return _notification_view(Notifications(backend.store, backend.clock, backend.access).replay(caller, name))


def _notification_view(notification: Notification) -> NotificationView:
    report, waits = notification.report, notification.state is DeliveryState.WAITING
    return NotificationView(
        id=notification.id,
        to=notification.to,
        event=report.event,
        kind=report.kind,
        subject_id=report.id,
        name=report.name,
        summary=subject(report),
        state=notification.state.value,
        tries=notification.tries,
        created_at=timestamp(notification.created_at),
        next_at=timestamp(notification.next_at) if waits else None,
        settled_at=optional_timestamp(notification.settled_at),
        error=notification.error,
    )
