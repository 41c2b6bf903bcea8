"""The queue of workloads to reconcile, and the heap of times at which some are due.

Each kind has a lane of its own, because children are reconciled before their owners, and each at its own pace.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import islice

BURST_SHARE = 8
"""About how many steps a burst takes, each a transaction."""


@dataclass(slots=True)
class _Lane:
    """The workloads of one kind."""

    new: dict[str, None] = field(default_factory=dict)
    """Those that changed since the last ``take``."""
    waiting: dict[str, None] = field(default_factory=dict)
    """Those left for a later tick."""
    urgent: dict[str, None] = field(default_factory=dict)


class WorkQueue:
    """Keys of workloads, each queued once however often it has changed."""

    def __init__(self) -> None:
        """Start empty."""
        self._lanes: defaultdict[str, _Lane] = defaultdict(_Lane)
        self._due: dict[str, tuple[float, str]] = {}
        """When a workload is due, and its kind."""
        self._heap: list[tuple[float, str]] = []

    def add(self, kind: str, key: str, *, urgent: bool = False) -> None:
        """Have a workload reconciled, in this tick if there is time; urgent ones first."""
        lane = self._lanes[kind]
        lane.new[key] = None
        if urgent:
            lane.urgent[key] = None

    def defer(self, kind: str, key: str) -> None:
        """Have a workload reconciled in the next tick, unless it changes before."""
        self._lanes[kind].waiting[key] = None

    def discard(self, kind: str, key: str) -> None:
        """Take a workload out: it has just been reconciled, or is over."""
        lane = self._lanes[kind]
        lane.new.pop(key, None)
        lane.waiting.pop(key, None)
        lane.urgent.pop(key, None)

    def take(self, kind: str, *, least: int, most: int) -> list[str]:
        """Take workloads out, urgent ones first, then the oldest; the others wait.

        Within the bounds it takes an eighth of what waits: the first of a burst get ahead while the others are worked
        on, and a storm is not worked off in small steps.
        """
        lane = self._lanes[kind]
        lane.waiting.update(lane.new)
        lane.new = {}
        room = min(most, max(least, len(lane.waiting) // BURST_SHARE))
        if room >= len(lane.waiting):
            batch = list(dict.fromkeys((*lane.urgent, *lane.waiting))) if lane.urgent else list(lane.waiting)
            lane.waiting, lane.urgent = {}, {}
            return batch
        chosen = islice(dict.fromkeys((*islice(lane.urgent, room), *islice(lane.waiting, room))), room)
        batch = list(chosen)
        for key in batch:
            lane.waiting.pop(key, None)
            lane.urgent.pop(key, None)
        return batch

    def take_new(self, kind: str) -> list[str]:
        """Take out what has changed since the last ``take``."""
        lane = self._lanes[kind]
        batch, lane.new = list(lane.new), {}
        for key in batch:
            lane.waiting.pop(key, None)
            lane.urgent.pop(key, None)
        return batch

    def has_more(self) -> bool:
        """Whether anything is to be reconciled at once."""
        return any(lane.new or lane.waiting for lane in self._lanes.values())

    def forget(self, key: str) -> None:
        """Cancel a workload's reconciliation."""
        self._due.pop(key, None)

    def wake_at(self, kind: str, key: str, when: float | None) -> None:
        """Have a workload reconciled at a time, replacing any earlier one; ``None`` is never."""
        known = self._due.get(key)
        if when is None:
            self._due.pop(key, None)
        elif known is None or known[0] != when:
            self._due[key] = (when, kind)
            heapq.heappush(self._heap, (when, key))

    def wake_due(self, now: float) -> None:
        """Add the workloads whose time has come."""
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
