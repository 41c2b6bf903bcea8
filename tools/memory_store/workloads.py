"""Workloads and the logs of job sets in memory; writers must hold the store's lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import evolve
from holdfast.domain.workloads.base import Owner
from holdfast.ports.requests import RequestKind
from holdfast.ports.workloads import EVERY, AskedOf, Left, leave_out
from holdfast.storage.rules import (
    gone_workload,
    known_workload,
    no_such_workload,
    pruned_meanwhile,
    require_version,
    reran_meanwhile,
    unknown_workload,
)
from tools.memory_store.jobs import in_set, is_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import RLock

    from holdfast.domain.job import Job
    from holdfast.domain.workloads.base import Workload
    from holdfast.domain.workloads.jobset.state import SetLogEntry
    from holdfast.ports.requests import Request
    from holdfast.ports.store import Changes
    from holdfast.ports.workloads import Rerun, Told, W, WorkloadFilter
    from tools.memory_store.jobs import JobTable

_FIXED = ("owner", "name", "version", "created_at", "submitted_by", "submitter_uid", "group", "queue")
"""What a commit does not change."""


class MemoryWorkloadStore:
    """The part of the store about workloads."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Begin without logs, on the records of a store, under its lock."""
        self._workloads_lock = lock
        self._of_jobs = jobs
        self._requests: dict[int, Request] = {}
        self._reruns: dict[tuple[str, int, int], str] = {}
        """Ids of the arrays that run tasks again, by root, task and number."""
        self._log: list[SetLogEntry] = []
        self._logged = 0

    def workload(self, kind: type[W], reference: str) -> W:
        """Find a workload by id, or by name."""
        with self._workloads_lock:
            every = self._of(kind)
            found = next((each for each in every if each.id == reference), None)
            found = found or next((each for each in every if reference and each.name == reference), None)
        if found is None:
            raise no_such_workload(kind, reference)
        return found

    def workloads(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        told: Told = leave_out,  # noqa: ARG002 - nothing is damaged here
    ) -> Sequence[W]:
        """List workloads that have names by name, those whose name comes after ``after``."""
        with self._workloads_lock:
            named = (each for each in self._of(kind) if each.name > after)
            return [
                each
                for each in named
                if where.submitted_by in {None, each.submitted_by}
                and (where.group is None or where.group.holds(each.group))
                and is_seen(each, where.seen)
            ][:limit]

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return those workloads, by id; others are left out."""
        with self._workloads_lock:
            known = self._of_jobs.workloads
            return {key: known[key] for key in ids if isinstance(known.get(key), kind)}  # type: ignore[misc] # of this kind

    def reran(self, root: str) -> Mapping[int, str]:
        """Return which tasks of an array run again, and the id of the last array that does; also by way of others."""
        with self._workloads_lock:
            return {task: array for (of, task, _), array in sorted(self._reruns.items()) if of == root}

    def left_of(self, kind: type[W], reference: str) -> W:
        """Find a workload by id, or by name; here each can be read."""
        return self.workload(kind, reference)

    def left_to_end(self, key: str) -> Left:
        """Return a job, or the jobs of a workload, to end it."""
        with self._workloads_lock:
            jobs = [job for job in self._of_jobs.by_id.values() if job.id == key or in_set(job, key)]
            owner = self._of_jobs.workloads.get(key)
        return Left(owner if isinstance(owner, Owner) else None, [job for job in jobs if not job.terminal])

    def asked_of(self, kind: type[W], reference: str) -> AskedOf[W]:
        """Find a workload by id, or by name, with its pending requests."""
        with self._workloads_lock:
            return self._asked_of(self.workload(kind, reference))

    def all_asked_of(
        self,
        kind: type[W],
        where: WorkloadFilter = EVERY,
        *,
        after: str = "",
        limit: int | None = None,
        told: Told = leave_out,  # noqa: ARG002 - nothing is damaged here
    ) -> Sequence[AskedOf[W]]:
        """List workloads as ``workloads`` does, each with its pending requests."""
        with self._workloads_lock:
            return [self._asked_of(each) for each in self.workloads(kind, where, after=after, limit=limit)]

    def _asked_of(self, workload: W) -> AskedOf[W]:
        asked = [one for one in self._requests.values() if workload.id in one.targets]
        return AskedOf(workload, [one for one in asked if one.kind is not RequestKind.SUBMIT])

    def children_of(self, owner: str) -> Sequence[Job]:
        """Return every job of a workload, in order of submission."""
        with self._workloads_lock:
            return [job for job in self._of_jobs.by_id.values() if in_set(job, owner)]

    def set_log(self, set_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[SetLogEntry]:
        """List what was logged of a job set, in order, entries with ``seq > after``; an unknown set has none."""
        with self._workloads_lock:
            return [entry for entry in self._log if entry.set_id == set_id and entry.seq > after][:limit]

    def _of(self, kind: type[W]) -> list[W]:
        return [each for each in self._of_jobs.sorted_workloads() if isinstance(each, kind)]

    def move_versions(self, request: Request, version: int | None) -> Mapping[str, str]:
        """Advance the versions of the named workloads a request is about; returns their kinds, by id.

        Raises:
            NotFound: A version is given, and there is no such workload.
            VersionConflict: It has another version.
        """
        known = self._of_jobs.workloads
        named = {key: known[key] for key in request.targets if key in known and known[key].name}
        for key in request.targets if version is not None else ():
            if key not in named:
                raise gone_workload(key)
            require_version(named[key], version or 0)
        for key, each in named.items():
            known[key] = evolve(each, version=each.version + 1)
        return {key: each.kind for key, each in named.items()}

    def require_new_workload(self, workload: Workload | None) -> None:
        """Check that a workload, if there is one, is new.

        Raises:
            AlreadyExists: Its name or id is taken.
        """
        if workload is None:
            return
        known = self._of_jobs.workloads
        if workload.id in known or any(
            each.kind == workload.kind and each.name and each.name == workload.name for each in known.values()
        ):
            raise known_workload(workload)

    def claim_tasks(self, rerun: Rerun | None) -> None:
        """Make sure that nobody else runs tasks again.

        Raises:
            NotFound: The array whose tasks they are is gone.
            VersionConflict: Another one does.
        """
        if rerun is None:
            return
        if rerun.of not in self._of_jobs.workloads:
            raise gone_workload(rerun.of)
        if not self._of_jobs.by_id.keys() >= {*rerun.there}:
            raise pruned_meanwhile()
        number = rerun.number
        for (root, task, other), array in self._reruns.items():
            is_taken = other >= number or (other == number - 1 and array != rerun.of)
            if root == rerun.root and task in rerun.indexes and is_taken:
                raise reran_meanwhile()
        self._reruns.update({(rerun.root, index, number): rerun.array for index in rerun.indexes})

    def require_known_workloads(self, changes: Changes) -> None:
        """Check that every workload a commit changes or logs about is there, or is a job's.

        Raises:
            Internal: One is not.
        """
        known, jobs = self._of_jobs.workloads, self._of_jobs.by_id
        if any(key not in known and key not in jobs for key in changes.workloads) or any(
            entry.set_id not in known for entry in changes.set_log
        ):
            raise unknown_workload()

    def commit_workloads(self, changes: Changes) -> None:
        """Make the changes of workloads; what is fixed stays."""
        known = self._of_jobs.workloads
        for key, each in changes.workloads.items():
            was = known.get(key, each)
            fixed = {name: getattr(was, name) for name in _FIXED}
            known[key] = evolve(each, **fixed)
        for entry in changes.set_log:
            self._logged += 1
            self._log.append(evolve(entry, seq=self._logged))
        for key in changes.forgotten:
            known.pop(key, None)
        self._reruns = {key: array for key, array in self._reruns.items() if array not in changes.forgotten}
        if changes.forgotten:
            self._log = [entry for entry in self._log if entry.set_id not in changes.forgotten]
