"""Orders about an attempt and its runs, the same for every kind of job.

Carrying them out needs no decisions: what an executor should have follows from the statuses of runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.record import Struct, field

if TYPE_CHECKING:
    from holdfast.domain.job import Attempt, Run
    from holdfast.domain.lifecycle import Step


class RunOrders(Struct, eq=False, gc=True):
    """Orders about one attempt; they are collected, and carried out together."""

    give_back: list[str] = field(default_factory=list)
    """Names of kept places that are no longer needed."""
    keep: dict[str, Run] = field(default_factory=dict)
    """Places to keep for the next run there, each under a name of its own."""
    grants: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """The devices of runs that start on a kept place, by uid; other runs got theirs with their place."""
    start: list[Run] = field(default_factory=list)
    """New runs, each on its place."""
    put: dict[str, Run] = field(default_factory=dict)
    """Runs with a new status, by uid: they are handed out, are to stop, or are given up."""
    note: dict[str, Run] = field(default_factory=dict)
    """Runs that have ended, with their failure and the decision about it, by uid."""
    forget: list[str] = field(default_factory=list)
    """Uids of runs that have ended and need no more attention, while their attempt continues."""
    steps: list[tuple[Step, Attempt]] = field(default_factory=list)
    """Each step that the attempt takes, and the attempt after it."""
    moves: list[Run] = field(default_factory=list)
    """Runs of a session after each change of their status, however briefly they had it; empty for other jobs."""
    tell_again: bool = False
    """Whether its executors are to be sent their orders again."""
    withdraw: bool = False
    """Whether it loses its places and waits for others."""
