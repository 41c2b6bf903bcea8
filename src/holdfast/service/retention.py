"""Deletes jobs that ended long enough ago, or whose time to live is over.

Those older than a given time go, except the newest of them. What is needed stays, as the store decides in the step that
deletes: jobs about to be retried or that others wait for, tasks of an array in progress, and those that one runs again,
which takes over their checkpoints, or waits for. It goes in bounded steps, each of which may be the last. Rows go
first, in one step that nobody can interfere with, and remember whose files are left: nobody reads or takes over what is
half deleted.
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
"""Of what has no files."""
_READ_EVERY_S = 60.0
"""What a hundred thousand jobs wait for takes a second to read."""
_GONE_FOR_GOOD_S = 90 * 86400.0
"""By then longer than jobs are kept, nobody expects a data directory back that has not led."""


class Retention:
    """Forgetting, over a store and the files of runs."""

    def __init__(self, store: RetentionStore, files: RunFiles, place: str = "") -> None:
        """Remember where rows and files are.

        Args:
            store: The rows.
            files: Those of this data directory.
            place: Its word; without one, the files of a job are discarded only if nobody knows where they are.
        """
        self._store = store
        self._files = files
        self._place = place
        self._waited: AwaitedWork | None = None
        self._expired_at = float("-inf")

    def sweep(self, *, ended_before: float, keep: int = 0, dry_run: bool = False) -> Iterator[int]:
        """Look at every finished job once, oldest submission first.

        Args:
            ended_before: Jobs that ended before this time are forgotten.
            keep: The newest so many finished jobs stay, however old they are.
            dry_run: Only count.

        Yields:
            After each step, how many jobs it forgot; the caller may stop or pause between any two.

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
        """Forget what the audit log has from before that time; yields after each step that may not have been the last.

        Raises:
            Unavailable: The database cannot be written.
        """
        yield from self._forget_all_of(self._store.delete_audit, before=before)

    def expire(self, now: float) -> int:
        """Take one step at the jobs whose own time to live is over.

        Returns:
            How many were forgotten; 0: none is left.

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
        """Delete jobs, but those that others wait for; who does is read again where it may have changed."""
        if self._waited is None or not self._waited.ids.isdisjoint(ids):
            self._waited = self._store.waited_for()
        return self._store.delete_finished(ids, waited=self._waited, dry_run=dry_run)

    def _discard_files(self) -> Unavailable | None:
        """Delete the files of jobs that are forgotten, of as many as can be; returns what keeps the others."""
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
