"""Events and the audit log on the wire.

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
    """Its place among all events, as text; to continue after it, send it as ``Last-Event-ID`` or ``after``."""
    source: str = "/holdfast"
    type: str
    """Such as ``dev.holdfast.job.failed.v1``."""
    time: Timestamp
    subject: str
    """What it is about: ``jobs/<id>``, ``retry-policies/<name>``."""
    datacontenttype: str = "application/json"
    jobsequence: int | None = None
    """Its place among its job's events: 1, 2, 3, without gaps."""
    group: str = ""
    """Of what it is about, if that has one."""
    data: dict[str, Any] = Field(default_factory=dict)
    """The fields of its type."""


class EventPage(Response):
    """A part of the event log."""

    items: list[EventView]
    next: int
    """Pass as ``after`` to read on, now or later."""
    last: int
    """The id of the newest event there is."""


class AuditView(Response):
    """One action of an operator."""

    id: str
    time: Timestamp
    actor: str
    """``user:<name>`` on the machine itself, ``token:<name>`` for whoever showed that token."""
    action: str
    kind: str
    name: str
    """Of what it was done to; of a job its id."""
    outcome: str
    """``accepted``, or the code of the refusal."""
    detail: str = ""
    """The reason given, or why it was refused."""
    origin: str = ""
    """The address it came from, or ``in-process``."""
    request_id: str = ""


class AuditPage(Response):
    """A part of the audit log."""

    items: list[AuditView]
    next: int
    """Pass as ``after`` to read on, now or later."""
