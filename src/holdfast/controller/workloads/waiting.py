"""Kubernetes Jobs that wait for other work: until all of it has happened they have no attempt, and so no pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.terms.workload_kinds import KUBEJOB
from holdfast.domain.workloads.dependencies import advanced, kept_waiting
from holdfast.domain.workloads.gang.pending import held, queued

if TYPE_CHECKING:
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Job
    from holdfast.domain.workloads.dependencies import Dependency
    from holdfast.ports.store import ControllerStore


class WaitingJobs:
    """The Jobs without a set that wait for other work."""

    def __init__(self, state: ControllerState, store: ControllerStore) -> None:
        """Remember what it works with."""
        self._state = state
        self._store = store

    def index(self, job: Job) -> None:
        """Have a job looked at when something becomes of what it waits for."""
        if after := self._awaited(job):
            self._state.waits.watch(job.id, KUBEJOB, after, job.met)

    def leave(self, job: Job) -> None:
        """Have a job wait for nothing any more."""
        if after := self._awaited(job):
            self._state.waits.leave(job.id, after)

    def look(self, job: Job, now: float) -> Job:
        """Return a job as it goes on now; the same if nothing has changed."""
        after = self._awaited(job)
        if not after:
            return job
        waits = self._state.waits
        waits.look_up(self._store, self._state.changes)
        found = advanced(job, after, waits.standings(after, job.met), now)
        if found.ready_at is not None:
            self.leave(job)
        return found

    def steered(self, job: Job, now: float, *, suspended: bool) -> Job:
        """Return a job that has not begun as it is held or released; released, it waits for what is left."""
        if suspended:
            return held(job, "suspended", now)
        after = self._awaited(job)
        return kept_waiting(job, after, now) if after else queued(job, now)

    def _awaited(self, job: Job) -> tuple[Dependency, ...]:
        """List what a job waits for; nothing once all of it has happened."""
        return () if job.ready_at is not None else self._state.spec(job).after
