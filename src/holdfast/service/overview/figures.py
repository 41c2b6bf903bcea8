"""What became of many jobs in some time: how many, what failed and where, what it cost.

ETTR, the effective training time ratio, is the share of a job's time in which it made progress that lasted: productive
run time by wall-clock time (Kokolis et al., "Revisiting Reliability in Large-Scale Machine Learning Research
Clusters", 2024). Here productive is what attempts ran that succeeded or still run, and wall-clock time is counted from
a job's first start to its end, so waiting for a retry counts against it. Where attempts resume from a checkpoint the
true ratio is higher: how much of a failed attempt was kept, nobody tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.lifecycle import Ending
from holdfast.domain.record import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.ports.overview import AttemptFigures, FailureFigures, FigureScope, Recoveries
    from holdfast.ports.store import Store


class Total(Struct, frozen=True):
    """Failures that have something in common."""

    name: str
    count: int
    lost_s: float


class Figures(Struct, frozen=True):
    """The summary; durations are in seconds."""

    scope: FigureScope
    jobs: Mapping[str, int]
    """By state."""
    attempts: int
    retries: int
    failures: Sequence[FailureFigures]
    """Without what was stopped deliberately."""
    ran_s: float
    """What all attempts ran."""
    productive_s: float
    """What those ran that succeeded or go on."""
    wall_s: float
    """From the first start of each job to its end."""
    recoveries: Recoveries

    @property
    def lost_s(self) -> float:
        """What failed attempts, and pods that failed by themselves, had run for."""
        return sum(failure.lost_s for failure in self.failures)

    @property
    def ettr(self) -> float | None:
        """The effective training time ratio; ``None`` while nothing has run."""
        return min(1.0, self.productive_s / self.wall_s) if self.wall_s > 0 else None

    @property
    def by_kind(self) -> Sequence[Total]:
        """Failures by category, or by cause where they have none; the most frequent first."""
        return _totals(self.failures, kind_of)

    @property
    def by_node(self) -> Sequence[Total]:
        """Failures by node, for those that had one; the most frequent first."""
        return _totals((failure for failure in self.failures if failure.node), lambda failure: failure.node)


def kind_of(figures: FailureFigures) -> str:
    """Name what kind of failure it was: ``memory/limit``, or a cause."""
    return "/".join(filter(None, (figures.category, figures.subcategory))) or figures.cause


def _totals(failures: Iterable[FailureFigures], name: Callable[[FailureFigures], str]) -> Sequence[Total]:
    totals: dict[str, Total] = {}
    for failure in failures:
        sum_so_far = totals.get(name(failure), Total(name(failure), 0, 0.0))
        totals[sum_so_far.name] = Total(
            sum_so_far.name, sum_so_far.count + failure.count, sum_so_far.lost_s + failure.lost_s
        )
    return sorted(totals.values(), key=lambda total: (-total.count, total.name))


_PRODUCTIVE = (None, str(Ending.SUCCEEDED))


def summed_up(store: Store, scope: FigureScope) -> Figures:
    """Read the figures: one question to the store for each, however many jobs there are."""
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
