"""Deletion of jobs that have ended: what the store and the keeper of files must offer.

Every step is bounded, so that deleting a million jobs never blocks anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet


class FinishedJob(Struct, frozen=True):
    """A job that has ended."""

    seq: int
    job_id: str
    ended_at: float
    """When the end was noticed: a job that ends while no server runs is not deleted before anybody could see it."""


class LedDirectory(Struct, frozen=True):
    """A data directory whose servers lead, or led, and so have files of the jobs of that time."""

    id: str
    came_at: float
    left_at: float | None = None
    """When another one took over; ``None`` if none has since."""


class AwaitedWork(Struct, frozen=True):
    """What work waits for of which nothing stored says that it has heard of the end."""

    ids: AbstractSet[str]
    last: int
    """The place of the newest job then: who waits since then is not among those who were looked at."""


class RetentionStore(Protocol):
    """The part of the store that retention needs."""

    def finished_jobs(self, *, after: int, limit: int) -> Sequence[FinishedJob]:
        """List the first finished jobs with ``seq > after``, in order of submission."""

    def count_finished(self) -> int:
        """Count finished jobs."""

    def expired_jobs(self, *, until: float, limit: int) -> Sequence[str]:
        """List ids of finished jobs whose own time to live was over by ``until``, earliest first."""

    def waited_for(self) -> AwaitedWork:
        """Read what waits for what; whoever names a job that has ended by now is told of that at once."""

    def delete_finished(
        self, job_ids: Sequence[str], *, waited: AwaitedWork | None = None, dry_run: bool = False
    ) -> int:
        """Delete those jobs with all that is stored about them; their files are to be discarded then.

        Jobs that have not ended are left alone, those that are about to be retried or that others wait for, and tasks
        of an array in progress, or that one runs again or waits for one by one.

        Args:
            job_ids: The jobs.
            waited: What is waited for, read once for many calls; without it, this reads all of it.
            dry_run: Only count.

        Returns:
            How many jobs were deleted, or would be.
        """

    def files_to_discard(self, place: str, *, limit: int, after: str = "") -> Sequence[str]:
        """List ids of deleted jobs whose files may still be in a data directory, or nobody knows where, in order."""

    def files_discarded(self, place: str, job_ids: Sequence[str]) -> None:
        """Forget that the files of deleted jobs were there."""

    def forget_places(self, *, left_before: float, limit: int) -> int:
        """Forget data directories that were left before, with up to ``limit`` jobs they may have files of.

        Returns:
            How many jobs that were.
        """

    def delete_keys(self, *, before: float, limit: int) -> int:
        """Forget up to ``limit`` idempotency keys first used before that time; returns how many."""

    def delete_audit(self, *, before: float, limit: int) -> int:
        """Forget entries of the audit log from before that time, among the ``limit`` oldest; returns how many."""

    def delete_notifications(self, *, settled_before: float, limit: int) -> int:
        """Forget up to ``limit`` notifications that were delivered or given up before; returns how many."""

    def delete_endpoints(self, now: float, *, limit: int) -> int:
        """Forget up to ``limit`` endpoints that nobody finds any more; returns how many."""

    def specs_with(self, part: str) -> Iterator[str]:
        """Read the specifications of all jobs and workloads that hold a text, in parts of one transaction each."""


class RunFiles(Protocol):
    """The logs and work directories of runs."""

    def discard(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Delete everything the runs of jobs left on the disk; nothing there is fine.

        Returns:
            For each job of which something is left, what keeps it.
        """
