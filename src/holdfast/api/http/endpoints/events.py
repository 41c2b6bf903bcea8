"""GET /events and /audit: what happened, and who did what."""

from typing import Annotated

from holdfast.api.http.endpoints.endpoint import LONGEST_NAME, MOST_FILTERS, Endpoints, Group, Param, Word
from holdfast.domain.audit import Caller
from holdfast.errors import InvalidRequest, Problem
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.events import LARGEST_PART, Audit, EventLog
from holdfast.wire.base import API
from holdfast.wire.events import AuditPage, EventPage
from holdfast.wire.render_events import audit_view, event_view

_EVENTS = Endpoints("events")
ENDPOINTS = (_EVENTS,)

PATH = f"{API}/events"
"""The one address that can also be followed, which ``serving`` does."""
_PART = 100
_LARGEST_SEQ = 1 << 62
_LONGEST_SEQ = len(str(_LARGEST_SEQ))

After = Annotated[int, Param("The id of the last entry already seen.", ge=0, le=_LARGEST_SEQ)]


@_EVENTS.add("GET", "/events", EventPage, 404, summary="Read events, or follow them")
def read_events(  # noqa: PLR0913 - the parameters of an address
    backend: Backend,
    caller: Caller,
    *,
    after: After = 0,
    limit: Annotated[int, Param("Entries in a page; a stream has no limit.", ge=1, le=LARGEST_PART)] = _PART,
    job: Word = None,
    type: Annotated[  # noqa: A002 - the parameter's name
        list[str] | None, Param("Such as `job.failed`, or a family: `job`.", max_length=MOST_FILTERS)
    ] = None,
    queue: Word = None,
    job_set: Annotated[str | None, Param("Name or id of a job set.", max_length=LONGEST_NAME)] = None,
    group: Group = None,
    last_event_id: Annotated[
        str | None,
        Param(
            "The event after which a stream resumes; takes precedence over `after`.",
            max_length=LONGEST_NAME,
            header="Last-Event-ID",
        ),
    ] = None,
) -> EventPage:
    """Read the events after an id, in order, or follow them: each is sent once it is durable."""
    del last_event_id  # of streams only
    log = EventLog(backend.store, backend.access)
    where = log.filter(caller, job=job, types=type or (), queue=queue, job_set=job_set, group=group)
    part = log.part(caller, where, after=after, limit=limit)
    return EventPage(items=list(map(event_view, part.events)), next=part.next_after, last=part.last)


def stream_start(after: int, last_event_id: str | None) -> int:
    """Return the id of the event after which a stream begins.

    Raises:
        InvalidRequest: ``last_event_id`` is not the id of an event.
    """
    digits = "" if last_event_id is None else last_event_id.strip()
    if last_event_id is None or not digits:
        return after if last_event_id is None else 0
    if digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_SEQ and int(digits) <= _LARGEST_SEQ:
        return int(digits)
    hint = "send the id of the last event you received"
    raise InvalidRequest(problems=[Problem("header.Last-Event-ID", f"{last_event_id!r} is not an event id", hint=hint)])


@_EVENTS.add("GET", "/audit", AuditPage, summary="Read the audit log")
def read_audit(
    backend: Backend,
    caller: Caller,
    *,
    after: After = 0,
    limit: Annotated[int, Param(ge=1, le=LARGEST_PART)] = _PART,
) -> AuditPage:
    """List what operators did and what they were refused, oldest first."""
    entries = Audit(backend.store).page(caller, after=after, limit=limit)
    return AuditPage(items=list(map(audit_view, entries)), next=entries[-1].seq if entries else after)
