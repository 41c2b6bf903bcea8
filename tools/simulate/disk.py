"""The store on a disk that can be full or slow, under a controller that can die at any point of using it.

Every commit that succeeded is reported to the invariants.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Unavailable, Uncertain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.job import Attempt, Job, Node, Run
    from holdfast.domain.lifecycle import HistoryRow
    from holdfast.ports.catalogue import Catalogue
    from holdfast.ports.requests import Request
    from holdfast.ports.store import Changes, News, RunsAs, Snapshot, Store
    from holdfast.ports.workloads import Left, W
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.trace import FaultTrace, Fuse


class Disk:
    """What is wrong with the disk now."""

    def __init__(self, agenda: Agenda, trace: FaultTrace) -> None:
        """Begin healthy."""
        self._agenda = agenda
        self._trace = trace
        self.slow_s = 0.0
        """How long a commit takes."""
        self.full = False
        """Writes are refused."""
        self.locked = False
        """Reads are refused, too."""
        self.unanswered = False
        """The next commit takes effect, and its answer gets lost."""

    def require_space(self) -> None:
        """Refuse a write.

        Raises:
            Unavailable: The disk is full.
        """
        if self.full or self.locked:
            self._trace.fault("write refused")
            msg = "database or disk is full"
            raise Unavailable(msg)

    def require_unlocked(self) -> None:
        """Refuse a read.

        Raises:
            Unavailable: The database is locked.
        """
        if self.locked:
            self._trace.fault("read refused")
            msg = "database is locked"
            raise Unavailable(msg)

    def take_time(self) -> None:
        """Let the world go on for as long as a commit takes."""
        if self.slow_s:
            self._trace.fault("slow commit")
            self._agenda.run_until(self._agenda.now() + self.slow_s)

    def stand_still(self, for_s: float) -> None:
        """Let the world go on while a process stands still in the middle of a commit."""
        self._trace.fault("controller stalls in commit")
        self._agenda.run_until(self._agenda.now() + for_s)

    def answer(self) -> None:
        """Tell that a commit took effect, unless the answer gets lost.

        Raises:
            Uncertain: It got lost.
        """
        if self.unanswered:
            self.unanswered = False
            self._trace.fault("commit unanswered")
            msg = "the connection was lost during a commit"
            raise Uncertain(msg)


class ControllersStore:
    """The ``ControllerStore`` port as one life of the controller sees it."""

    def __init__(self, store: Store, disk: Disk, fuse: Fuse, committed: Callable[[Changes], None]) -> None:
        """Remember the real store and whom to tell of commits; ``committed`` may be set anew."""
        self._store = store
        self._disk = disk
        self._fuse = fuse
        self.committed = committed
        self.die_before_commit = self.die_after_commit = False
        self.stall_s = 0.0
        """How long the process stands still in its next commit that nobody waits for."""
        self.waited_for = False
        """Whether an executor waits for what is committed."""

    def load(self) -> Snapshot:
        """Read everything that is still going on."""
        self._point()
        return self._store.load()

    def mark(self) -> object:
        """Return what equals an earlier mark only if nothing was written."""
        self._point()
        return self._store.mark()

    def news(self) -> News:
        """Return whether anybody wants something."""
        self._point()
        return self._store.news()

    def requests(self, *, limit: int) -> Sequence[Request]:
        """Return the oldest requests not handled yet."""
        self._point()
        return self._store.requests(limit=limit)

    def jobs_by_id(self, job_ids: Sequence[str]) -> Sequence[Job]:
        """Return those jobs."""
        self._point()
        return self._store.jobs_by_id(job_ids)

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        """Return a job's attempts."""
        self._point()
        return self._store.attempts(job_id)

    def runs(self, job_id: str) -> Sequence[Run]:
        """Return a job's runs."""
        self._point()
        return self._store.runs(job_id)

    def history(self, job_id: str) -> Sequence[HistoryRow]:
        """Return a job's history."""
        self._point()
        return self._store.history(job_id)

    def workloads_by_id(self, kind: type[W], ids: Sequence[str]) -> Mapping[str, W]:
        """Return those workloads."""
        self._point()
        return self._store.workloads_by_id(kind, ids)

    def left_to_end(self, key: str) -> Left:
        """Return what there is of a workload that is ended although it cannot be read."""
        self._point()
        return self._store.left_to_end(key)

    def nodes(self) -> Sequence[Node]:
        """List nodes as last reported; a new controller's first words, which ``load`` belongs to."""
        return self._store.nodes()

    def children_of(self, owner: str) -> Sequence[Job]:
        """Return every job of a workload."""
        self._point()
        return self._store.children_of(owner)

    def count_by_state(self, owner: str | None = None) -> Mapping[str, int]:
        """Count jobs by state."""
        self._point()
        return self._store.count_by_state(owner)

    def catalogue_version(self) -> int:
        """Return the catalogue's version."""
        self._point()
        return self._store.catalogue_version()

    def catalogue(self) -> Catalogue:
        """Read the catalogue."""
        self._point()
        return self._store.catalogue()

    def lead(
        self,
        owner: str,
        ttl_s: float,
        now: float,
        *,
        heir_of: str | None = None,
        place: str = "",
        runs_as: RunsAs | None = None,
    ) -> int:
        """Become the one writer."""
        self._disk.require_space()
        return self._store.lead(owner, ttl_s, now, heir_of=heir_of, place=place, runs_as=runs_as)

    def commit(self, changes: Changes) -> None:
        """Commit, or die before or after it.

        Raises:
            Crashed: The controller's process ended here.
            Unavailable: The disk is full.
            Uncertain: It was made, and the answer got lost.
        """
        if self.die_before_commit:
            self._fuse.light(1)
        self._fuse.burn()
        self._disk.require_space()
        self._disk.take_time()
        if self.stall_s and not self.waited_for:
            stalls_s, self.stall_s = self.stall_s, 0.0
            self._disk.stand_still(stalls_s)
        self._fuse.burn()
        self._store.commit(changes)
        self.committed(changes)
        if self.die_after_commit:
            self._fuse.light(1)
        self._fuse.burn()
        self._disk.answer()

    def _point(self) -> None:
        self._fuse.burn()
        self._disk.require_unlocked()
