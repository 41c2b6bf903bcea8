"""Collects the events of a tick beside its changes, so that both are one commit.

A status that an attempt enters and leaves within one tick gets no event.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from holdfast.domain import event_mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.domain.events import EventRecord
    from holdfast.domain.job import Attempt, Job, Run
    from holdfast.ports.store import Changes


class Outbox:
    """The events since the last commit, written into the changes as they happen."""

    def __init__(self) -> None:
        """Start empty."""
        self._numbers = count()
        self._ended: dict[str, Attempt] = {}
        """Attempts that ended and whose job has not moved on yet, by job id; both happen in one step."""
        self._moves: dict[str, int] = {}
        """The number of the last status event of each attempt in flight, by job id."""

    def started(self, changes: Changes, job: Job, attempt: Attempt, runs: Sequence[Run]) -> None:
        """Note that a job's attempt was given its places."""
        self._write(changes, (event_mapping.started(job, attempt, runs),))

    def attempt_moved(self, changes: Changes, attempt: Attempt) -> None:
        """Note an attempt's new status, replacing one of the same tick."""
        if attempt.status in event_mapping.SHOWN_STATUSES:
            self._forget_move(changes, attempt.job_id)
            self._moves[attempt.job_id] = number = next(self._numbers)
            changes.events[number] = event_mapping.attempt_moved(attempt)

    def attempt_ended(self, changes: Changes, attempt: Attempt) -> None:
        """Note that an attempt is over; its job moves on next."""
        self._forget_move(changes, attempt.job_id)
        self._ended[attempt.job_id] = attempt
        self._write(changes, event_mapping.attempt_ended(attempt))

    def attempt_withdrawn(self, changes: Changes, attempt: Attempt) -> None:
        """Note that an attempt is to be placed anew."""
        self._forget_move(changes, attempt.job_id)

    def job_changed(self, changes: Changes, before: Job, after: Job) -> None:
        """Note a change of a job."""
        self._write(changes, event_mapping.events_of(before, after, self._ended.pop(after.id, None)))

    def emit(self, changes: Changes, record: EventRecord) -> None:
        """Note an event that is about no single job."""
        self._write(changes, (record,))

    def _write(self, changes: Changes, records: Iterable[EventRecord]) -> None:
        for record in records:
            changes.events[next(self._numbers)] = record

    def _forget_move(self, changes: Changes, job_id: str) -> None:
        # One already committed is no longer among the changes, and stays.
        number = self._moves.pop(job_id, None)
        if number is not None:
            changes.events.pop(number, None)
