"""Queries about many jobs at once, in memory."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import TYPE_CHECKING

from holdfast.ports.overview import MOST_RANKS, Latest
from tools.memory_store.jobs import is_seen

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from threading import RLock

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Attempt, Job, JobState, Run
    from tools.memory_store.jobs import JobTable


class MemoryOverviewStore:
    """The part of the store for those who look at many jobs."""

    def __init__(self, lock: RLock, table: JobTable) -> None:
        """Look into the same table as the others."""
        self._lock = lock
        self._table = table

    def queue_load(self, *, seen: Seen | None = None) -> Mapping[tuple[str, JobState], int]:
        """Count the jobs that have not ended by their queue and state; those that somebody may know of."""
        with self._lock:
            known = (job for job in self._table.by_id.values() if is_seen(job, seen))
            return Counter((job.queue, job.state) for job in known if not job.terminal)

    def job_names(self, prefix: str, *, limit: int) -> Sequence[str]:
        """List names that begin so, of jobs that belong to no job set or array; each once, in order."""
        with self._lock:
            return self._table.names_like(prefix)[:limit]

    def newest(
        self, states: Collection[JobState], *, limit: int, named: str = "", seen: Seen | None = None
    ) -> Sequence[Job]:
        """List jobs in these states whose names contain a text, in either case; the last submitted first."""
        with self._lock:
            found = [
                job
                for job in self._table.by_id.values()
                if job.state in states and named.lower() in job.name.lower() and is_seen(job, seen)
            ]
        return sorted(found, key=attrgetter("seq"), reverse=True)[:limit]

    def latest_of(self, job_ids: Sequence[str]) -> Mapping[str, Latest]:
        """Return the labels, the last attempt and its runs of each of those jobs; unknown ids are left out."""
        with self._lock:
            known = (self._table.by_id[job_id] for job_id in job_ids if job_id in self._table.by_id)
            return {job.id: self._latest(job) for job in known}

    def attempts_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Attempt]]:
        """List the attempts of each of those jobs, in order; those that have none are left out."""
        with self._lock:
            attempts = [each for _, each in sorted(self._table.attempts.items())]
        return {key: own for key in job_ids if (own := [each for each in attempts if each.job_id == key])}

    def last_runs_of(self, job_ids: Sequence[str]) -> Mapping[str, Sequence[Run]]:
        """List the runs of the last attempt of each of those jobs; those that have none are left out."""
        with self._lock:
            runs, jobs = self._table.sorted_runs(), self._table.by_id
            last = [run for run in runs if run.attempt == jobs[run.job_id].attempt]
        return {key: own for key in job_ids if (own := [run for run in last if run.job_id == key])}

    def _latest(self, job: Job) -> Latest:
        table = self._table
        own = [run for run in table.runs.values() if (run.job_id, run.attempt) == (job.id, job.attempt)]
        newest = {run.rank: run for run in sorted(own, key=attrgetter("dispatch", "generation", "status_since"))}
        runs = [newest[rank] for rank in sorted(newest) if rank < MOST_RANKS]
        return Latest(table.labels.get(job.id, {}), table.attempts.get((job.id, job.attempt)), runs)
