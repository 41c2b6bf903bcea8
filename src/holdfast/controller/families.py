"""Which jobs are children of which, as far as both go on, so that those of a parent that has ended are found at once.

It is rebuilt from the jobs that have not ended. The end of a parent and what is asked of its children are one commit:
a controller that is killed has stored both or neither. A child that comes in when its parent has ended already is
noticed as it is taken in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from holdfast.domain.job import Job


class Families:
    """Children that go on, and parents that have just ended."""

    def __init__(self) -> None:
        """Begin with none."""
        self.children: dict[str, dict[str, None]] = {}
        """By the ids of their parents."""
        self._over: dict[str, Job] = {}

    def join(self, job: Job) -> Job:
        """Take in a job, which may be a child; returns it."""
        if job.parent:
            self.children.setdefault(job.parent, {})[job.id] = None
        return job

    def heed(self, before: Job, job: Job) -> None:
        """Note how a job is by now."""
        stopped = job.terminal or (before.state is JobState.RUNNING and job.state is not JobState.RUNNING)
        if stopped and job.id in self.children:
            self._over[job.id] = job
        if job.parent and job.terminal and (siblings := self.children.get(job.parent)) is not None:
            siblings.pop(job.id, None)
            if not siblings:
                del self.children[job.parent]

    def take_over(self) -> Mapping[str, Job]:
        """Return the parents that have ended, or an attempt at which has, since this was last asked."""
        over, self._over = self._over, {}
        return over

    def below(self, parent: str) -> Iterator[str]:
        """Yield what is below a job, the deepest first."""
        seen: dict[str, None] = {}
        parents = [parent]
        while parents:
            children: Collection[str] = self.children.get(parents.pop(), ())
            new = [child for child in children if child not in seen]
            seen.update(dict.fromkeys(new))
            parents += new
        yield from reversed(seen)
