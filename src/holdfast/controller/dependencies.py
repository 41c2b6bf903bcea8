"""An index from what is waited for to what waits, so that waiting costs nothing.

It is rebuilt from the waiting jobs. What had ended before is looked up in the store, all of a tick or a restart at
once.
"""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from holdfast.controller.readable import read_each
from holdfast.domain.record import Struct, field
from holdfast.domain.workloads.base import Owner, Workload
from holdfast.domain.workloads.dependencies import (
    CANCELLED,
    GONE,
    AwaitedState,
    holds,
    state_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.work_queue import WorkQueue
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.errors import HoldfastError
    from holdfast.ports.store import Changes, ControllerStore

_AT_ONCE = 1000
"""How many waiting workloads are looked at in the tick in which a dependency ends; the others follow at their kind's
pace."""
_MISSING = AwaitedState(missing=True)


def _going_on(states: dict[str, AwaitedState], key: str, error: HoldfastError) -> None:
    """Keep work waiting for something unreadable: that is left alone and may become readable again."""
    del error
    states[key] = AwaitedState()


class Prerequisite(Struct, eq=False, gc=True):
    """Something that work waits for."""

    standing: AwaitedState | None
    """Its state as last seen; ``None`` until it is looked up."""
    dependents: dict[str, str] = field(default_factory=dict)
    """The kinds of the workloads that wait for it, by id."""


class Waits:
    """Everything that work waits for, by id."""

    def __init__(self, queue: WorkQueue) -> None:
        self.awaited: dict[str, Prerequisite] = {}
        self._queue = queue
        self._unknown: dict[str, None] = {}

    def heed(self, key: str, what: Job | Workload | None) -> None:
        """Note the state of a record, and have those waiting for it looked at if that may decide their condition.

        Args:
            key: The record's id.
            what: The present record; ``None`` if it was forgotten.
        """
        entry = self.awaited.get(key)
        if entry is None or (isinstance(what, Workload) and not isinstance(what, Owner)):
            return  # The record of a job's pods is skipped: the job itself is what is waited for.
        standing = state_of(what)
        if what is None and entry.standing is not None and entry.standing.outcome:
            return  # How it ended stays known, even if it is forgotten before those waiting are looked at.
        before, entry.standing = entry.standing, standing
        if not standing.outcome and (not standing.started or (before is not None and before.started)):
            return
        dependents = iter(entry.dependents.items())
        for dependent, kind in islice(dependents, _AT_ONCE):
            self._queue.add(kind, dependent)
        for dependent, kind in dependents:
            self._queue.defer(kind, dependent)

    def watch(self, key: str, kind: str, after: Sequence[Dependency], met: Sequence[int]) -> None:
        """Have a workload looked at when a dependency changes, or at once if it may have changed already."""
        due = False
        for place, dependency in enumerate(after):
            if place in met:
                continue
            if dependency.outcome:
                due = True
                continue
            entry = self._join(dependency.id, key, kind)
            if dependency.array:
                self._join(dependency.array, key, kind)
            due = (
                due or entry.standing is None or entry.standing.missing or holds(dependency, entry.standing) is not None
            )
        if due:
            self._queue.add(kind, key)

    def _join(self, awaited: str, key: str, kind: str) -> Prerequisite:
        entry = self.awaited.get(awaited)
        if entry is None:
            entry = self.awaited[awaited] = Prerequisite(None)
            self._unknown[awaited] = None
        entry.dependents[key] = kind
        return entry

    def leave(self, key: str, after: Sequence[Dependency]) -> None:
        """Stop waiting on behalf of a workload."""
        for dependency in after:
            for awaited in (dependency.id, dependency.array):
                entry = self.awaited.get(awaited)
                if entry is None:
                    continue
                entry.dependents.pop(key, None)
                if not entry.dependents:
                    del self.awaited[awaited]
                    self._unknown.pop(awaited, None)

    def look_up(self, store: ControllerStore, changes: Changes) -> None:
        """Look up unknown dependencies; uncommitted changes are newer than what is stored."""
        if not self._unknown:
            return
        unknown, self._unknown = list(self._unknown), {}
        states: dict[str, AwaitedState] = {}
        damaged = partial(_going_on, states)
        for jobs in read_each(store.jobs_by_id, unknown, damaged):
            states.update((job.id, state_of(changes.jobs.get(job.id, job))) for job in jobs)
        others = [key for key in unknown if key not in states]
        for workloads in read_each(partial(store.workloads_by_id, Workload), others, damaged) if others else ():
            for key, row in workloads.items():
                newest = changes.workloads.get(key, row)
                if isinstance(newest, Owner) and key not in changes.forgotten:
                    states[key] = state_of(newest)
        for key in unknown:
            entry = self.awaited[key]
            if entry.standing is None or not entry.standing.outcome:  # It may have ended and been deleted.
                entry.standing = states.get(key, _MISSING)

    def standings(self, after: Sequence[Dependency], met: Sequence[int]) -> list[AwaitedState]:
        """Return the states of dependencies; one that is no longer tracked gets any state."""
        return [_MISSING if place in met else self._standing(dependency) for place, dependency in enumerate(after)]

    def _standing(self, dependency: Dependency) -> AwaitedState:
        if dependency.outcome:
            return AwaitedState(dependency.outcome, reason=dependency.reason)
        standing = self.awaited[dependency.id].standing or _MISSING
        if not standing.missing:
            return standing
        if not dependency.array:
            return GONE
        array = self.awaited[dependency.array].standing or _MISSING
        if array.missing:
            return GONE
        return AwaitedState(CANCELLED, reason="its array ended without it") if array.outcome else standing
