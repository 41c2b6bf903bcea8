"""A supervisor's looks at its run's files: progress, and logs that have times and must not grow too large."""

from __future__ import annotations

from .. import files, moment
from ..records import PROGRESS, TIMES_OF
from . import outcomes, times
from .pace import FirstReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import SupervisedRun

EVERY_S = 0.1
SELDOM_S = 1.0
"""Longest time between looks at a run whose files do not change, in seconds."""
FAST_LOG_EVERY_S = 0.02
_SLOWER = 1.5
_FAST = 8
"""A log that grows by more than one part in so many of its limit between two looks is looked at more often."""


class Watch:
    """When the next look is due, and its files."""

    def __init__(self) -> None:
        self.log_limit = 0
        self.due = float("inf")
        self._every_s = EVERY_S
        self._pace = FirstReport()
        self._sizes: dict[str, int] = {}
        """The last size of each log."""

    def begin(self, program: SupervisedRun) -> None:
        """Look at another run from now on."""
        self._every_s = EVERY_S
        self._pace = FirstReport()
        self._sizes = {}
        self.due = program.started_mono + EVERY_S

    def look(self, program: SupervisedRun, now: float) -> bool:
        """Look if a look is due; returns whether there is progress to report."""
        if now < self.due:
            return False
        path, size = program.path(PROGRESS), program.log_size
        mark = files.mark(path)
        news = mark != program.progress_mark
        if news:
            program.progress_mark = mark
            program.progress = self._pace.annotate(files.last_line(path), now)
        grown = self._look_at_logs(program) - size
        quiet = not news and not grown
        self._every_s = min(self._every_s * _SLOWER, SELDOM_S) if quiet else EVERY_S
        fast = self.log_limit and grown > self.log_limit // _FAST
        self.due = moment.monotonic() + (FAST_LOG_EVERY_S if fast else self._every_s)
        return news

    def last(self, program: SupervisedRun) -> None:
        """Look at the files once more after the run has ended."""
        program.progress = outcomes.progress(program) or program.progress
        self._look_at_logs(program, last=True)
        self.due = float("inf")

    def _look_at_logs(self, program: SupervisedRun, *, last: bool = False) -> int:
        """Record when its logs grew, and enforce their limit; returns their total size."""
        for name in program.logs:
            path = program.path(name)
            at_ns, size = files.mark(path)
            if size != self._sizes.get(name, 0):
                times.note(program.path(TIMES_OF[name]), size, at_ns, begin=not last)
                self._sizes[name] = size
            if self.log_limit:
                files.cap(path, self.log_limit)  # After the look, because it changes the file, too.
        program.log_size = sum(self._sizes.values())
        return program.log_size
