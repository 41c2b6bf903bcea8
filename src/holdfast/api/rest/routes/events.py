"""GET /events and /audit: what happened, and who did what."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from holdfast.api.rest.answers import answer, refusals
from holdfast.api.rest.context import Use
from holdfast.api.rest.pages import LONGEST_TEXT, MOST_FILTERS, Word
from holdfast.api.rest.streams import EventStream
from holdfast.errors import InvalidRequest, Problem
from holdfast.ports.events import EventFilter
from holdfast.service.api.use_cases import UseCases
from holdfast.service.audit import LARGEST_PAGE
from holdfast.service.events import LARGEST_PART, EventPart
from holdfast.wire.base import API
from holdfast.wire.events import EVENT_STREAM, AuditPage, EventPage
from holdfast.wire.render_events import audit_view, event_view

if TYPE_CHECKING:
    from holdfast.api.rest.listeners import Listeners

router = APIRouter(prefix=API, tags=["events"])

_PART = 100
_PART_OF_STREAM = 500
_LARGEST_SEQ = 1 << 62
_LONGEST_SEQ = len(str(_LARGEST_SEQ))

After = Annotated[int, Query(ge=0, le=_LARGEST_SEQ, description="The id of the last entry already seen.")]


@router.get(
    "/events",
    summary="Read events, or follow them",
    response_model=EventPage,
    responses={
        200: {
            "description": "A part of the log; with `Accept: text/event-stream` a stream that does not end.",
            "content": {EVENT_STREAM: {"schema": {"type": "string"}}},
        },
        **refusals(404),
    },
)
def events(  # noqa: PLR0913 - the framework's way to declare parameters
    request: Request,
    use: Use,
    *,
    after: After = 0,
    limit: Annotated[int, Query(ge=1, le=LARGEST_PART, description="Of a page; a stream has no end.")] = _PART,
    job: Word = None,
    type: Annotated[  # noqa: A002 - the parameter's name
        list[str] | None, Query(max_length=MOST_FILTERS, description="Such as `job.failed`, or a family: `job`.")
    ] = None,
    queue: Word = None,
    accept: Annotated[str, Header(include_in_schema=False)] = "",
    last_event_id: Annotated[
        str | None,
        Header(max_length=LONGEST_TEXT, description="What a stream resumes after; takes precedence over `after`."),
    ] = None,
) -> Response:
    """Read the events after a place, in order; or follow them: each is sent once it is durable."""
    where = use.events.filter(job=job, types=type or (), queue=queue)
    if EVENT_STREAM in accept:
        listeners: Listeners = request.app.state.listeners
        begin = after if last_event_id is None else _read_id(last_event_id)
        read = partial(_part, use, where, _PART_OF_STREAM)
        return EventStream(listeners, read, begin)
    part = _part(use, where, limit, after)
    return answer(EventPage(items=[event_view(event) for event in part.events], next=part.next_after, last=part.last))


def _part(use: UseCases, where: EventFilter, limit: int, after: int) -> EventPart:
    return use.events.part(where, after=after, limit=limit)


def _read_id(text: str) -> int:
    digits = text.strip()
    if not digits:
        return 0
    if digits.isascii() and digits.isdecimal() and len(digits) <= _LONGEST_SEQ and int(digits) <= _LARGEST_SEQ:
        return int(digits)
    problem = Problem("header.Last-Event-ID", f"{text!r} is not an event id", hint="send the id of the last one seen")
    raise InvalidRequest(problems=[problem])


@router.get("/audit", summary="Read the audit log", response_model=AuditPage, responses=refusals())
def audit(use: Use, after: After = 0, limit: Annotated[int, Query(ge=1, le=LARGEST_PAGE)] = _PART) -> Response:
    """List what operators did and what they were refused, oldest first."""
    entries = use.audit.page(after=after, limit=limit)
    return answer(AuditPage(items=[audit_view(entry) for entry in entries], next=entries[-1].seq if entries else after))
