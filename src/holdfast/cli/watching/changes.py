"""A list that is kept up to date without reading it again and again: events say what changed.

Each look asks for the newest event, and where there is one more, only for those jobs it is about. Other kinds are few
and are read again when anything happened. What changes without an event, such as when a node was last seen, is read
again every few seconds.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.cli.nouns import Noun
from holdfast.cli.things import MOST_IDS, batched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.cli.things import Selection
    from holdfast.client import Client

AGAIN_S = 5.0
"""How often what changes without an event is read again."""
MOST_EVENTS = 5_000
"""After more than so many the whole list is read again: that costs less, and a slow reader does not fall behind."""
_JOBS = "jobs/"


class ChangingList:
    """What a selection is of, by key; it goes on where it was when the server comes back."""

    def __init__(
        self, selection: Selection, beside: Callable[[Client], Sequence[Any]], now: Callable[[], float]
    ) -> None:
        """Read nothing yet.

        Args:
            selection: What is listed.
            beside: Reads what is shown among jobs.
            now: Seconds that never go back.
        """
        self._selection, self._beside, self._now = selection, beside, now
        self._seen: int | None = None
        self._read_at = 0.0
        self.things: dict[str, Any] = {}
        self.others: dict[str, Any] = {}
        """What is shown among jobs."""

    def look(self, client: Client) -> bool:
        """Bring it up to date; returns whether anything may have changed."""
        last = client.last_event()
        seen, due = self._seen, self._now() - self._read_at >= AGAIN_S
        if seen is None or last < seen:
            self._read(client)
        elif last > seen and self._by_job:
            self._read_jobs(client, seen)
        elif last > seen or (due and not self._by_job):
            self._read(client)
        elif due:
            self._read_running(client)
        else:
            return False
        self._seen = last
        return True

    @property
    def _by_job(self) -> bool:
        return self._selection.noun is Noun.JOB and not self._selection.names

    def _read(self, client: Client) -> None:
        noun = self._selection.noun
        self.things = {thing.id if self._by_job else _key(noun, thing): thing for thing in self._selection.read(client)}
        self._read_beside(client)
        self._read_at = self._now()

    def _read_beside(self, client: Client) -> None:
        self.others = {one.id: one for one in self._beside(client)}

    def _read_jobs(self, client: Client, seen: int) -> None:
        events = list(islice(client.events(after=seen), MOST_EVENTS))
        if len(events) == MOST_EVENTS:
            self._read(client)
            return
        told = list(dict.fromkeys(one.subject.removeprefix(_JOBS) for one in events if one.subject.startswith(_JOBS)))
        self._take(client, told)
        self._read_beside(client)

    def _read_running(self, client: Client) -> None:
        """Read how far programs say they are, which is seldom an event; of the newest only, where many run."""
        running = [job_id for job_id, job in self.things.items() if job.state == "Running"]
        self._take(client, running[-MOST_IDS:])
        self._read_at = self._now()

    def _take(self, client: Client, ids: Sequence[str]) -> None:
        known = {job.id: job for some in batched(ids) for job in self._selection.of_ids(client, some)}
        for job_id in ids:
            if job_id in known:
                self.things[job_id] = known[job_id]
            else:
                self.things.pop(job_id, None)


def _key(noun: Noun, thing: object) -> str:
    """Name a thing so that no other of its kind is named so."""
    parts = [str(getattr(thing, field, "")) for field in ("id", "executor", "name")]
    return "/".join([str(noun), *parts])
