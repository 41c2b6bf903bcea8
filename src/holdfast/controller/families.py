"""Tracks unfinished parents and children, so that the children of an ended parent are found at once.

It is rebuilt from the unfinished jobs. The end of a parent and the requests to its children are one commit, so a
controller that is killed has stored both or neither. A child submitted after its parent's end is noticed on arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from holdfast.domain.job import Job


class Families:
    """Unfinished children, and parents that have just ended."""

    def __init__(self) -> None:
        self.children: dict[str, dict[str, None]] = {}
        """Children by the ids of their parents."""
        self._over: dict[str, Job] = {}

    def join(self, job: Job) -> Job:
        """Add a job, which may be a child; returns it."""
        if job.parent:
            self.children.setdefault(job.parent, {})[job.id] = None
        return job

    def heed(self, before: Job, job: Job) -> None:
        """Note a job's present state."""
        stopped = job.terminal or (before.state is JobState.RUNNING and job.state is not JobState.RUNNING)
        if stopped and job.id in self.children:
            self._over[job.id] = job
        if job.parent and job.terminal and (siblings := self.children.get(job.parent)) is not None:
            siblings.pop(job.id, None)
            if not siblings:
                del self.children[job.parent]

    def take_over(self) -> Mapping[str, Job]:
        """Return the parents that ended, or had an attempt end, since the last call."""
        over, self._over = self._over, {}
        return over

    def below(self, parent: str) -> Iterator[str]:
        """Yield a job's descendants, deepest first."""
        seen: dict[str, None] = {}
        parents = [parent]
        while parents:
            children: Collection[str] = self.children.get(parents.pop(), ())
            new = [child for child in children if child not in seen]
            seen.update(dict.fromkeys(new))
            parents += new
        yield from reversed(seen)
