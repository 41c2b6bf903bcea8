"""Calls about events: the event log, read or followed, and the audit log.

Following survives a lost connection: it resumes after the last event received, so that none is missed or repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from holdfast.domain.record import Struct
from holdfast.errors import Unavailable
from holdfast.wire.base import API
from holdfast.wire.events import EVENT_STREAM, AuditPage, AuditView, EventPage, EventView

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from holdfast.client.connection import Connection

LARGEST_PART = 1000
PATIENCE_S = 60.0
"""Seconds for which following tries to reach the server again."""
_FIRST_PAUSE_S = 0.1
FOLLOWED_AGAIN = "events are followed again"
_WORTH_A_WORD = 3
"""How often in a row following must fail before that is reported."""
_LONGEST_PAUSE_S = 2.0
_LOOK_EVERY_S = 0.25


class EventsWanted(TypedDict, total=False):
    """A selection of events; every field that is set must hold."""

    job: str | None
    """Events of this job: an id, a name or a unique prefix of an id."""
    types: Iterable[str]
    """A type such as ``job.failed``, or a family such as ``job``."""
    queue: str | None
    """Events of this queue's jobs."""
    group: str | None
    """Events of this group's jobs; a slash at its end includes the groups below it."""
    job_set: str | None
    """Events of this job set, by name or id, and of its jobs."""


class EventCalls:
    """The event log and the audit log."""

    _connection: Connection

    def events(
        self,
        *,
        after: int = 0,
        follow: bool = False,
        patience_s: float = PATIENCE_S,
        say: Callable[[str], object] = lambda _: None,
        **filters: Unpack[EventsWanted],
    ) -> Iterator[EventView]:
        """Read events in order.

        Args:
            after: The id of the last event already seen.
            follow: Whether to go on with new events, for ever; a lost connection is resumed.
            patience_s: Seconds for which to try to resume it.
            say: Called with the reason when following is interrupted, and when it resumes; not for short losses.
            filters: The selection.

        Raises:
            Unavailable: While following, the server could not be reached for that long.
        """
        types = list(filters.get("types", ())) or None
        where = {"type": types, **{name: filters.get(name) for name in ("job", "queue", "job_set", "group")}}
        if not follow:
            return self._past(where, after)
        return self._live(where, after, patience_s, say) if self._connection.streams else self._looked_for(where, after)

    def last_event(self) -> int:
        """Return the id of the newest event, 0 before the first; pass it as ``after`` to see only new events."""
        return self._part({"limit": 1}, 0).last

    def audit(self) -> Iterator[AuditView]:
        """Read the audit log, oldest entry first."""
        after = 0
        while True:
            page = self._connection.get(f"{API}/audit", AuditPage, {"after": after, "limit": LARGEST_PART})
            yield from page.items
            after = page.next
            if len(page.items) < LARGEST_PART:
                return

    def _part(self, where: Mapping[str, Any], after: int) -> EventPage:
        return self._connection.get(f"{API}/events", EventPage, {"limit": LARGEST_PART, **where, "after": after})

    def _past(self, where: Mapping[str, Any], after: int) -> Iterator[EventView]:
        while True:
            part = self._part(where, after)
            yield from part.items
            after = part.next
            if len(part.items) < LARGEST_PART:
                return

    def _looked_for(self, where: Mapping[str, Any], after: int) -> Iterator[EventView]:
        """Follow within one process, where a response always comes whole."""
        while True:
            part = self._part(where, after)
            yield from part.items
            after = part.next
            if len(part.items) < LARGEST_PART:
                self._connection.pause(_LOOK_EVERY_S)

    def _live(
        self, where: Mapping[str, Any], after: int, patience_s: float, say: Callable[[str], object]
    ) -> Iterator[EventView]:
        for message in self._resumed(where, str(after), patience_s, say):
            if message.data:
                yield EventView.model_validate_json(message.data)

    def _resumed(
        self, where: Mapping[str, Any], last: str, patience_s: float, say: Callable[[str], object]
    ) -> Iterator[Message]:
        """Read a stream for ever, resuming after the last message."""
        waited_s, pause_s, failures = 0.0, _FIRST_PAUSE_S, 0
        while True:
            try:
                for message in self._stream(where, last):
                    failures = _over(failures, say)
                    last, waited_s, pause_s = message.last_id or last, 0.0, _FIRST_PAUSE_S
                    yield message
            except Unavailable as error:
                if waited_s >= patience_s:
                    raise
                failures += 1
                if failures == _WORTH_A_WORD:
                    say(f"no events are followed for now: {error.message}")
            self._connection.pause(pause_s)
            waited_s, pause_s = waited_s + pause_s, min(2 * pause_s, _LONGEST_PAUSE_S)

    def _stream(self, where: Mapping[str, Any], last: str) -> Iterator[Message]:
        headers = {"Accept": EVENT_STREAM, "Last-Event-ID": last}
        return messages(self._connection.lines(f"{API}/events", params=where, headers=headers))


def _over(failures: int, say: Callable[[str], object]) -> int:
    """Report that following has resumed, if its interruption was reported; returns the new number of failures."""
    if failures >= _WORTH_A_WORD:
        say(FOLLOWED_AGAIN)
    return 0


class Message(Struct, frozen=True):
    """One server-sent event."""

    data: str
    last_id: str
    """Where to resume after it; it may come without data."""


def messages(lines: Iterable[str]) -> Iterator[Message]:
    """Read server-sent events; an event that is cut off is dropped."""
    data: list[str] = []
    last_id = ""
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data or last_id:
                yield Message("\n".join(data), last_id)
            data, last_id = [], ""
        elif name == "data":
            data.append(value)
        elif name == "id":
            last_id = value
