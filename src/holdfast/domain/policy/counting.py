"""Counts a job's failures the way Armada's budget does.

Holdfast itself counts the retries it granted, by rule. This is for a dialect with a single counter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class RunEnding:
    """How a run ended, as far as a budget is concerned."""

    failed: bool = False
    preempted: bool = False
    """It was preempted, even if something else ended it later."""
    returned: bool = False
    """Its lease was given back before it ran."""


def count_failures(endings: Iterable[RunEnding]) -> int:
    """Count the runs that failed by themselves, neither preempted nor given back."""
    return sum(ending.failed and not ending.preempted and not ending.returned for ending in endings)
