"""What became of many jobs, how everything is now, and what jobs are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.ports.overview import Scope
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.overview.figures import Figures, Total, summed_up
from holdfast.service.overview.now import Now, seen_now
from holdfast.service.overview.usage import Share, Usage, usage, with_others_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

__all__ = ["Figures", "Now", "Share", "Total", "Usage"]


class Overview(Struct, frozen=True):
    """What can be asked of everything at once."""

    backend: Backend

    @asks(Right.WATCH, Subject.JOB)
    def summary(
        self, _caller: Caller, *, within_s: float, queue: str | None = None, labels: Sequence[tuple[str, str]] = ()
    ) -> Figures:
        """Sum up jobs of so long ago, their failures, what these cost, and how fast jobs recovered."""
        now = self.backend.clock.now()
        return summed_up(self.backend.store, Scope(max(0.0, now - within_s), now, queue, tuple(labels)))

    @asks(Right.WATCH, Subject.JOB)
    def usage(self, caller: Caller, share: Share, *, within_s: float, label: str = "") -> tuple[Scope, Sequence[Usage]]:
        """Report who had how much of the machines in so long, and how much of that failed attempts wasted.

        Who sees nothing of others' work sees what others had together, and only groups and labels of their own.
        """
        now, alone = self.backend.clock.now(), not self.backend.seeing(caller).details()
        scope = Scope(max(0.0, now - within_s), now)
        if alone and share in {Share.GROUP, Share.LABEL}:
            scope = evolve(scope, user=caller.actor)
        found = usage(self.backend.store, scope, share, label)
        return scope, with_others_together(found, caller.actor) if alone and share is Share.USER else found

    @asks(Right.WATCH, Subject.JOB)
    def now(self, caller: Caller, *, limit: int, named: str = "") -> Now:
        """Look at everything as it is; see ``seen_now``."""
        found, seeing = seen_now(self.backend.store, limit=limit, named=named), self.backend.seeing(caller)
        if seeing.everything():
            return found
        held_by = found.held_by
        if not seeing.details():
            jobs = self.backend.store.jobs(JobFilter(ids=frozenset(run.job_id for run in found.runs if run.devices)))
            runs, held_by = seeing.holders(found.runs, jobs)
            found = evolve(found, runs=runs)
        return evolve(
            found,
            held_by=held_by,
            running=seeing.jobs(found.running),
            failing=seeing.jobs(found.failing),
            latest=seeing.latest([*found.running, *found.failing], found.latest),
        )

    @asks(Right.WATCH, Subject.SERVER)
    def metrics(self, _caller: Caller) -> bytes:
        """Write the metrics of the process in Prometheus' text format."""
        return self.backend.metrics()

    @asks(Right.WATCH, Subject.JOB)
    def names(self, caller: Caller, prefix: str, *, limit: int) -> Sequence[str]:
        """List names that begin so, each once and in order, of jobs that belong to no job set or array."""
        seeing = self.backend.seeing(caller)
        if seeing.details():
            return list(self.backend.store.job_names(prefix, limit=limit))
        jobs = self.backend.store.jobs(JobFilter(tasks=False, seen=seeing.known()))
        names = {job.name for job in jobs if job.of_set is None and job.name.startswith(prefix)}
        return sorted(names)[:limit]
