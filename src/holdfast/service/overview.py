"""Figures of many jobs: what became of them, who used how much, and the state of everything now.

ETTR, the effective training time ratio, is the share of a job's time in which it made progress that lasted: productive
run time by wall-clock time (Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
Clusters", 2024). Here the productive time is the run time of attempts that succeeded or still run, and wall-clock time
is counted from a job's first start to its end, so waiting for a retry counts against it. Where attempts resume from a
checkpoint the true ratio is higher: Holdfast does not know how much of a failed attempt was kept.

An hour of a CPU, a GiB of memory or a GPU is one that a run had allocated in each of its ranks, from the start of its
program to its end, used or not.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.domain.lifecycle import Ending
from holdfast.domain.record import Struct
from holdfast.ports.overview import FigureScope, Share
from holdfast.ports.store import JobFilter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.access.grants import Seen
    from holdfast.domain.job import Job, Node, Run
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.ports.overview import AttemptFigures, FailureFigures, Latest, Recoveries, UsageFigures
    from holdfast.ports.store import Store


class Total(Struct, frozen=True):
    """The failures of one kind, or on one node."""

    name: str
    count: int
    lost_s: float


class Figures(Struct, frozen=True):
    """The summary of many jobs. Durations are in seconds."""

    scope: FigureScope
    jobs: Mapping[str, int]
    """By state."""
    attempts: int
    retries: int
    failures: Sequence[FailureFigures]
    """Without deliberate stops."""
    ran_s: float
    """Run time of all attempts."""
    productive_s: float
    """Run time of the attempts that succeeded or still run."""
    wall_s: float
    """From the first start of each job to its end."""
    recoveries: Recoveries

    @property
    def lost_s(self) -> float:
        """Run time of failed attempts, and of pods that failed by themselves."""
        return sum(failure.lost_s for failure in self.failures)

    @property
    def ettr(self) -> float | None:
        """The effective training time ratio; ``None`` while nothing has run."""
        return min(1.0, self.productive_s / self.wall_s) if self.wall_s > 0 else None

    @property
    def by_kind(self) -> Sequence[Total]:
        """Failures by category, or by cause for those without one; the most frequent first."""
        return _totals(self.failures, kind_of)

    @property
    def by_node(self) -> Sequence[Total]:
        """Failures by node, without those that had none; the most frequent first."""
        return _totals((failure for failure in self.failures if failure.node), lambda failure: failure.node)


def kind_of(figures: FailureFigures) -> str:
    """Name the kind of a failure: its category and subcategory, as in ``memory/limit``, or its cause."""
    return "/".join(filter(None, (figures.category, figures.subcategory))) or figures.cause


def _totals(failures: Iterable[FailureFigures], name: Callable[[FailureFigures], str]) -> Sequence[Total]:
    totals: dict[str, Total] = {}
    for failure in failures:
        total = totals.get(name(failure), Total(name(failure), 0, 0.0))
        totals[total.name] = Total(total.name, total.count + failure.count, total.lost_s + failure.lost_s)
    return sorted(totals.values(), key=lambda total: (-total.count, total.name))


_PRODUCTIVE = (None, str(Ending.SUCCEEDED))


def summed_up(store: Store, scope: FigureScope) -> Figures:
    """Read the figures: one query for each, however many jobs there are."""
    attempts: Mapping[str | None, AttemptFigures] = store.attempt_figures(scope)
    return Figures(
        scope=scope,
        jobs=store.job_figures(scope),
        attempts=sum(attempt.count for attempt in attempts.values()),
        retries=sum(attempt.retries for attempt in attempts.values()),
        failures=store.failure_figures(scope),
        ran_s=sum(attempt.ran_s for attempt in attempts.values()),
        productive_s=sum(attempt.ran_s for ending, attempt in attempts.items() if ending in _PRODUCTIVE),
        wall_s=store.wall_time(scope),
        recoveries=store.recoveries(scope),
    )


_LOOKED_AT = 1000
"""The most recently submitted failed jobs, among which the last to fail are found."""


class Now(Struct, frozen=True):
    """The state of everything at one moment."""

    jobs: Mapping[str, int]
    """All jobs, by state."""
    queues: Mapping[str, Mapping[str, int]]
    """Unfinished jobs, by queue and state."""
    nodes: Sequence[Node]
    cordons: Mapping[str, Cordon]
    """By the names of nodes."""
    runs: Sequence[Run]
    """All running ones."""
    held_by: Mapping[str, str]
    """Names of the jobs whose runs hold devices, by id."""
    running: Sequence[Job]
    failing: Sequence[Job]
    latest: Mapping[str, Latest]
    """Of the jobs that run or fail."""


def seen_now(
    store: Store, *, limit: int, named: str = "", counted: Seen | None = None, listed: Seen | None = None
) -> Now:
    """Read the state of everything: a few queries, however many jobs there are.

    Args:
        store: The store to read.
        limit: Longest list of jobs.
        named: A text that the names of listed jobs contain.
        counted: Which jobs are counted; ``None``: all.
        listed: Which jobs are listed; ``None``: all.
    """
    queues: dict[str, dict[str, int]] = defaultdict(dict)
    for (queue, state), count in sorted(store.queue_load(seen=counted).items()):
        queues[queue][str(state)] = count
    running = store.newest([JobState.RUNNING], limit=limit, named=named, seen=listed)
    failing = [
        *store.newest([JobState.BACKOFF, JobState.HELD], limit=limit, named=named, seen=listed),
        *sorted(store.newest([JobState.FAILED], limit=_LOOKED_AT, named=named, seen=listed), key=_since, reverse=True),
    ][:limit]
    runs = list(store.running())
    with_devices = frozenset(run.job_id for run in runs if run.devices)
    return Now(
        jobs=store.count_by_state() if counted is None else store.job_figures(FigureScope(0.0, 0.0, seen=counted)),
        queues=queues,
        nodes=store.nodes(),
        cordons=store.catalogue().cordons,
        runs=runs,
        held_by={job.id: job.name for job in store.jobs(JobFilter(ids=with_devices))},
        running=running,
        failing=failing,
        latest=store.latest_of([job.id for job in (*running, *failing)]),
    )


def _since(job: Job) -> float:
    return job.ended_at or 0.0


__all__ = ["Hours", "JobUsage", "Share", "usage", "with_others_together"]
OTHERS = "other users"
"""Stands for the users whose work the caller does not see."""
_HOUR_S, _MILLI, _GIB = 3600.0, 1000.0, float(1 << 30)


class Hours(Struct, frozen=True):
    """Hours of capacity."""

    cpu: float = 0.0
    memory: float = 0.0
    """GiB hours."""
    gpu: float = 0.0

    def __add__(self, other: Hours) -> Hours:
        return Hours(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)


class JobUsage(Struct, frozen=True):
    """The usage of jobs that share a user, a queue, a group or the value of a label."""

    name: str
    """Empty for jobs without a group or that label."""
    runs: int = 0
    failed: int = 0
    """Runs that failed, or whose attempts failed."""
    had: Hours = Hours()
    wasted: Hours = Hours()
    """The part of ``had`` that failed runs used."""


def usage(store: Store, scope: FigureScope, share: Share, label: str = "") -> Sequence[JobUsage]:
    """Report usage by name, with one query however many runs there were."""
    return _summed(store.usage_figures(scope, share, label))


def with_others_together(usages: Sequence[JobUsage], user: str) -> Sequence[JobUsage]:
    """Return the usage of one user, and that of all others summed under one name."""
    own = [usage for usage in usages if usage.name == user]
    others = [usage for usage in usages if usage.name != user]
    if not others:
        return own
    had, wasted = Hours(), Hours()
    for usage in others:
        had, wasted = had + usage.had, wasted + usage.wasted
    runs, failed = sum(usage.runs for usage in others), sum(usage.failed for usage in others)
    return [*own, JobUsage(OTHERS, runs, failed, had, wasted)]


def _summed(figures: Iterable[UsageFigures]) -> list[JobUsage]:
    usages: dict[str, JobUsage] = {}
    for figure in figures:
        usage, had = usages.get(figure.name, JobUsage(figure.name)), _hours(figure)
        usages[figure.name] = JobUsage(
            figure.name,
            usage.runs + figure.runs,
            usage.failed + (figure.runs if figure.wasted else 0),
            usage.had + had,
            usage.wasted + (had if figure.wasted else Hours()),
        )
    return [usages[name] for name in sorted(usages)]


def _hours(figure: UsageFigures) -> Hours:
    hours, request = figure.ran_s / _HOUR_S, figure.request
    return Hours(hours * request.cpu_m / _MILLI, hours * request.memory / _GIB, hours * request.gpus)
