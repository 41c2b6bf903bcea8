"""The events of notifications."""

from __future__ import annotations

from holdfast.domain.record import Struct


class NotificationDelivered(Struct, frozen=True):
    """A notification was delivered."""

    id: str
    to: str
    """Name of the notifier."""
    about: str
    """Id of the job or array."""
    tries: int


class NotificationDead(Struct, frozen=True):
    """Delivery was given up; it can be replayed."""

    id: str
    to: str
    """Name of the notifier."""
    about: str
    """Id of the job or array."""
    tries: int
    error: str
    """Why the last try failed."""


NotificationEvent = NotificationDelivered | NotificationDead
