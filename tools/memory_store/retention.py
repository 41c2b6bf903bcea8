"""Deletes finished jobs from memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.compiled.records import dump_json
from holdfast.compiled.workloads import awaited_by, still_awaited
from holdfast.domain.job import JobState
from holdfast.domain.record import evolve
from holdfast.domain.workloads.array.model import Array
from holdfast.domain.workloads.base import Owner
from holdfast.ports.requests import RequestKind
from holdfast.ports.retention import AwaitedWork, FinishedJob, LedDirectory
from holdfast.storage.rules import may_have_files, tasks_among

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import RLock

    from holdfast.ports.requests import Request
    from tools.memory_store.jobs import JobTable


class MemoryRetentionStore:
    """The store's part for retention."""

    _requests: dict[int, Request]

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Work on the tables of a store, under its lock."""
        self._retention_lock = lock
        self._finished_among = jobs
        self._places: dict[str, LedDirectory] = {}
        self._discards = set[tuple[str, str]]()
        """Data directories and jobs."""
        self._keys: dict[str, tuple[str, tuple[str, ...], float]] = {}
        """Fingerprint, ids and time of the first call, by idempotency key."""

    def finished_jobs(self, *, after: int, limit: int) -> Sequence[FinishedJob]:
        """List the first finished jobs with ``seq > after``, in order of submission."""
        return [job for job in self._finished() if job.seq > after][:limit]

    def count_finished(self) -> int:
        """Count finished jobs."""
        return len(self._finished())

    def expired_jobs(self, *, until: float, limit: int) -> Sequence[str]:
        """List ids of finished jobs whose own time to live was over by then, the earliest first."""
        with self._retention_lock:
            finished = {job.job_id for job in self._finished()}
            expiring = [
                (job.expires_at, job_id)
                for job_id, job in self._finished_among.workloads.items()
                if job.expires_at is not None and job.expires_at <= until and job_id in finished
            ]
            return [job_id for _, job_id in sorted(expiring)[:limit]]

    def _finished(self) -> list[FinishedJob]:
        with self._retention_lock:
            return [
                FinishedJob(job.seq, job.id, job.updated_at)
                for job in self._finished_among.by_id.values()
                if job.terminal
            ]

    def waited_for(self) -> AwaitedWork:
        """Read what waits for what."""
        with self._retention_lock:
            jobs = self._finished_among.by_id.values()
            waiting = [job for job in jobs if job.state in {JobState.WAITING, JobState.HELD} and job.ready_at is None]
            found = {key for job in waiting for key in still_awaited(job.spec, dump_json(job.met))}
            owners = (each for each in self._finished_among.workloads.values() if isinstance(each, Owner))
            found |= {key for each in owners for key in awaited_by(each)}
            return AwaitedWork(found, max((job.seq for job in jobs), default=0))

    def delete_finished(
        self, job_ids: Sequence[str], *, waited: AwaitedWork | None = None, dry_run: bool = False
    ) -> int:
        """Delete those jobs with all that is stored about them, or only count; those that are needed are left alone."""
        del waited  # nothing is too much to read again
        with self._retention_lock:
            asked = {key for one in self._requests.values() if one.kind is RequestKind.RETRY for key in one.targets}
            asked |= tasks_among(job_ids, self._finished_among.workloads.values())
            asked |= {key for key in job_ids if self._is_counted(key)}
            known = self._finished_among.by_id
            asked |= {one for key in asked if key in known for one in still_awaited(known[key].spec, None)}
            asked |= self.waited_for().ids
            gone = {finished.job_id for finished in self._finished()} & {*job_ids} - asked
            if not dry_run:
                jobs = [self._finished_among.by_id[key] for key in gone]
                for job in jobs:
                    found = may_have_files(self._places.values(), job.submitted_at, job.updated_at)
                    self._discards |= {(place, job.id) for place in found}
                self._finished_among.drop(gone)
            return len(gone)

    def _is_counted(self, key: str) -> bool:
        """Whether a job is a task of an array in progress."""
        job = self._finished_among.by_id.get(key)
        array = self._finished_among.workloads.get(job.child.set_id) if job is not None and job.child else None
        return isinstance(array, Array) and not array.ended

    def come_to(self, place: str, now: float) -> None:
        """Note in which data directory files of jobs are made from now on."""
        for each in self._places.values():
            if each.id != place and each.left_at is None:
                self._places[each.id] = evolve(each, left_at=now)
        self._places[place] = evolve(self._places.get(place, LedDirectory(place, now)), left_at=None)

    def files_to_discard(self, place: str, *, limit: int, after: str = "") -> Sequence[str]:
        """List ids of deleted jobs whose files may still be in a data directory, or nobody knows where, in order."""
        with self._retention_lock:
            return sorted({job_id for at, job_id in self._discards if at in {place, ""} and job_id > after})[:limit]

    def files_discarded(self, place: str, job_ids: Sequence[str]) -> None:
        """Forget that the files of deleted jobs were there."""
        with self._retention_lock:
            self._discards -= {(at, job_id) for at in (place, "") for job_id in job_ids}

    def forget_places(self, *, left_before: float, limit: int) -> int:
        """Forget data directories that were left before, with up to ``limit`` jobs they may have files of."""
        with self._retention_lock:
            left = {
                key for key, each in self._places.items() if each.left_at is not None and each.left_at < left_before
            }
            jobs = sorted(one for one in self._discards if one[0] in left)[:limit]
            self._discards -= {*jobs}
            if len(jobs) < limit:
                self._places = {key: each for key, each in self._places.items() if key not in left}
            return len(jobs)

    def specs_with(self, part: str) -> Iterator[str]:
        """Read the specifications of all jobs and workloads that hold a text."""
        with self._retention_lock:
            found = {job.spec for job in self._finished_among.by_id.values()}
            found |= {one.spec for one in self._finished_among.workloads.values()}
            yield from (spec for spec in found if part in spec)

    def delete_keys(self, *, before: float, limit: int) -> int:
        """Forget up to ``limit`` idempotency keys first used before that time; returns how many."""
        with self._retention_lock:
            old = [key for key, (_, _, at) in self._keys.items() if at < before][:limit]
            for key in old:
                del self._keys[key]
            return len(old)
