"""What other systems call jobs, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.ports.names import NamedJob

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import RLock

    from holdfast.ports.names import ExternalName
    from tools.memory_store.jobs import JobTable


class MemoryNameStore:
    """The store's part for names."""

    def __init__(self, lock: RLock, jobs: JobTable) -> None:
        """Work on the tables of a store, under its lock."""
        self._names_lock = lock
        self._named = jobs

    def named(self, names: Sequence[str]) -> Mapping[str, NamedJob]:
        """Return whose names are, by name; those of nobody are left out."""
        with self._names_lock:
            return {name: self._named.names[name] for name in names if name in self._named.names}

    def names_of(self, job_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of jobs, by their ids; those that have none are left out."""
        with self._names_lock:
            known = self._named.name_of
            return {job_id: known[job_id] for job_id in job_ids if job_id in known}

    def taken_names(self, names: Mapping[str, ExternalName]) -> dict[str, str]:
        """Return, by its id, the job that has the name of each whose name is taken already."""
        known = {name: one.job_id for name, one in self._named.names.items()}
        owners = ((job_id, known.setdefault(one.name, job_id)) for job_id, one in names.items())
        return {job_id: owner for job_id, owner in owners if owner != job_id}

    def take_names(self, names: Mapping[str, ExternalName], now: float) -> None:
        """Take the names of jobs that are appended."""
        for job_id, one in names.items():
            self._named.names.setdefault(one.name, NamedJob(one.name, job_id, one.digest, now))
