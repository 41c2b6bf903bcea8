"""Figures of many jobs, the state of everything now, and the names of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.access.grants import Right
from holdfast.domain.audit import Subject
from holdfast.domain.record import Struct, evolve
from holdfast.ports.overview import FigureScope
from holdfast.ports.store import JobFilter
from holdfast.service.access.asking import asks
from holdfast.service.overview import (
    Figures,
    JobUsage,
    Now,
    Share,
    Total,
    seen_now,
    summed_up,
    usage,
    with_others_together,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.audit import Caller
    from holdfast.service.operations.backend import Backend

__all__ = ["Figures", "JobUsage", "Now", "Share", "Total"]


class Overview(Struct, frozen=True):
    """Queries about all jobs at once."""

    backend: Backend

    @asks(Right.WATCH, Subject.JOB)
    def summary(
        self, caller: Caller, *, within_s: float, queue: str | None = None, labels: Sequence[tuple[str, str]] = ()
    ) -> Figures:
        """Sum up the jobs of the last ``within_s`` seconds: failures, their cost, and how fast jobs recovered.

        Counts the caller's own jobs and those whose details the caller may see.
        """
        now, seen = self.backend.clock.now(), self.backend.seeing(caller).readable()
        return summed_up(self.backend.store, FigureScope(max(0.0, now - within_s), now, queue, tuple(labels), seen))

    @asks(Right.WATCH, Subject.JOB)
    def usage(
        self, caller: Caller, share: Share, *, within_s: float, label: str = ""
    ) -> tuple[FigureScope, Sequence[JobUsage]]:
        """Report who used how much in the last ``within_s`` seconds, and how much of it failed attempts wasted.

        By user, a caller who may not see the details of others' work gets one sum for all others; by anything else,
        only the usage of visible work.
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
        """Read the state of everything; see ``seen_now``."""
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
        """Render the metrics of the process in Prometheus' text format."""
        return self.backend.metrics()

    @asks(Right.WATCH, Subject.JOB)
    def names(self, caller: Caller, prefix: str, *, limit: int) -> Sequence[str]:
        """List the distinct names with a prefix, in order, of jobs that belong to no job set or array."""
        seeing = self.backend.seeing(caller)
        if seeing.details():
            return list(self.backend.store.job_names(prefix, limit=limit))
        jobs = self.backend.store.jobs(JobFilter(tasks=False, seen=seeing.readable()))
        names = {job.name for job in jobs if job.of_set is None and job.name.startswith(prefix)}
        return sorted(names)[:limit]
