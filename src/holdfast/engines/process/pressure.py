"""Watches how much memory and disk this machine has left, and reports shortages.

It runs in a thread of its own, because a disk may hang. A run evicted for lack of disk loses its work folder, as an
evicted pod does; its log and checkpoints stay.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import TYPE_CHECKING

from holdfast.domain.placement.pressure import Pressure, judge
from holdfast.domain.shortage import Shortage
from holdfast.engines.process import usage
from holdfast.engines.process.files import job_directory
from holdfast.errors import HoldfastError
from holdfast.ports.engine import RunPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from holdfast.domain.placement.pressure import Level, Threshold
    from holdfast.ports.engine import Observation

LOOK_EVERY_S = 1.0
PLACES_EVERY_S = 10.0
"""Seconds between looks at where programs work."""
_DISK = frozenset({Shortage.DISK, Shortage.INODES})
_log = logging.getLogger(__name__)


class PressureWatch:
    """Reports what a machine lacks: at every look while it lacks anything, and once when it no longer does."""

    def __init__(
        self,
        directory: Path,
        thresholds: Sequence[Threshold],
        *,
        observe: Callable[[], Mapping[str, Observation]],
        evicted: Callable[[], Sequence[str]],
        clear: Callable[[Sequence[str]], None],
        tell: Callable[[Pressure | None], None],
    ) -> None:
        """Begin to watch.

        Args:
            directory: The directory of the runs' files.
            thresholds: What must be available.
            observe: Returns the present runs.
            evicted: Returns the uids of evicted runs that are over, each once.
            clear: Has the work directories of runs deleted, by the runs' directories, without waiting.
            tell: Called from a thread.
        """
        self._directory, self._path = os.fspath(directory), directory
        self._thresholds = thresholds
        self._measured = frozenset(threshold.of for threshold in thresholds)
        self._observe, self._evicted, self._clear, self._tell = observe, evicted, clear, tell
        self._look = 0
        self._since: Mapping[Threshold, float] = {}
        self._places: list[str] = []
        self._places_at = float("-inf")
        self._lack_reported = False
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="holdfast-pressure", daemon=True).start()

    def close(self) -> None:
        """Stop watching."""
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._once(time.monotonic())
            except (OSError, ValueError, HoldfastError):  # The next look may succeed.
                _log.exception("could not look at how much memory and disk there is")
            self._closed.wait(LOOK_EVERY_S)

    def _once(self, now: float) -> None:
        self._look += 1
        running = [uid for uid, seen in self._observe().items() if seen.phase is not RunPhase.FINISHED]
        lacks, self._since = judge(self._thresholds, self._levels(running, now), self._since, now)
        disk = next((lack for lack in lacks if lack.of in _DISK), None)
        evicted = [self._folder(uid) for uid in self._evicted()]
        if evicted and disk is not None:
            self._clear(evicted)
        if not lacks and not self._lack_reported:
            return
        lacking = {lack.of: lack.where for lack in lacks if lack.due}
        folders = {uid: self._folder(uid) for uid in running}
        uses = usage.used(self._directory, folders, lacking) if lacking and folders else {}
        self._lack_reported = bool(lacks)
        if not self._closed.is_set():
            self._tell(Pressure(self._look, lacks, uses) if lacks else None)

    def _levels(self, running: Sequence[str], now: float) -> list[Level]:
        levels = usage.memory_levels() if Shortage.MEMORY in self._measured else []
        if self._measured & _DISK:
            if now - self._places_at >= PLACES_EVERY_S:
                self._places_at = now
                self._places = usage.working_directories(usage.programs(self._directory)) if running else []
            levels += usage.disk_levels(self._directory, self._places)
        return levels

    def _folder(self, uid: str) -> str:
        job_id, attempt, rank, _ = uid.rsplit("-", 3)
        return f"{job_directory(self._path, job_id)}/{attempt}.{rank}"
