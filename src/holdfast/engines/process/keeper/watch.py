"""Looks at living runs now and then: progress, log size, memory where no cgroup limits it, and escaped processes."""

from __future__ import annotations

from . import files, moment, processes
from .records import LOG, PROGRESS, RUNNING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .records import Run
    from .supervise import Supervisor

FILES_EVERY_S = 0.1
FAST_LOG_EVERY_S = 0.02
_FAST = 8
"""A log that grows by one part in so many of its limit between two looks is looked at more often."""
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
        self._supervisor = supervisor
        self._files = _Look(FILES_EVERY_S)
        self._memory = _Look(MEMORY_EVERY_S)
        self._sweep = _Look(SWEEP_EVERY_S)
        self._swept = True
        self._suspects: dict[int, set[str]] = {}
        """Adopted processes that carry no run's mark, and the runs that may have left them."""

    def set_log_limit(self, limit: int) -> None:
        """Hold logs to a number of bytes of disk, also those of runs that have ended; 0 is no limit."""
        self.log_limit = limit
        for run in self._supervisor.runs.values():
            self._cap(run)

    def run_ended(self, run: Run) -> None:
        """Look at its log for the last time, and note that something may have been left behind."""
        self._cap(run)
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
            fast = [run for run in self._supervisor.active.values() if self._look_at_files(run)]
            self._files.done(now)
            if fast:  # giving back what they wrote takes its time, and must not put off the next look
                self._files.at = moment.monotonic() + FAST_LOG_EVERY_S
        if self._supervisor.memory_watched and now >= self._memory.at:
            self._look_at_memory()
            self._memory.done(now)

    def _kill_escaped(self) -> bool:
        """Kill what left its run's group and outlived the run; returns whether there was any.

        What hides whose it is dies with the last of those who ran when it was first seen: it is one of theirs.
        """
        going = {uid for uid, run in self._supervisor.active.items() if run.exit is None}
        owners = dict(processes.orphans(self._supervisor.by_pid))
        self._suspects = {pid: self._suspects.get(pid, going) & going for pid, uid in owners.items() if not uid}
        escaped = [pid for pid, uid in owners.items() if not (uid in going if uid else self._suspects[pid])]
        for pid in escaped:
            processes.kill(pid)
        return bool(escaped)

    def _look_at_files(self, run: Run) -> bool:
        """Take note of its progress and hold its log to its limit; returns whether the log grows fast."""
        path = run.path(PROGRESS)
        mark = files.mark(path)
        if mark != run.progress_mark:
            run.progress_mark = mark
            run.progress = files.last_line(path)
            self._supervisor.changed(run)
        return self._cap(run)

    def _cap(self, run: Run) -> bool:
        if not self.log_limit:
            return False
        before, run.log_size = run.log_size, files.cap(run.path(LOG), self.log_limit)
        return run.log_size - before > self.log_limit // _FAST

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
