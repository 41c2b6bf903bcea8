"""Where work is that somebody may see or steer: in a queue, or in groups."""

from __future__ import annotations

from holdfast.domain.access.group import Grouped
from holdfast.domain.record import Struct


class WorkScope(Struct, frozen=True):
    """Where work is; of what is set here both must hold."""

    queue: str = ""
    """In the queue of exactly this name; empty: in any."""
    group: str = ""
    """In this group; with a slash at its end, also in those below it. Empty: in any, and in none."""
    job: str = ""
    """Nothing but the job of this id."""

    @property
    def grouped(self) -> Grouped | None:
        """Which groups are meant, if not all."""
        return Grouped.read(self.group) if self.group else None

    def holds(self, queue: str, group: str, key: str = "") -> bool:
        """Whether work of such a queue and group is there, with this id if it has one yet."""
        if self.job:
            return key == self.job
        grouped = self.grouped
        return self.queue in {"", queue} and (grouped is None or grouped.holds(group))

    def covers(self, group: str) -> bool:
        """Whether all is there that is in a group or below it, in whichever queue."""
        grouped = self.grouped
        anywhere = not self.queue and not self.job
        return anywhere and (grouped is None or (grouped.below and grouped.holds(group)))

    def __str__(self) -> str:
        """Write it as it is given in a token's scope."""
        if self.job:
            return f"job={self.job}"
        return f"queue={self.queue}" if self.queue else f"group={self.group}"

    @property
    def in_words(self) -> str:
        """Say it in a sentence."""
        if self.job:
            return f"job {self.job}"
        if self.queue:
            return f"queue {self.queue}"
        below = " or below" if self.group.endswith("/") else ""
        return f"group {self.group.removesuffix('/')}{below}"
