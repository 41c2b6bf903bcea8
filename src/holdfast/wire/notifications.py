"""Wire models of notifications."""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Response, Timestamp


class NotificationView(Response):
    """A notification, delivered or not."""

    id: str
    """The ``webhook-id``, the same for every try and replay."""
    to: str
    """The notifier's name."""
    event: str
    """Such as ``job.failed``."""
    kind: str
    subject_id: str
    """The id of the job or array."""
    name: str
    """The name of the job or array."""
    summary: str
    """The message in one line."""
    state: str
    """``Waiting``, ``Delivered`` or ``Dead``: given up."""
    tries: int
    """Tries since it was created or replayed."""
    created_at: Timestamp
    next_at: Timestamp | None = None
    """When it is tried next, if it waits."""
    settled_at: Timestamp | None = None
    """When it was delivered or given up."""
    error: str = ""
    """Why the last try failed."""
    payload: dict[str, Any] = Field(default_factory=dict)
    """The payload for programs; only in a response about a single notification."""


class NotificationPage(Response):
    """A part of the notifications, in order of commits."""

    items: list[NotificationView]
    next_cursor: str | None = None
    """Pass it as ``cursor`` for the next page; null on the last one."""


class TestView(Response):
    """The result of a test."""

    __test__ = False

    id: str
    """The ``webhook-id`` of the test."""
    to: str
    delivered: bool
    error: str = ""
    """What went wrong."""
