"""How much of the machines each user, queue, group or label had, and how much of that failed attempts wasted.

An hour of a CPU, a GiB of memory or a GPU is one that a run had for itself, from the start of its program to its end,
whether or not it used it: what it asked for, in each of its ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct
from holdfast.ports.overview import FigureScope, Share

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.ports.overview import UsageFigures
    from holdfast.ports.store import Store

__all__ = ["Hours", "JobUsage", "Share", "usage", "with_others_together"]
OTHERS = "other users"
"""Stands for those whose work somebody does not see."""
_HOUR_S, _MILLI, _GIB = 3600.0, 1000.0, float(1 << 30)


class Hours(Struct, frozen=True):
    """Hours of capacity."""

    cpu: float = 0.0
    memory: float = 0.0
    """Of a GiB."""
    gpu: float = 0.0

    def __add__(self, other: Hours) -> Hours:
        """Sum, of each kind."""
        return Hours(self.cpu + other.cpu, self.memory + other.memory, self.gpu + other.gpu)


class JobUsage(Struct, frozen=True):
    """What jobs had that share something."""

    name: str
    """Empty for those that do not have it."""
    runs: int = 0
    failed: int = 0
    """Runs that failed, or whose attempts did."""
    had: Hours = Hours()
    wasted: Hours = Hours()
    """What of that those had which failed."""


def usage(store: Store, scope: FigureScope, share: Share, label: str = "") -> Sequence[JobUsage]:
    """Report who had how much in some time, by name; with one question to the store, however many runs there were."""
    return _summed(store.usage_figures(scope, share, label))


def with_others_together(usages: Sequence[JobUsage], user: str) -> Sequence[JobUsage]:
    """Return what one user had, and what all others had without saying who they are."""
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
