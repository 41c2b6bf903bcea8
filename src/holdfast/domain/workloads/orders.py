"""What is to be done about an attempt and its runs, as a look at it orders; the same for every kind.

Whoever carries it out decides nothing: what an executor should have follows from the statuses of runs.
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
    """Names of kept places that nothing will run on."""
    keep: dict[str, Run] = field(default_factory=dict)
    """Places to keep for what runs there next, each under a name of its own."""
    grants: dict[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """The devices of runs that start on a kept place, by uid; others were given theirs with their place."""
    start: list[Run] = field(default_factory=list)
    """New runs, each on its place."""
    put: dict[str, Run] = field(default_factory=dict)
    """Runs that have another status, by uid: they are handed out, are to stop, or are given up."""
    note: dict[str, Run] = field(default_factory=dict)
    """Runs that have ended, with what was found out about them, by uid."""
    forget: list[str] = field(default_factory=list)
    """Uids of runs that have ended and are dealt with, while their attempt goes on."""
    steps: list[tuple[Step, Attempt]] = field(default_factory=list)
    """Each step that the attempt takes, and the attempt after it."""
    tell_again: bool = False
    """Whether its executors are to be told once more what to do."""
    withdraw: bool = False
    """Whether it loses its places, and waits for others."""
