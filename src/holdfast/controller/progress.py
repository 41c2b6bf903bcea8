"""Says as events how far attempts are, at a bounded rate; runs' rows have every report of a few seconds."""

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
"""At least between two such events of an attempt."""
MOST_TOLD = 256
"""Characters of a report that its event has."""


class LastProgress(NamedTuple):
    """What an attempt's last event said."""

    uid: str
    """Of the run that speaks for the attempt: the lowest rank of those that reported and still run."""
    rank: int
    progress: str = ""
    """Empty while nothing of this run was told."""
    at_s: float = float("-inf")
    """By the monotonic clock."""


class ProgressEvents:
    """What was told of each attempt that reports; after a restart of the controller it is not known any more."""

    def __init__(self, state: ControllerState) -> None:
        """Start with nothing told."""
        self._state = state
        self.last_by_attempt: dict[tuple[str, int], LastProgress] = {}
        """By job id and number of the attempt."""

    def heard(self, active: Active, run: Run) -> None:
        """Choose who speaks for an attempt one of whose runs made a report."""
        key = active.attempt.key
        last_told = self.last_by_attempt.get(key)
        if last_told is None:
            self.last_by_attempt[key] = LastProgress(run.uid, run.rank)
        elif run.rank < last_told.rank or not _runs(active, last_told.uid):
            self.last_by_attempt[key] = LastProgress(run.uid, run.rank, at_s=last_told.at_s)

    def tell(self, now: float, steady_s: float) -> None:
        """Emit what is new and due, and forget the attempts that are over."""
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
