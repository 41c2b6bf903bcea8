"""Figures about many jobs, in memory."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from holdfast.domain.failure import DELIBERATE
from holdfast.domain.lifecycle import RUN_TERMINAL, Ending
from holdfast.ports.overview import AttemptFigures, FailureFigures, Recoveries, Share, UsageFigures
from tools.memory_store.jobs import is_seen

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from threading import RLock

    from holdfast.domain.failure import Failure
    from holdfast.domain.job import Attempt, Job, Resources, Run
    from holdfast.ports.overview import FigureScope
    from tools.memory_store.jobs import JobTable


class MemoryFigureStore:
    """The part of the store that sums up."""

    def __init__(self, lock: RLock, table: JobTable) -> None:
        """Look into the same table as the others."""
        self._lock = lock
        self._table = table

    def job_figures(self, scope: FigureScope) -> Mapping[str, int]:
        """Count jobs by state: those that go on, and those that ended in that time."""
        with self._lock:
            return Counter(str(job.state) for job in self._jobs(scope) if _lasts(job, scope))

    def wall_time(self, scope: FigureScope) -> float:
        """Sum up the time of jobs from their first start to their end, in seconds."""
        with self._lock:
            return sum(_span(job, scope) for job in self._jobs(scope) if _lasts(job, scope))

    def attempt_figures(self, scope: FigureScope) -> Mapping[str | None, AttemptFigures]:
        """Sum up the attempts of that time by how they ended; ``None`` has those that go on."""
        groups: dict[str | None, list[Attempt]] = defaultdict(list)
        with self._lock:
            for attempt in self._attempts(scope):
                if _lasts(attempt, scope):
                    groups[None if attempt.ending is None else str(attempt.ending)].append(attempt)
        return {
            ending: AttemptFigures(len(some), sum(map(self._is_retry, some)), sum(_span(one, scope) for one in some))
            for ending, some in groups.items()
        }

    def failure_figures(self, scope: FigureScope) -> Sequence[FailureFigures]:
        """Sum up the failures of that time, of attempts and of pods by themselves; the most frequent first."""
        groups: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
        with self._lock:
            ids = {job.id for job in self._jobs(scope)}
            pods = (run for run in self._table.runs.values() if run.job_id in ids)
            every: list[Attempt | Run] = [*self._attempts(scope), *pods]
            for one in filter(_has_failed, every):
                if one.failure is not None and one.ended_at is not None and one.ended_at >= scope.since:
                    groups[_told(one.failure)].append(_span(one, scope))
        found = [FailureFigures(*told, len(spans), sum(spans)) for told, spans in groups.items()]
        return sorted(found, key=lambda one: (-one.count, one.cause, one.category, one.subcategory, one.node))

    def usage_figures(self, scope: FigureScope, share: Share, label: str = "") -> Sequence[UsageFigures]:
        """Sum up for how long runs had what, by what they share."""
        found: dict[tuple[str, Resources, bool], list[float]] = defaultdict(list)
        with self._lock:
            jobs = {job.id: job for job in self._jobs(scope)}
            for run in self._table.runs.values():
                over = run.ended_at is not None or run.status not in RUN_TERMINAL
                if run.job_id in jobs and run.started_at is not None and over and _lasts(run, scope):
                    ending = self._table.attempts[run.job_id, run.attempt].ending
                    wasted = ending is Ending.FAILED or run.failure is not None
                    name = self._shared(jobs[run.job_id], share, label)
                    found[name, run.request, wasted].append(_span(run, scope))
        every = [UsageFigures(*key, len(spans), sum(spans)) for key, spans in found.items()]
        return sorted(every, key=lambda one: (one.name, one.request, one.wasted))

    def _shared(self, job: Job, share: Share, label: str) -> str:
        if share is Share.LABEL and job.child is not None and job.of_set is None:
            return str(json.loads(job.spec)["spec"].get("labels", {}).get(label, ""))
        named = {Share.USER: job.submitted_by, Share.QUEUE: job.queue, Share.GROUP: job.group}
        return named[share] if share in named else self._table.labels.get(job.id, {}).get(label, "")

    def recoveries(self, scope: FigureScope) -> Recoveries:
        """Sum up the attempts that started in that time after one that failed."""
        with self._lock:
            spans = [*self._recovered(scope)]
        return Recoveries(len(spans), fmean(spans) if spans else None)

    def _recovered(self, scope: FigureScope) -> Iterator[float]:
        for attempt in self._attempts(scope):
            later = self._table.attempts.get((attempt.job_id, attempt.number + 1))
            started_at = later.started_at if later else None
            failed_at = attempt.ended_at if _has_failed(attempt) else None
            if failed_at is not None and started_at is not None and started_at >= scope.since:
                yield started_at - failed_at

    def _is_retry(self, attempt: Attempt) -> bool:
        earlier = self._table.attempts.get((attempt.job_id, attempt.number - 1))
        return earlier is not None and _has_failed(earlier)

    def _jobs(self, scope: FigureScope) -> list[Job]:
        labels, every = frozenset(scope.labels), self._table.by_id.values()
        of_queue = [job for job in every if scope.queue in {None, job.queue} and is_seen(job, scope.seen)]
        return [job for job in of_queue if labels <= self._table.labels.get(job.id, {}).items()]

    def _attempts(self, scope: FigureScope) -> list[Attempt]:
        ids = {job.id for job in self._jobs(scope)}
        return [attempt for attempt in self._table.attempts.values() if attempt.job_id in ids]


def _has_failed(one: Attempt | Run) -> bool:
    return one.failure is not None and one.failure.ended_by not in DELIBERATE


def _lasts(one: Job | Attempt | Run, scope: FigureScope) -> bool:
    return one.ended_at is None or one.ended_at >= scope.since


def _span(one: Job | Attempt | Run, scope: FigureScope) -> float:
    if one.started_at is None:
        return 0.0
    ended_at = scope.until if one.ended_at is None else one.ended_at
    return max(0.0, ended_at - max(one.started_at, scope.since))


def _told(failure: Failure) -> tuple[str, str, str, str]:
    return (str(failure.cause), failure.category, failure.subcategory, failure.node or "")
