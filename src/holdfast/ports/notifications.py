"""The outbox of notifications, and their delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from holdfast.domain.access import Principal
    from holdfast.domain.audit import Caller
    from holdfast.domain.notifications.notification import DeliveryState, Notification
    from holdfast.domain.notifier import Notifier
    from holdfast.errors import Problem


class NotificationFilter(Struct, frozen=True):
    """Which notifications to list; every field that is set must hold."""

    state: DeliveryState | None = None
    to: str | None = None
    about: str | None = None
    """Id of a job or array."""
    of: Principal | None = None
    """Only about this one's work that is still there."""
    id: str | None = None


class NotificationStore(Protocol):
    """The outbox; the controller's commits fill it."""

    def due_notifications(
        self, now: float, *, limit: int, but: Collection[str] = (), not_to: Collection[str] = ()
    ) -> Sequence[Notification]:
        """List the notifications that are due, earliest first, except some ids and some notifiers.

        One that is preceded by another to the same notifier about the same job or workload is due only after that.
        """

    def next_notification_at(self, *, but: Collection[str] = (), not_to: Collection[str] = ()) -> float | None:
        """Return when the next is due (as above), without some ids and notifiers; ``None`` if none waits."""

    def settle_notifications(self, changed: Sequence[Notification]) -> Sequence[Notification]:
        """Store what became of tries; one that is delivered or given up is written to the event log, too.

        Returns:
            Those of which it is stored: not those that were settled, replayed or forgotten since they were tried.
        """

    def notification(self, notification_id: str) -> Notification:
        """Find a notification by its id.

        Raises:
            NotFound: There is none.
        """

    def notifications(self, where: NotificationFilter, *, after: int = 0, limit: int) -> Sequence[Notification]:
        """List them in order of commits, those with ``seq > after``."""

    def replay_notifications(self, ids: Sequence[str], now: float, *, caller: Caller | None = None) -> int:
        """Make notifications that were delivered or given up due again, under their ids; returns how many."""

    def count_notifications(self) -> Mapping[str, int]:
        """Count them by state."""

    def causes_of(self, owner: str) -> Mapping[str, int]:
        """Count a workload's failed jobs by the failure of their last attempt (``notification.describe_failure``)."""


class SendResult(Struct, frozen=True):
    """The result of one try to deliver."""

    error: str = ""
    """The error, for people; empty if it was delivered."""
    final: bool = False
    """Whether another try is useless until somebody changes something."""


class Sender(Protocol):
    """Delivers notifications."""

    def check(self, notifier: Notifier) -> Sequence[Problem]:
        """Return what keeps a notifier from being used here: a library, an address or a program that is not allowed."""

    def send(self, notifier: Notifier, notification: Notification, now: float) -> SendResult:
        """Try once, for no longer than the notifier's time-out; never raises."""
