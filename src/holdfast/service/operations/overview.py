"""What became of many jobs, how everything is now, and what jobs are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.ports.overview import FigureScope
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.overview.figures import Figures, Total, summed_up
from holdfast.service.overview.now import Now, seen_now
from holdfast.service.overview.usage import JobUsage, Share, usage, with_others_together

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

__all__ = ["Figures", "JobUsage", "Now", "Share", "Total"]


class Overview(Struct, frozen=True):
    """What can be asked of everything at once."""

    backend: Backend

    @asks(Right.WATCH, Subject.JOB)
    def summary(
        self, caller: Caller, *, within_s: float, queue: str | None = None, labels: Sequence[tuple[str, str]] = ()
    ) -> Figures:
        """Sum up jobs of so long ago, their failures, what these cost, and how fast jobs recovered.

        Of others' work it counts what who calls sees the details of.
        """
        now, seen = self.backend.clock.now(), self.backend.seeing(caller).readable()
        return summed_up(self.backend.store, FigureScope(max(0.0, now - within_s), now, queue, tuple(labels), seen))

    @asks(Right.WATCH, Subject.JOB)
    def usage(
        self, caller: Caller, share: Share, *, within_s: float, label: str = ""
    ) -> tuple[FigureScope, Sequence[JobUsage]]:
        """Report who had how much of the machines in so long, and how much of that failed attempts wasted.

        Who does not see the details of others' work sees what all others had together, and else only what it sees.
        """
        now, seeing = self.backend.clock.now(), self.backend.seeing(caller)
        visible, whole = seeing.readable(), seeing.whole()
        scope = FigureScope(max(0.0, now - within_s), now, seen=whole if share is Share.USER else visible)
        figures = usage(self.backend.store, scope, share, label)
        return scope, figures if visible == whole or share is not Share.USER else with_others_together(
            figures, caller.actor
        )

    @asks(Right.WATCH, Subject.JOB)
    def now(self, caller: Caller, *, limit: int, named: str = "") -> Now:
        """Look at everything as it is; see ``seen_now``."""
        seeing = self.backend.seeing(caller)
        counted, listed = seeing.only(), seeing.readable() if named else seeing.only()
        overview = seen_now(self.backend.store, limit=limit, named=named, counted=counted, listed=listed)
        if seeing.everything():
            return overview
        held_by = overview.held_by
        if not seeing.details():
            jobs = self.backend.store.jobs(JobFilter(ids=frozenset(run.job_id for run in overview.runs if run.devices)))
            runs, held_by = seeing.holders(overview.runs, jobs)
            overview = evolve(overview, runs=runs)
        return evolve(
            overview,
            held_by=held_by,
            running=seeing.jobs(overview.running),
            failing=seeing.jobs(overview.failing),
            latest=seeing.latest([*overview.running, *overview.failing], overview.latest),
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
        jobs = self.backend.store.jobs(JobFilter(tasks=False, seen=seeing.readable()))
        names = {job.name for job in jobs if job.of_set is None and job.name.startswith(prefix)}
        return sorted(names)[:limit]
