"""The shim's periodic checks: memory that no control group limits, and supervisors that do not answer."""

from __future__ import annotations

import os
import selectors

from . import moment, processes
from .records import FINISHED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .pool import Pool
    from .records import ShimRun
    from .runs import Runs

MEMORY_EVERY_S = 0.05
SUPERVISORS_EVERY_S = 1.0
_SHARE = 20
"""A check is as rare as needed to cost at most one part in this many of the shim's time."""


class _Look:
    """When one kind of check is due."""

    __slots__ = ("at", "every_s")

    def __init__(self, every_s: float) -> None:
        self.every_s = every_s
        self.at = 0.0

    def done(self, began: float) -> None:
        """Plan the next one, later the longer this one took."""
        now = moment.monotonic()
        self.at = now + max(self.every_s, (now - began) * _SHARE)


class Sweep:
    """The periodic checks of a shim's runs."""

    def __init__(self, runs: Runs, pool: Pool, selector: selectors.BaseSelector) -> None:
        self._runs = runs
        self._pool = pool
        self._selector = selector
        self._memory = _Look(MEMORY_EVERY_S)
        self._supervisors = _Look(SUPERVISORS_EVERY_S)
        self._waited_for: dict[str, int] = {}
        """Descriptors that become readable when the program of a run has ended, by uid."""

    def next_due(self) -> float:
        """Return when the next check is due."""
        due = self._supervisors.at if self._runs.active or self._waited_for else float("inf")
        return min(due, self._memory.at) if self._runs.watched else due

    def look(self, now: float) -> None:
        """Run the checks that are due."""
        if self._runs.watched and now >= self._memory.at:
            self._look_at_memory()
            self._memory.done(now)
        if now >= self._supervisors.at and (self._runs.active or self._waited_for):
            self._look_at_supervisors()
            self._supervisors.done(now)

    def _look_at_memory(self) -> None:
        watched = {run.pid: run for run in self._runs.watched.values() if run.pid}
        used = processes.group_memory(lambda group: group in watched)
        for pid, run in watched.items():
            self._runs.exceeds(run, used.get(pid, 0))

    def _look_at_supervisors(self) -> None:
        """Resume suspended supervisors, and wait in the shim itself for programs that have run for a while."""
        self._pool.wake_fork_server()
        for run in self._runs.active.values():
            handle = self._pool.handles.get(run.supervisor or 0)
            if handle is not None and processes.is_suspended(handle.pid):
                processes.resume(handle.pid)
            self.wait_for(run)
        for uid in [uid for uid in self._waited_for if uid not in self._runs.active]:
            self._wait_no_more(uid)

    def wait_for(self, run: ShimRun) -> None:
        """Let the shim itself learn how a run's program ends, in case its supervisor does not live to tell."""
        if not run.pid or run.uid in self._waited_for:
            return
        try:
            pidfd = os.pidfd_open(run.pid)
        except (OSError, AttributeError):
            return
        self._waited_for[run.uid] = pidfd
        self._selector.register(pidfd, selectors.EVENT_READ, lambda: self._ended(run))

    def status_of(self, run: ShimRun) -> int | None:
        """Return the wait status of a run's ended program; ``None`` if nobody can tell."""
        pidfd = self._waited_for.get(run.uid)
        return run.status if pidfd is None else processes.exit_status(run.pid, pidfd)

    def _ended(self, run: ShimRun) -> None:
        run.status = self.status_of(run)
        self._wait_no_more(run.uid)
        if run.phase != FINISHED:
            self._runs.ended_unnoticed(run)

    def _wait_no_more(self, uid: str) -> None:
        pidfd = self._waited_for.pop(uid)
        self._selector.unregister(pidfd)
        os.close(pidfd)
