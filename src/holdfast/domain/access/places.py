"""Where the work is that a caller may see or control: in a queue, in groups, or one job."""

from __future__ import annotations

from holdfast.domain.access.group import Grouped
from holdfast.domain.record import Struct


class WorkScope(Struct, frozen=True):
    """A place of work; everything that is set must match."""

    queue: str = ""
    """The queue's exact name; empty is any."""
    group: str = ""
    """A group, with a slash at its end also the groups below it; empty is any, or none."""
    job: str = ""
    """The id of the only job."""

    @property
    def grouped(self) -> Grouped | None:
        """The groups, if not all."""
        return Grouped.read(self.group) if self.group else None

    def holds(self, queue: str, group: str, key: str = "") -> bool:
        """Whether work of this queue, group and id (if it has one yet) is in this place."""
        if self.job:
            return key == self.job
        grouped = self.grouped
        return self.queue in {"", queue} and (grouped is None or grouped.holds(group))

    def covers(self, group: str) -> bool:
        """Whether everything in a group or below it is in this place, whatever its queue."""
        grouped = self.grouped
        anywhere = not self.queue and not self.job
        return anywhere and (grouped is None or (grouped.below and grouped.holds(group)))

    def __str__(self) -> str:
        if self.job:
            return f"job={self.job}"
        return f"queue={self.queue}" if self.queue else f"group={self.group}"

    @property
    def in_words(self) -> str:
        """The place as a sentence names it."""
        if self.job:
            return f"job {self.job}"
        if self.queue:
            return f"queue {self.queue}"
        below = " or below" if self.group.endswith("/") else ""
        return f"group {self.group.removesuffix('/')}{below}"
