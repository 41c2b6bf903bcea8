"""The calls about what people are told by notifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from holdfast.wire.base import API
from holdfast.wire.notifications import NotificationPage, NotificationView, TestView

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.client.connection import Connection

_NOTIFIERS, _NOTIFICATIONS = f"{API}/notifiers", f"{API}/notifications"


class NotificationCalls:
    """What can be done with notifiers and notifications."""

    _connection: Connection

    def test_notifier(self, name: str) -> TestView:
        """Tell something at a notifier at once, with one try."""
        return self._connection.call(TestView, "POST", _path(_NOTIFIERS, name, "/test"))

    def notifications(
        self, *, state: str | None = None, to: str | None = None, about: str | None = None, limit: int | None = None
    ) -> Iterator[NotificationView]:
        """List notifications in order of commits, page by page; without a limit, all.

        Args:
            state: ``Waiting``, ``Delivered`` or ``Dead``.
            to: Name of a notifier.
            about: Id of a job or array.
            limit: At most so many.
        """
        where = {"state": state, "to": to, "about": about}
        for page in self._connection.pages(_NOTIFICATIONS, NotificationPage, where, limit):
            yield from page.items

    def notification(self, notification_id: str) -> NotificationView:
        """Read a notification, with all it tells."""
        return self._connection.get(_path(_NOTIFICATIONS, notification_id), NotificationView)

    def replay(self, notification_id: str) -> NotificationView:
        """Have a notification that was delivered or given up tried again, under its id."""
        return self._connection.call(NotificationView, "POST", _path(_NOTIFICATIONS, notification_id, "/replay"))


def _path(collection: str, name: str, rest: str = "") -> str:
    return f"{collection}/{quote(name, safe='')}{rest}"
