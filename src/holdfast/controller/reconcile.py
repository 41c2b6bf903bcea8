"""Reconciles the workloads in the work queue, of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.kind import Kind
    from holdfast.controller.quarantine import Quarantine
    from holdfast.controller.state import ControllerState

_MOST_TURNS = 32
"""More than anything needs to settle: a decision, the jobs that go, those that come, how they look."""


class Reconciler:
    """Works the queue off, children before their owners."""

    def __init__(self, state: ControllerState, kinds: Sequence[Kind], quarantine: Quarantine) -> None:
        """Remember the kinds, children first."""
        self._queue = state.queue
        self._quarantine = quarantine
        self._kinds = kinds

    def run(self, now: float) -> None:
        """Reconcile what is due and what waits, as much as the pace of each kind allows."""
        self._queue.wake_due(now)
        for kind in self._kinds:
            keys = self._queue.take(kind.name, least=kind.pace.least, most=kind.pace.most)
            turns = 0
            while keys:
                self._reconcile(kind, keys, now)
                turns += 1
                keys = self._queue.take_new(kind.name) if turns < _MOST_TURNS else []
        self.settle(now)

    def settle(self, now: float) -> None:
        """Reconcile what has just changed, until nothing more does."""
        for _ in range(_MOST_TURNS):
            moved = False
            for kind in self._kinds:
                keys = self._queue.take_new(kind.name)
                moved = moved or bool(keys)
                self._reconcile(kind, keys, now)
            if not moved:
                return

    def _reconcile(self, kind: Kind, keys: list[str], now: float) -> None:
        self._quarantine.attempt_all(kind.name, keys, now, "reconciling it", lambda batch: kind.reconcile(batch, now))
