"""Notifications on the wire."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Response, Timestamp


class NotificationView(Response):
    """What somebody was told, or is to be."""

    id: str
    """The ``webhook-id``: the same for every try and replay."""
    to: str
    """Name of the notifier."""
    event: str
    """Such as ``job.failed``."""
    kind: str
    subject_id: str
    """Id of the job or array."""
    name: str
    """Its name."""
    summary: str
    """What is told, in a line."""
    state: str
    """``Waiting``, ``Delivered`` or ``Dead``: given up."""
    tries: int
    """Since it was made or replayed."""
    created_at: Timestamp
    next_at: Timestamp | None = None
    """When it is tried next, while it waits."""
    settled_at: Timestamp | None = None
    """When it was delivered or given up."""
    error: str = ""
    """Why the last try failed."""
    payload: dict[str, Any] = Field(default_factory=dict)
    """What programs are sent; only of one that is asked for by its id."""


class NotificationPage(Response):
    """A part of the notifications, in order of commits."""

    items: list[NotificationView]
    next_cursor: str | None = None
    """Pass as ``cursor`` for the rest; null at the end."""


class TestView(Response):
    """What became of a test."""

    __test__ = False

    id: str
    """The ``webhook-id`` it was sent under."""
    to: str
    delivered: bool
    error: str = ""
    """What went wrong."""
