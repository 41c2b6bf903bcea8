"""Emits events about the progress of attempts at a bounded rate; runs' rows are updated more often."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from holdfast.domain.events.jobs import AttemptProgressed
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.lifecycle import RUN_TERMINAL

if TYPE_CHECKING:
    from holdfast.controller.active import Active
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Run

PROGRESS_TOLD_EVERY_S = 30.0
"""Seconds between two progress events of an attempt, at least."""
MOST_TOLD = 256
"""Longest text of a report in an event, in characters."""


class LastProgress(NamedTuple):
    """The content of an attempt's last progress event."""

    uid: str
    """The run that speaks for the attempt: the lowest rank among those that reported and still run."""
    rank: int
    progress: str = ""
    """Empty until a report of this run was emitted."""
    at_s: float = float("-inf")
    """When, by the monotonic clock."""


class ProgressEvents:
    """The last progress event of each reporting attempt; not kept over a restart of the controller."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self.last_by_attempt: dict[tuple[str, int], LastProgress] = {}
        """By job id and number of the attempt."""

    def heard(self, active: Active, run: Run) -> None:
        """Choose the run that speaks for an attempt after one of its runs reported."""
        key = active.attempt.key
        last_told = self.last_by_attempt.get(key)
        if last_told is None:
            self.last_by_attempt[key] = LastProgress(run.uid, run.rank)
        elif run.rank < last_told.rank or not _runs(active, last_told.uid):
            self.last_by_attempt[key] = LastProgress(run.uid, run.rank, at_s=last_told.at_s)

    def tell(self, now: float, steady_s: float) -> None:
        """Emit new reports that are due, and forget attempts that are over."""
        for key, last_told in list(self.last_by_attempt.items()):
            active = self._state.active.get(key[0])
            if active is None or active.attempt.key != key:
                del self.last_by_attempt[key]
            elif steady_s - last_told.at_s >= PROGRESS_TOLD_EVERY_S and _runs(active, last_told.uid):
                progress = active.runs[last_told.uid].progress[:MOST_TOLD]
                if progress != last_told.progress:
                    self.last_by_attempt[key] = LastProgress(last_told.uid, last_told.rank, progress, steady_s)
                    self._state.emit(EventRecord(key[0], now, AttemptProgressed(key[1], last_told.rank, progress)))


def _runs(active: Active, uid: str) -> bool:
    run = active.runs.get(uid)
    return run is not None and run.status not in RUN_TERMINAL
