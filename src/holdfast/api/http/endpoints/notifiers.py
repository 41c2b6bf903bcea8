"""Notifiers, what people are told by them, and trying one."""

from typing import Annotated

from holdfast.api.http.endpoints.cursors import read_number, write_cursor
from holdfast.api.http.endpoints.endpoint import (
    DryRun,
    Endpoints,
    MustExist,
    Name,
    Param,
    Reply,
    Takes,
    Word,
    as_if,
    created,
)
from holdfast.domain.audit import Caller
from holdfast.domain.notifications.notification import DeliveryState, Notification
from holdfast.domain.notifications.words import payload, subject
from holdfast.domain.notifier import Notifier
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.notifications import NotificationFilter
from holdfast.service.manifests.reading import manifest_of
from holdfast.service.manifests.showing import spec_of
from holdfast.service.manifests.text import Text
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.notifiers import LARGEST_PAGE, Notifications, Notifiers
from holdfast.wire.base import optional_timestamp, timestamp
from holdfast.wire.notifications import NotificationPage, NotificationView, NotifierPage, NotifierView, TestView

_NOTIFIERS = Endpoints("notifiers")
_NOTIFICATIONS = Endpoints("notifications")
ENDPOINTS = (_NOTIFIERS, _NOTIFICATIONS)

_NOTIFIER = Takes("A manifest of kind Notifier.")
_PART = 100


def _notifiers(backend: Backend) -> Notifiers:
    return Notifiers(backend.store, None if backend.sender is None else backend.sender())


def _view(backend: Backend, by: Caller, notifier: Notifier) -> NotifierView:
    submitter = Notifiers(backend.store).submitters(by).get(notifier.name, "")
    return NotifierView(name=notifier.name, submitted_by=submitter, spec=spec_of(notifier))


@_NOTIFIERS.add("GET", "/notifiers", NotifierPage, summary="List notifiers")
def list_notifiers(backend: Backend, by: Caller) -> NotifierPage:
    """List all, by name."""
    return NotifierPage(items=[_view(backend, by, each) for each in Notifiers(backend.store).list(by)])


@_NOTIFIERS.add("POST", "/notifiers", NotifierView, 409, summary="Create a notifier", status=201, takes=_NOTIFIER)
def create_notifier(backend: Backend, by: Caller, body: Text, *, dry_run: DryRun = False) -> Reply:
    """Create a notifier; it must be new."""
    notifier = _notifiers(backend).put(by, manifest_of(body, Notifier), create=True, dry_run=dry_run)
    return Reply(as_if(_view(backend, by, notifier), by, dry_run=dry_run), created(dry_run=dry_run))


@_NOTIFIERS.add("GET", "/notifiers/{name}", NotifierView, 404, summary="Read a notifier")
def get_notifier(backend: Backend, by: Caller, name: Name) -> NotifierView:
    """Read one."""
    return _view(backend, by, Notifiers(backend.store).get(by, name))


@_NOTIFIERS.add("PUT", "/notifiers/{name}", NotifierView, 404, summary="Create or replace a notifier", takes=_NOTIFIER)
def put_notifier(
    backend: Backend, by: Caller, name: Name, body: Text, *, must_exist: MustExist = False, dry_run: DryRun = False
) -> NotifierView:
    """Create or replace a notifier."""
    notifier, create = manifest_of(body, Notifier, name=name), False if must_exist else None
    stored = _notifiers(backend).put(by, notifier, create=create, dry_run=dry_run)
    return as_if(_view(backend, by, stored), by, dry_run=dry_run)


@_NOTIFIERS.add("DELETE", "/notifiers/{name}", None, 404, 409, summary="Delete a notifier", status=204)
def delete_notifier(backend: Backend, by: Caller, name: Name) -> None:
    """Delete one that no queue names."""
    Notifiers(backend.store).delete(by, name)


@_NOTIFIERS.add("POST", "/notifiers/{name}/test", TestView, 404, summary="Test a notifier")
def test_notifier(backend: Backend, by: Caller, name: Name) -> TestView:
    """Tell something at it at once, with one try, and say what became of that."""
    told = Notifications(backend.store, backend.clock, backend.access)
    message_id, sent = told.test(by, name, backend.telling, backend.ids)
    return TestView(id=message_id, to=name, delivered=not sent.error, error=sent.error)


@_NOTIFICATIONS.add("GET", "/notifications", NotificationPage, summary="List notifications")
def list_notifications(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    by: Caller,
    *,
    state: Annotated[str | None, Param("`Waiting`, `Delivered` or `Dead`.", max_length=20)] = None,
    to: Word = None,
    about: Annotated[str | None, Param("Id of a job or array.", max_length=255)] = None,
    limit: Annotated[int, Param(ge=1, le=LARGEST_PAGE)] = _PART,
    cursor: Annotated[str | None, Param("Where a list continues.", max_length=1000)] = None,
) -> NotificationPage:
    """List what people were told or are to be, in order of commits."""
    where = NotificationFilter(_state(state), to, about)
    mark = f"notifications/{state}/{to}/{about}"
    told = Notifications(backend.store, backend.clock, backend.access)
    found, following = told.page(by, where, after=read_number(cursor, mark), limit=limit)
    return NotificationPage(items=[*map(_shown, found)], next_cursor=write_cursor(following, mark))


def _state(text: str | None) -> DeliveryState | None:
    if text is None:
        return None
    for state in DeliveryState:
        if state.value.lower() == text.lower():
            return state
    raise InvalidRequest(problems=[Problem("query.state", f"{text!r} is not a state", tuple(DeliveryState))])


@_NOTIFICATIONS.add("GET", "/notifications/{name}", NotificationView, 404, summary="Read a notification")
def get_notification(backend: Backend, by: Caller, name: Name) -> NotificationView:
    """Read one by its id, with all it tells."""
    found = Notifications(backend.store, backend.clock, backend.access).get(by, name)
    return _shown(found).model_copy(update={"payload": payload(found.report)})


@_NOTIFICATIONS.add("POST", "/notifications/{name}/replay", NotificationView, 404, 409, summary="Replay a notification")
def replay_notification(backend: Backend, by: Caller, name: Name) -> NotificationView:
    """Have one that was delivered or given up tried again, under its id."""
    return _shown(Notifications(backend.store, backend.clock, backend.access).replay(by, name))


def _shown(one: Notification) -> NotificationView:
    report, waits = one.report, one.state is DeliveryState.WAITING
    return NotificationView(
        id=one.id,
        to=one.to,
        event=report.event,
        kind=report.kind,
        subject_id=report.id,
        name=report.name,
        summary=subject(report),
        state=one.state.value,
        tries=one.tries,
        created_at=timestamp(one.created_at),
        next_at=timestamp(one.next_at) if waits else None,
        settled_at=optional_timestamp(one.settled_at),
        error=one.error,
    )
