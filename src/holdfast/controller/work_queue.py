"""The queue of workloads to reconcile, and a heap of due times.

Each kind has a lane of its own, because children are reconciled before their owners, and each kind at its own pace.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from itertools import islice

LINGER_S = 1.0
"""Seconds that a workload waits if only figures shown to people have changed."""
BURST_SHARE = 8
"""About how many steps a burst takes, each of them a transaction."""


class WorkQueue:
    """Keys of workloads; each is queued once however often it changes."""

    def __init__(self) -> None:
        self._new: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Workloads that changed since the last ``take``, by kind."""
        self._waiting: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Workloads left for a later tick, by kind."""
        self._urgent: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._due: dict[str, tuple[float, str]] = {}
        """When a workload is due, and its kind."""
        self._heap: list[tuple[float, str]] = []
        self._now = 0.0

    def add(self, kind: str, key: str, *, urgent: bool = False) -> None:
        """Have a workload reconciled, in this tick if there is time; urgent ones first."""
        self._new[kind][key] = None
        if urgent:
            self._urgent[kind][key] = None

    def defer(self, kind: str, key: str) -> None:
        """Have a workload reconciled in the next tick, unless it changes before."""
        self._waiting[kind][key] = None

    def linger(self, kind: str, key: str) -> None:
        """Have a workload reconciled within a second, or earlier if it is due or changes."""
        due, when = self._due.get(key), self._now + LINGER_S
        if due is None or due[0] > when:
            self.wake_at(kind, key, when)

    def discard(self, kind: str, key: str) -> None:
        """Remove a workload that was just reconciled or is over."""
        self._new[kind].pop(key, None)
        self._waiting[kind].pop(key, None)
        self._urgent[kind].pop(key, None)

    def take(self, kind: str, *, least: int, most: int) -> list[str]:
        """Take out workloads: urgent ones first, then the oldest; the others wait.

        Within the bounds it takes an eighth of the queue: the first of a burst get ahead while the others are handled,
        and a storm is not worked off in small steps.
        """
        waiting, urgent = self._waiting[kind], self._urgent[kind]
        waiting.update(self._new.pop(kind, {}))
        room = min(most, max(least, len(waiting) // BURST_SHARE))
        if room >= len(waiting):
            batch = list(dict.fromkeys((*urgent, *waiting))) if urgent else list(waiting)
            del self._waiting[kind], self._urgent[kind]
            return batch
        batch = list(islice(dict.fromkeys((*islice(urgent, room), *islice(waiting, room))), room))
        for key in batch:
            waiting.pop(key, None)
            urgent.pop(key, None)
        return batch

    def take_new(self, kind: str) -> list[str]:
        """Take out what has changed since the last ``take``."""
        batch = list(self._new.pop(kind, ()))
        for key in batch:
            self._waiting[kind].pop(key, None)
            self._urgent[kind].pop(key, None)
        return batch

    def has_new(self) -> bool:
        """Whether anything has changed since it was last taken out."""
        return any(self._new.values())

    def has_more(self) -> bool:
        """Whether anything is to be reconciled at once."""
        return self.has_new() or any(self._waiting.values())

    def forget(self, key: str) -> None:
        """Cancel a workload's reconciliation."""
        self._due.pop(key, None)

    def wake_at(self, kind: str, key: str, when: float | None) -> None:
        """Have a workload reconciled at a time, replacing any earlier one; ``None`` for never."""
        due = self._due.get(key)
        if when is None:
            self._due.pop(key, None)
        elif due is None or due[0] != when:
            self._due[key] = (when, kind)
            heapq.heappush(self._heap, (when, key))

    def wake_due(self, now: float) -> None:
        """Add the workloads whose time has come."""
        self._now = now
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            due = self._due.get(key)
            if due is not None and due[0] == when:
                del self._due[key]
                self.add(due[1], key)

    def next_due(self) -> float | None:
        """Return when the next workload is due."""
        while self._heap:
            when, key = self._heap[0]
            due = self._due.get(key)
            if due is not None and due[0] == when:
                return when
            heapq.heappop(self._heap)
        return None
