"""Reconciles the workloads in the work queue, of any kind; the failure of one does not affect the others."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import structlog

from holdfast.domain.events import EventRecord, WorkloadQuarantined, WorkloadReleased
from holdfast.domain.workloads.base import UNREAD, Quarantined
from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.controller.kind import Kind
    from holdfast.controller.state import ControllerState

_LONGEST_MESSAGE = 500
_log = structlog.get_logger(__name__)


class Quarantine:
    """The workloads that are left alone, by id.

    An exception while a workload is restored, reconciled, placed or acted on is a bug of ours or corrupt stored data.
    The workload is then left alone, and says so, until someone makes a request about it or a new controller starts.
    What its programs do is still recorded.
    """

    def __init__(self, state: ControllerState) -> None:
        """Start with none."""
        self._state = state
        self._known: dict[str, Quarantined] = {}

    def __len__(self) -> int:
        """Count them."""
        return len(self._known)

    def __contains__(self, key: str) -> bool:
        """Whether a workload is among them."""
        return key in self._known

    def restore(self, stored: Mapping[str, Quarantined], now: float) -> None:
        """Release what the last controller quarantined: each is tried once more."""
        for key, each in stored.items():
            if key not in self._known:
                self._released(each, now)

    def attempt(self, kind: str, key: str, now: float, doing: str, call: Callable[[], None]) -> None:
        """Do something with one workload, unless it is quarantined; quarantine it if that fails."""
        if key in self._known:
            return
        try:
            call()
        except Unavailable:
            raise  # a fault of the store affects all workloads
        except Exception as error:  # noqa: BLE001 - any bug with this workload
            _log.exception("a workload was quarantined", workload=key, kind=kind, doing=doing)
            message = f"{doing}: {type(error).__name__}: {error}"[:_LONGEST_MESSAGE]
            self._put(Quarantined(key, kind, now, message))

    def attempt_to_take_in(self, kind: str, key: str, now: float, call: Callable[[], None]) -> None:
        """Take a workload in; if that fails, nothing of it is kept in memory."""
        self.attempt(kind, key, now, "taking it in", call)
        if key in self._known:
            self._state.drop(key)

    def attempt_all(
        self, kind: str, keys: Iterable[str], now: float, doing: str, call: Callable[[list[str]], None]
    ) -> None:
        """Do something with many workloads at once; if that fails, with one after the other."""
        batch = [key for key in keys if key not in self._known] if self._known else list(keys)
        if not batch:
            return
        try:
            call(batch)
        except Unavailable:
            raise
        except Exception:  # noqa: BLE001 - reported once the workload is known
            for key in batch:
                self.attempt(kind, key, now, doing, partial(call, [key]))

    def release(self, key: str, now: float) -> None:
        """Look after a workload again; one that is not quarantined is ignored."""
        known = self._known.pop(key, None)
        if known is not None:
            self._released(known, now)
            if known.kind != UNREAD:
                self._state.queue.add(known.kind, key)

    def _put(self, quarantined: Quarantined) -> None:
        self._known[quarantined.id] = quarantined
        self._state.quarantine(quarantined)
        event = WorkloadQuarantined(quarantined.id, quarantined.kind, quarantined.message)
        self._state.emit(EventRecord(None, quarantined.since, event))

    def _released(self, known: Quarantined, now: float) -> None:
        self._state.release(known.id)
        self._state.emit(EventRecord(None, now, WorkloadReleased(known.id, known.kind)))


_MOST_TURNS = 32
"""More than anything needs until nothing more changes: a decision, the jobs that go, those that come, how they look."""


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
        self.run_changed(now)

    def run_changed(self, now: float) -> None:
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
