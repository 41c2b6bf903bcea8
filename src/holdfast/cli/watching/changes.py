"""A list that events keep up to date, so that it is not read again and again.

Each look asks for the newest event and, if there are new ones, for the jobs that they are about. Other kinds are few,
and are read again after any event. What changes without an event, such as when a node was last seen or that a job was
pruned, is read again every few seconds.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.cli.nouns import Noun
from holdfast.cli.things import MOST_IDS, Selection, batched
from holdfast.cli.watching.follow import ENDED
from holdfast.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.cli.nouns import NounName
    from holdfast.client import Client

AGAIN_S = 5.0
"""How often what changes without an event is read again."""
MOST_EVENTS = 5_000
"""After this many events the whole list is read again: that costs less, and a slow reader does not fall behind."""
MOST_CHECKED = 1_000
"""Ended jobs whose existence is checked at once."""
_JOBS = "jobs/"


class ChangingList:
    """The things of a selection, by key; it continues where it was when the server comes back."""

    def __init__(
        self, selection: Selection, beside: Callable[[Client], Sequence[Any]], now: Callable[[], float]
    ) -> None:
        """Read nothing yet.

        Args:
            selection: The things to list.
            beside: Reads the arrays that are shown among jobs.
            now: Monotonic seconds.
        """
        self._selection, self._beside, self._now = selection, beside, now
        self._seen: int | None = None
        self._read_at = 0.0
        self._checked = 0
        self.things: dict[str, Any] = {}
        self.others: dict[str, Any] = {}
        """The arrays that are shown among jobs."""
        self.deleted: dict[str, Any] = {}
        """What was listed and is gone, as last seen, until ``forget_deleted`` is called."""
        self.deleted_others: dict[str, Any] = {}

    def look(self, client: Client) -> bool:
        """Update the list; returns whether anything may have changed."""
        last = client.last_event()
        seen = self._seen
        if seen is None or last < seen or (not self._by_job and (last > seen or self._due)):
            self._read(client)
        elif last == seen and not self._due:
            return False
        else:
            self._read_changed(client, seen, last)
        self._seen = last
        return True

    def forget_deleted(self) -> None:
        """Remember that what was deleted has been shown."""
        self.deleted.clear()
        self.deleted_others.clear()

    @property
    def _by_job(self) -> bool:
        return self._selection.noun == Noun.JOB and not self._selection.names

    @property
    def _due(self) -> bool:
        return self._now() - self._read_at >= AGAIN_S

    def _read(self, client: Client) -> None:
        noun, before = self._selection.noun, self.things
        things = {thing.id if self._by_job else _key(noun, thing): thing for thing in self._selected(client)}
        self._note_deleted(client, {key: thing for key, thing in before.items() if key not in things})
        self.things = things
        self._read_beside(client)
        self._read_at = self._now()

    def _selected(self, client: Client) -> list[Any]:
        """Read the selection; what it names has to exist only at first."""
        selection, things = self._selection, []
        if self._seen is None or not selection.names:
            return selection.read(client)
        for name in selection.names:
            with suppress(NotFound):
                things += replace(selection, names=(name,)).read(client)
        return things

    def _read_beside(self, client: Client) -> None:
        beside = {other.id: other for other in self._beside(client)}
        left = {key: other for key, other in self.others.items() if key not in beside}
        existing = {array.id for array in client.arrays()} if left else ()
        self.deleted_others |= {key: other for key, other in left.items() if key not in existing}
        self.others = beside

    def _read_changed(self, client: Client, seen: int, last: int) -> None:
        """Read the jobs of new events and, when due, those that change without an event."""
        if last > seen:
            self._read_jobs(client, seen)
        if self._due:
            self._read_running(client)
            self._check_ended(client)
            self._read_at = self._now()

    def _read_jobs(self, client: Client, seen: int) -> None:
        events = list(islice(client.events(after=seen), MOST_EVENTS))
        if len(events) == MOST_EVENTS:
            self._read(client)
            return
        changed = list(
            dict.fromkeys(event.subject.removeprefix(_JOBS) for event in events if event.subject.startswith(_JOBS))
        )
        self._take(client, changed)
        self._read_beside(client)

    def _read_running(self, client: Client) -> None:
        """Read the progress of programs, which is seldom an event; if many run, of the newest only."""
        running = [job_id for job_id, job in self.things.items() if job.state == "Running"]
        self._take(client, running[-MOST_IDS:])

    def _check_ended(self, client: Client) -> None:
        """Check that ended jobs still exist, a part of them at a time if they are many: pruning is no event.

        If some are gone, others may be, and the next part is checked at once.
        """
        while True:
            ended = [job_id for job_id, job in self.things.items() if job.state in ENDED]
            begin = self._checked if self._checked < len(ended) else 0
            some = ended[begin : begin + MOST_CHECKED]
            gone = self._note_deleted(client, {job_id: self.things[job_id] for job_id in some})
            self._drop(gone)
            self._checked = begin + len(some) - len(gone)
            if not gone:
                return

    def _drop(self, job_ids: Iterable[str]) -> None:
        for job_id in job_ids:
            del self.things[job_id]

    def _take(self, client: Client, ids: Sequence[str]) -> None:
        by_id = {job.id: job for some in batched(ids) for job in self._selection.of_ids(client, some)}
        left = {job_id: self.things[job_id] for job_id in ids if job_id in self.things and job_id not in by_id}
        self._note_deleted(client, left)
        self._drop(left)
        self.things |= {job_id: by_id[job_id] for job_id in ids if job_id in by_id}

    def _note_deleted(self, client: Client, left: Mapping[str, Any]) -> Sequence[str]:
        """Note which of these no longer exist, rather than no longer match; returns their keys."""
        gone = _gone(client, self._selection.noun, left) if left else ()
        self.deleted |= {key: left[key] for key in gone}
        return gone


def _gone(client: Client, noun: NounName, left: Mapping[str, Any]) -> Sequence[str]:
    """Return the keys of things that no longer exist."""
    if noun == Noun.JOB:
        states = client.states([job.id for job in left.values()])
        return [key for key, job in left.items() if job.id not in states]
    existing = {_key(noun, thing) for thing in Selection(noun).read(client)}
    return [key for key in left if key not in existing]


def _key(noun: NounName, thing: object) -> str:
    """Return a key that no other thing of its kind has."""
    parts = [str(getattr(thing, field, "")) for field in ("id", "executor", "name")]
    return "/".join([str(noun), *parts])
