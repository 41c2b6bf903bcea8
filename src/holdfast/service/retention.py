"""Deletes jobs that ended long enough ago, or whose time to live is over.

Jobs that ended before a given time are deleted, except the newest of all finished ones. The store keeps those that are
still needed, in the transaction that deletes: jobs about to be retried or that others wait for, tasks of an array in
progress, and tasks that an array reruns, whose checkpoints it takes over, or waits for. Deletion proceeds in bounded
steps, and may stop after any of them. Rows are deleted first, in one transaction that notes whose files are left, so
that nobody reads or takes over a half deleted job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from holdfast.ports.retention import AwaitedWork, RetentionStore, RunFiles

_JOBS_PER_STEP = 200
"""One transaction; about 20 ms on SQLite."""
_MOST_NAMED = 5
"""Jobs in an error."""
_ROWS_PER_STEP = 5000
"""Rows without files."""
_READ_EVERY_S = 60.0
"""Reading what a hundred thousand jobs wait for takes a second."""
_GONE_FOR_GOOD_S = 90 * 86400.0
"""After this long, a data directory that has had no leader is not expected back."""


class Retention:
    """Deletes old jobs from a store, and the files of their runs."""

    def __init__(self, store: RetentionStore, files: RunFiles, place: str = "") -> None:
        """Start.

        Args:
            store: Has the rows.
            files: The files of this data directory.
            place: The data directory's name; without one, only files that no data directory is known to have are
                discarded.
        """
        self._store = store
        self._files = files
        self._place = place
        self._waited: AwaitedWork | None = None
        self._expired_at = float("-inf")

    def sweep(self, *, ended_before: float, keep: int = 0, dry_run: bool = False) -> Iterator[int]:
        """Check every finished job once, oldest submission first.

        Args:
            ended_before: Delete jobs that ended before this time.
            keep: Keep this many of the newest finished jobs, however old they are.
            dry_run: Only count.

        Yields:
            After each step, the number of jobs it deleted; the caller may stop or pause between steps.

        Raises:
            Unavailable: Files cannot be deleted, or the database cannot be written.
        """
        left, after, self._waited = self._store.count_finished() - keep, 0, None
        while left > 0:
            page = self._store.finished_jobs(after=after, limit=min(_JOBS_PER_STEP, left))
            if not page:
                break
            left, after = left - len(page), page[-1].seq
            old = [job.job_id for job in page if job.ended_at < ended_before]
            forgotten = self._delete(old, dry_run=dry_run) if old else 0
            if forgotten and not dry_run:
                self._discard_files()
            yield forgotten
        if dry_run:
            return
        yield from self._forget_all_of(self._store.delete_keys, before=ended_before)
        yield from self._forget_all_of(self._store.delete_notifications, settled_before=ended_before)
        yield from self._forget_all_of(self._store.forget_places, left_before=ended_before - _GONE_FOR_GOOD_S)
        failed = self._discard_files()
        if failed is not None:
            raise failed

    def forget_acts(self, before: float) -> Iterator[int]:
        """Delete the entries of the audit log from before a time; yields after each step but the last.

        Raises:
            Unavailable: The database cannot be written.
        """
        yield from self._forget_all_of(self._store.delete_audit, before=before)

    def expire(self, now: float) -> int:
        """Delete jobs whose own time to live is over, in one step.

        Returns:
            The number of deleted jobs; 0 if none are left.

        Raises:
            Unavailable: Files cannot be deleted, or the database cannot be written.
        """
        expired = self._store.expired_jobs(until=now, limit=_JOBS_PER_STEP)
        if now - self._expired_at > _READ_EVERY_S:
            self._expired_at, self._waited = now, None
            self._store.delete_endpoints(now, limit=_ROWS_PER_STEP)
        forgotten = self._delete(expired) if expired else 0
        failed = self._discard_files()
        if failed is not None:
            raise failed
        return forgotten

    def _delete(self, ids: Sequence[str], *, dry_run: bool = False) -> int:
        """Delete jobs, except those that others wait for, which are read again if they may have changed."""
        if self._waited is None or not self._waited.ids.isdisjoint(ids):
            self._waited = self._store.waited_for()
        return self._store.delete_finished(ids, waited=self._waited, dry_run=dry_run)

    def _discard_files(self) -> Unavailable | None:
        """Delete the files of deleted jobs, as far as possible; returns the error of those that are left."""
        reasons: list[str] = []
        last = ""
        while left := self._store.files_to_discard(self._place, after=last, limit=_JOBS_PER_STEP):
            kept, last = self._files.discard(left), left[-1]
            reasons += kept.values()
            self._store.files_discarded(self._place, [job_id for job_id in left if job_id not in kept])
        if not reasons:
            return None
        more = f"; and so for {len(reasons) - _MOST_NAMED} more jobs" if len(reasons) > _MOST_NAMED else ""
        return Unavailable("; ".join(reasons[:_MOST_NAMED]) + more)

    @staticmethod
    def _forget_all_of(forget: Callable[..., int], **before: float) -> Iterator[int]:
        while forget(**before, limit=_ROWS_PER_STEP) == _ROWS_PER_STEP:
            yield 0
