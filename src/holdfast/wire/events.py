"""Wire models of events and the audit log.

An event is a CloudEvent in its JSON form (CloudEvents 1.0), also as the data of a server-sent event.
"""

from typing import Any

from pydantic import Field

from holdfast.wire.base import Response, Timestamp

EVENT_STREAM = "text/event-stream"


class EventView(Response):
    """One event."""

    specversion: str = "1.0"
    id: str
    """Its number among all events, as text; to continue after it, send it as ``Last-Event-ID`` or ``after``."""
    source: str = "/holdfast"
    type: str
    """Such as ``dev.holdfast.job.failed.v1``."""
    time: Timestamp
    subject: str
    """Its subject: ``jobs/<id>``, ``retry-policies/<name>``."""
    datacontenttype: str = "application/json"
    jobsequence: int | None = None
    """Its number among its job's events: 1, 2, 3, without gaps."""
    group: str = ""
    """The group of its subject, if there is one."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The fields of its type."""


class EventPage(Response):
    """A part of the event log."""

    items: list[EventView]
    next: int
    """Pass it as ``after`` to read on, now or later."""
    last: int
    """The id of the newest event."""


class AuditView(Response):
    """One action by an operator or user."""

    id: str
    time: Timestamp
    actor: str
    """``user:<name>`` on the machine itself, ``token:<name>`` for the holder of a token."""
    action: str
    kind: str
    name: str
    """The name of its subject; for a job its id."""
    outcome: str
    """``accepted``, or the code of the refusal."""
    detail: str = ""
    """The reason given, or the reason of the refusal."""
    origin: str = ""
    """The caller's address, or ``in-process``."""
    request_id: str = ""


class AuditPage(Response):
    """A part of the audit log."""

    items: list[AuditView]
    next: int
    """Pass it as ``after`` to read on, now or later."""
