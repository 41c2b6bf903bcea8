"""Job sets and their logs in memory; writers must hold the store's lock."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.ports.store import ASKED_OF_SETS, AskedOf
from holdfast.storage.refusals import known_job_set, no_such_job_set, require_version, unknown_job_set
from tools.memory_store.jobs import in_set

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import RLock

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.jobset.state import JobSet, SetLogEntry
    from holdfast.domain.workloads.kubejob.stored import KubeJobRecord
    from holdfast.ports.store import Changes, Request
    from tools.memory_store.jobs import JobTable


class MemoryJobSetStore:
    """The part of the store about job sets."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Begin without sets, on the jobs of a store, under its lock."""
        self._sets_lock = lock
        self._jobs_of_sets = jobs
        self._sets: dict[str, JobSet] = {}
        self._requests: dict[int, Request] = {}
        self._log: list[SetLogEntry] = []
        self._logged = 0

    def job_set(self, reference: str) -> JobSet:
        """Find a job set by id, or by name."""
        with self._sets_lock:
            found = self._sets.get(reference) or next(
                (each for each in self._by_name() if each.name == reference), None
            )
        if found is None:
            raise no_such_job_set(reference)
        return found

    def job_sets(self, *, after: str = "", limit: int | None = None) -> Sequence[JobSet]:
        """List job sets by name, those whose name comes after ``after``."""
        with self._sets_lock:
            return [each for each in self._by_name() if each.name > after][:limit]

    def asked_of(self, reference: str) -> AskedOf:
        """Find a job set by id, or by name, with its pending requests."""
        with self._sets_lock:
            return self._asked_of(self.job_set(reference))

    def all_asked_of(self, *, after: str = "", limit: int | None = None) -> Sequence[AskedOf]:
        """List job sets as ``job_sets`` does, each with its pending requests."""
        with self._sets_lock:
            return [self._asked_of(each) for each in self.job_sets(after=after, limit=limit)]

    def _asked_of(self, job_set: JobSet) -> AskedOf:
        asked = [one for one in self._requests.values() if one.kind in ASKED_OF_SETS and job_set.id in one.targets]
        return AskedOf(job_set, asked)

    def job_sets_by_id(self, set_ids: Sequence[str]) -> Sequence[JobSet]:
        """Return those job sets, by name; unknown ids are left out."""
        with self._sets_lock:
            return [each for each in self._by_name() if each.id in {*set_ids}]

    def children_of(self, set_id: str) -> Sequence[Job]:
        """Return every job of a job set, in order of submission."""
        with self._sets_lock:
            return [job for job in self._jobs_of_sets.by_id.values() if in_set(job, set_id)]

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
        with self._sets_lock:
            return [entry for entry in self._log if entry.set_id == set_id and entry.seq > after][:limit]

    def kube_jobs(self, job_ids: Sequence[str]) -> Mapping[str, KubeJobRecord]:
        """Return the pod state of those jobs, by job id; others are left out."""
        with self._sets_lock:
            known = self._jobs_of_sets.kube_jobs
            return {job_id: known[job_id] for job_id in job_ids if job_id in known}

    def _by_name(self) -> list[JobSet]:
        return sorted(self._sets.values(), key=lambda each: each.name)

    def add_set(self, job_set: JobSet | None) -> None:
        """Append a job set, if there is one, that ``require_new_set`` let through."""
        if job_set is not None:
            self._sets[job_set.id] = job_set

    def move_versions(self, request: Request, version: int | None) -> None:
        """Advance the versions of the sets a request is about.

        Raises:
            NotFound: A version is given, and there is no such set.
            VersionConflict: It has another version.
        """
        if request.kind not in ASKED_OF_SETS:
            return
        for set_id in request.targets:
            if version is not None:
                require_version(self.job_set(set_id), version)
            if (known := self._sets.get(set_id)) is not None:
                self._sets[set_id] = replace(known, version=known.version + 1)

    def require_new_set(self, job_set: JobSet | None) -> None:
        """Check that a job set, if there is one, is new.

        Raises:
            AlreadyExists: Its name or id is taken.
        """
        if job_set is not None and any(each.name == job_set.name or each.id == job_set.id for each in self._by_name()):
            raise known_job_set(job_set.name)

    def require_known_sets(self, changes: Changes) -> None:
        """Check that every set a commit changes or logs about is there.

        Raises:
            Internal: One is not.
        """
        if not self._sets.keys() >= {*changes.job_sets, *(entry.set_id for entry in changes.set_log)}:
            raise unknown_job_set()

    def commit_sets(self, changes: Changes) -> None:
        """Make the changes about job sets."""
        for each in changes.job_sets.values():
            before = self._sets[each.id]
            self._sets[each.id] = replace(each, name=before.name, created_at=before.created_at, version=before.version)
        for entry in changes.set_log:
            self._logged += 1
            self._log.append(replace(entry, seq=self._logged))
        if changes.deleted_sets:
            self._sets = {set_id: each for set_id, each in self._sets.items() if set_id not in changes.deleted_sets}
            self._log = [entry for entry in self._log if entry.set_id not in changes.deleted_sets]
