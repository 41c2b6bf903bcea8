"""Looks at living runs now and then: progress, log size, memory where no cgroup limits it, and escaped processes."""

from __future__ import annotations

from . import files, moment, processes
from .records import LOG, PROGRESS, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Run
    from .supervise import Supervisor

FILES_EVERY_S = 0.25
MEMORY_EVERY_S = 0.05
SWEEP_EVERY_S = 0.5
SWEEP_DELAY_S = 0.05
"""From an end to the first search for what it left behind, so that many ends share one."""
_SHARE = 20
"""A look is taken at most so seldom that it costs one part in this many of the keeper's time."""


class _Look:
    """When one kind of look is due."""

    __slots__ = ("at", "every_s")

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self.at = 0.0

    def done(self, began: float) -> None:
        """Plan the next one, later the longer this one took."""
        now = moment.monotonic()
        self.at = now + max(self.every_s, (now - began) * _SHARE)


class Watcher:
    """The periodic looks at one supervisor's runs."""

    def __init__(self, supervisor: Supervisor) -> None:
        """Start with every look due."""
        self.log_limit = 0
        """Bytes of disk one log may take; 0 is no limit."""
        self._supervisor = supervisor
        self._files = _Look(FILES_EVERY_S)
        self._memory = _Look(MEMORY_EVERY_S)
        self._sweep = _Look(SWEEP_EVERY_S)
        self._swept = True

    def run_ended(self) -> None:
        """Note that something may have been left behind."""
        if self._swept:
            self._swept = False
            self._sweep.at = max(self._sweep.at, moment.monotonic() + SWEEP_DELAY_S)

    def next_due(self) -> float:
        """Return when the next look is due."""
        due = float("inf") if self._swept else self._sweep.at
        if self._supervisor.active:
            due = min(due, self._files.at)
            if self._supervisor.memory_watched:
                due = min(due, self._memory.at)
        return due

    def look(self, now: float) -> None:
        """Take the looks that are due."""
        if not self._swept and now >= self._sweep.at:
            self._swept = not self._kill_escaped()
            self._sweep.done(now)
        if self._supervisor.active and now >= self._files.at:
            for run in self._supervisor.active.values():
                self._look_at_files(run)
            self._files.done(now)
        if self._supervisor.memory_watched and now >= self._memory.at:
            self._look_at_memory()
            self._memory.done(now)

    def _kill_escaped(self) -> bool:
        """Kill what left its run's group and outlived the run; returns whether there was any."""
        supervisor, found = self._supervisor, False
        for pid, uid in processes.orphans(supervisor.by_pid):
            run = supervisor.active.get(uid)
            if run is None or run.exit is not None:
                processes.kill(pid)
                found = True
        return found

    def _look_at_files(self, run: Run) -> None:
        path = run.path(PROGRESS)
        mark = files.mark(path)
        if mark != run.progress_mark:
            run.progress_mark = mark
            run.progress = files.last_line(path)
            self._supervisor.changed(run)
        if self.log_limit:
            files.cap(run.path(LOG), self.log_limit)

    def _look_at_memory(self) -> None:
        watched = self._supervisor.memory_watched
        used = processes.group_memory(lambda group: group in self._supervisor.by_pid)
        for run in list(watched.values()):
            size = used.get(run.pid, 0)
            run.peak_memory = max(run.peak_memory, size)
            if size > run.order["memory"] and run.phase == RUNNING and not run.rss_exceeded:
                run.rss_exceeded = True
                run.note = f"exceeded its memory limit: {size} of {run.order['memory']} bytes"
                self._supervisor.kill(run)
