"""A supervisor's looks at its run's files: progress, and a log that must not grow too large."""

from __future__ import annotations

from .. import files, moment
from ..records import PROGRESS
from . import outcomes
from .pace import Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..records import Program

EVERY_S = 0.1
SELDOM_S = 1.0
"""How far apart looks at a run get whose files do not change."""
FAST_LOG_EVERY_S = 0.02
_SLOWER = 1.5
_FAST = 8
"""A log that grows by one part in so many of its limit between two looks is looked at more often."""


class Watch:
    """When the next look is due, and what it looks at."""

    def __init__(self) -> None:
        """Begin with nothing to look at."""
        self.log_limit = 0
        self.due = float("inf")
        self._every_s = EVERY_S
        self._pace = Pace()

    def begin(self, program: Program) -> None:
        """Look at another run from now on."""
        self._every_s = EVERY_S
        self._pace = Pace()
        self.due = program.started_mono + EVERY_S

    def look(self, program: Program, now: float) -> bool:
        """Take the look that is due, if one is; returns whether there is progress to tell."""
        if now < self.due:
            return False
        path, size = program.path(PROGRESS), program.log_size
        mark = files.mark(path)
        news = mark != program.progress_mark
        if news:
            program.progress_mark = mark
            program.progress = self._pace.told(files.last_line(path), now)
        grown = self._cap(program) - size
        quiet = not news and not grown
        self._every_s = min(self._every_s * _SLOWER, SELDOM_S) if quiet else EVERY_S
        fast = self.log_limit and grown > self.log_limit // _FAST
        self.due = moment.monotonic() + (FAST_LOG_EVERY_S if fast else self._every_s)
        return news

    def last(self, program: Program) -> None:
        """Look at its files once more, when it has ended."""
        program.progress = outcomes.progress(program) or program.progress
        self._cap(program)
        self.due = float("inf")

    def _cap(self, program: Program) -> int:
        """Hold its logs to their limit; returns how large they are together."""
        sizes = [self._cap_one(program.path(name)) for name in program.logs]
        program.log_size = sum(sizes)
        return program.log_size

    def _cap_one(self, path: str) -> int:
        return files.cap(path, self.log_limit) if self.log_limit else files.mark(path)[1]
