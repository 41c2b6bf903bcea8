"""Warns a run ahead of its end, if its job asks for that: by a file with time and reason, and by a signal."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from .. import moment, processes
from ..account import acting
from ..records import STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import SupervisedRun

SIGNAL_AFTER_S = 0.05
"""Seconds between two checks for a handler of the signal: a process about to become another program has none."""
DEADLINE = "deadline"
LEADING = frozenset({"preemption", "suspension", "drain"})
"""Reasons to stop that leave a run its warning time from now on; its deadline is known ahead."""
_FOREVER = float("inf")


class Notice:
    """Whether a run is to be warned, and whether it was."""

    def __init__(self) -> None:
        self.due = _FOREVER
        """When there is something to do, by the monotonic clock."""
        self._before_s = 0.0
        self._number = 0
        self._ends_at = _FOREVER
        self._given_at = _FOREVER
        self._heeding: list[int] = []

    def begin(self, program: SupervisedRun, deadline_at: float) -> None:
        """Prepare to warn a run, if its job asks for it; a run that was warned before is not warned twice."""
        warning = program.order.get("warning")
        self.due, self._heeding, self._given_at, self._before_s = _FOREVER, [], _FOREVER, 0.0
        if not warning:
            return
        self._before_s, self._number = warning
        self._ends_at = deadline_at
        with suppress(OSError):
            if program.fostered:
                program.warned_at = os.lstat(program.path(STOP)).st_mtime
                self._given_at = moment.monotonic() - max(0.0, moment.wall() - program.warned_at)
                return
        self.due = deadline_at - self._before_s

    def look(self, program: SupervisedRun, now: float) -> None:
        """Act on what is due: warn of the deadline, or signal the processes that handle the signal."""
        if self._given_at == _FOREVER:
            self._give(program, DEADLINE, self._ends_at, now)
            return
        self.due = _FOREVER
        for pid in self._heeding:
            if processes.heeds(pid, self._number):
                processes.kill(pid, self._number)
        self._heeding = []

    def lead_s(self, program: SupervisedRun, reason: str, now: float) -> float:
        """Return by how long to delay a stop, so that the run has the time it asked for; warns it if nobody has."""
        if not self._before_s:
            return 0.0
        left_s = max(0.0, min(self._given_at, now) + self._before_s - now) if reason in LEADING else 0.0
        if self._given_at == _FOREVER and (reason in LEADING or reason == DEADLINE):
            self._give(program, reason, now + left_s, now)
        return left_s

    def end(self) -> None:
        """Stop: the run has ended."""
        self.due = _FOREVER

    def _give(self, program: SupervisedRun, reason: str, ends_at: float, now: float) -> None:
        self._given_at = now
        program.warned_at = wall = moment.wall()
        notice = {"reason": reason, "stop_at": wall + ends_at - now, "given_at": wall}
        path = program.path(STOP)
        fresh = Path(f"{path}.new")
        with suppress(OSError), acting(program.account):  # If the disk is full, the signal comes all the same.
            fresh.unlink(missing_ok=True)
            fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, json.dumps(notice).encode() + b"\n")
            finally:
                os.close(fd)
            fresh.replace(path)
        self._heeding = list(_topmost(program.pid, self._number))
        self.due = now + SIGNAL_AFTER_S if self._heeding else _FOREVER


def _topmost(leader: int, number: int) -> list[int]:
    """List the processes that handle a signal, without descendants of one that does: it passes the signal on."""
    topmost, pending, looked = [], [leader], 0
    while pending and looked < processes.MOST_LOOKED_AT:
        pid = pending.pop()
        looked += 1
        if processes.heeds(pid, number):
            topmost.append(pid)
        else:
            pending += processes.children_of(pid)
    return topmost
