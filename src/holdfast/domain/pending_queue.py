"""The jobs that wait for a place, grouped so that the work of a round does not grow with their number.

A queue's jobs of equal shape share a group and are tried once per round; within a group priority goes first, then
order of submission.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.domain.placement import Shape


class GroupKey(NamedTuple):
    """What the jobs of a group have in common."""

    queue: str
    shape: Shape
    retry: bool
    """Whether they have run before."""


class Waiting(NamedTuple):
    """One waiting job; sorts by its turn within its group."""

    turn: int
    """Negated priority: higher priorities first."""
    seq: int
    """Order of submission, kept over retries."""
    job_id: str
    since: float
    """When it became ready to be placed."""
    pod: bool = False
    """Whether it is one pod of a job, by its ticket, and not a job."""


@dataclass(slots=True)
class _Entry:
    key: GroupKey
    waiting: Waiting


class PendingQueue:
    """A mutable index of waiting jobs; adding and removing cost O(log n), looking at heads O(groups)."""

    def __init__(self) -> None:
        """Start empty."""
        self._entries: dict[str, _Entry] = {}
        self._heaps: dict[GroupKey, list[Waiting]] = {}

    def __len__(self) -> int:
        """Count the waiting jobs."""
        return len(self._entries)

    def __contains__(self, job_id: str) -> bool:
        """Whether the job waits."""
        return job_id in self._entries

    def add(self, key: GroupKey, waiting: Waiting) -> None:
        """Add a job, or move it when it waits already."""
        self._entries[waiting.job_id] = _Entry(key, waiting)
        heapq.heappush(self._heaps.setdefault(key, []), waiting)

    def remove(self, job_id: str) -> None:
        """Remove a job; one that does not wait is ignored."""
        self._entries.pop(job_id, None)

    def head(self, key: GroupKey) -> Waiting | None:
        """Return whose turn it is in a group, or ``None`` when nobody waits."""
        heap = self._heaps.get(key)
        while heap:
            first = heap[0]
            entry = self._entries.get(first.job_id)
            if entry is not None and entry.waiting is first:
                return first
            heapq.heappop(heap)
        self._heaps.pop(key, None)
        return None

    def heads(self) -> Iterator[tuple[GroupKey, Waiting]]:
        """Yield the groups and their heads, in no particular order."""
        for key in list(self._heaps):
            first = self.head(key)
            if first is not None:
                yield key, first
