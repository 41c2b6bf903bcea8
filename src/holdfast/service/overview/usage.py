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


def with_others_together(found: Sequence[JobUsage], user: str) -> Sequence[JobUsage]:
    """Return what one user had, and what all others had without saying who they are."""
    own = [one for one in found if one.name == user]
    others = [one for one in found if one.name != user]
    if not others:
        return own
    had, wasted = Hours(), Hours()
    for one in others:
        had, wasted = had + one.had, wasted + one.wasted
    runs, failed = sum(one.runs for one in others), sum(one.failed for one in others)
    return [*own, JobUsage(OTHERS, runs, failed, had, wasted)]


def _summed(figures: Iterable[UsageFigures]) -> list[JobUsage]:
    found: dict[str, JobUsage] = {}
    for one in figures:
        known, had = found.get(one.name, JobUsage(one.name)), _hours(one)
        found[one.name] = JobUsage(
            one.name,
            known.runs + one.runs,
            known.failed + (one.runs if one.wasted else 0),
            known.had + had,
            known.wasted + (had if one.wasted else Hours()),
        )
    return [found[name] for name in sorted(found)]


def _hours(one: UsageFigures) -> Hours:
    hours, each = one.ran_s / _HOUR_S, one.request
    return Hours(hours * each.cpu_m / _MILLI, hours * each.memory / _GIB, hours * each.gpus)
