"""What other systems call jobs, in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.group import Grouped
from holdfast.ports.names import ListedName, NamedJob
from tools.memory_store.jobs import is_seen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from threading import RLock

    from holdfast.domain.access.grants import Seen
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

    def beginning(self, prefix: str, *, seen: Seen | None = None) -> Sequence[ListedName]:
        """List the names that begin with a text, wherever that ends, in order of submission of their jobs."""
        with self._names_lock:
            found = [(one, self._named.by_id[one.job_id]) for one in self._named.names.values()]
        listed = [
            ListedName(one.name, job.id, job.seq, job.state)
            for one, job in found
            if one.name.startswith(prefix) and is_seen(job, seen)
        ]
        return sorted(listed, key=lambda one: one.seq)

    def taken_names(self, names: Mapping[str, ExternalName]) -> dict[str, str]:
        """Return, by its id, the job that has the name of each whose name is taken already."""
        known = {name: one.job_id for name, one in self._left(names).items()}
        owners = ((job_id, known.setdefault(one.name, job_id)) for job_id, one in names.items())
        return {job_id: owner for job_id, owner in owners if owner != job_id}

    def take_names(self, names: Mapping[str, ExternalName], now: float) -> None:
        """Take the names of jobs that are appended, from those that give them up."""
        self._named.names = self._left(names)
        for job_id, one in names.items():
            self._named.names.setdefault(one.name, NamedJob(one.name, job_id, one.digest, now))

    def _left(self, names: Mapping[str, ExternalName]) -> dict[str, NamedJob]:
        """Return the names without those that are given up for these, and those of all below."""
        left = dict(self._named.names)
        for one in names.values():
            if one.replaces and one.name in left and left[one.name].job_id == one.replaces:
                below = Grouped(one.name, below=True)
                left = {key: each for key, each in left.items() if not below.holds(key)}
        return left
