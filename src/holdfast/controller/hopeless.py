"""Jobs that no node there is could ever hold: after a while they count as failed, and policies decide about that.

A cordoned node, and one that is short of something, may hold them later; where no node was reported, nothing is known.
A retry that is kept off the nodes on which it was tried fails at once when no other is left, nor may come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.placement.fit import ever_fits, on_nodes, why_not
from holdfast.domain.record import Struct, evolve
from holdfast.domain.workloads.judge import nothing_untried

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from holdfast.controller.state import ControllerState
    from holdfast.domain.placement.fit import Place, Shape
    from holdfast.domain.placement.scheduling import Blocked


_MOST_AT_ONCE = 1000


class HopelessAfter(Struct, frozen=True):
    """How long a job must have fitted no node before it has failed of that; ``None``: it waits for a node that can."""

    usual_s: float | None = None
    of_doors_s: float | None = None
    """For jobs that came in by another system's door."""


class Hopeless:
    """Which shapes of waiting jobs fit no node, and since when."""

    def __init__(self, state: ControllerState, after: HopelessAfter, away: Callable[[float], Sequence[Place]]) -> None:
        """Start with none; ``away`` says which nodes are gone and may come back."""
        self._state = state
        self._after = after
        self._away = away
        self.since: dict[Shape, float] = {}
        """Since when nothing could hold each."""

    def over(
        self, blocked: Iterable[Blocked], places: Sequence[Place], cluster: Container[str], now: float
    ) -> Iterator[tuple[str, str]]:
        """Return the ids of jobs, or the placement ids of pods, whose time is over, with why no node could hold each.

        Args:
            blocked: What a round could not place.
            places: All nodes there are, whether they get work now or not.
            cluster: Names of what is counted for the whole cluster, not on nodes.
            now: The time.
        """
        before, self.since = self.since, {}
        for entry in blocked if places else ():
            if entry.key.shape.avoid_nodes:
                yield from self._untried(entry, places, cluster, now)
                continue
            after_s = self._after.of_doors_s if entry.key.of_door else self._after.usual_s
            if after_s is None or entry.waiting.pod:
                continue
            shape = evolve(on_nodes(entry.key.shape, cluster), avoid=None, avoid_devices=())
            if ever_fits(shape, places):
                continue
            since = self.since[shape] = before.get(shape, now)
            if now - since >= after_s:
                yield from self._patient(entry, shape, places, now - after_s)

    def _patient(
        self, entry: Blocked, shape: Shape, places: Sequence[Place], since: float
    ) -> Iterator[tuple[str, str]]:
        """Return the jobs of a group that have waited since a time, as many as a round can fail."""
        why = why_not(shape, places, {place.key: place.capacity for place in places})
        group = [waiting for waiting in self._state.pending.of_group(entry.key) if waiting.since <= since]
        yield from ((waiting.job_id, why) for waiting in group[:_MOST_AT_ONCE])
        self._state.schedule_needed |= len(group) > _MOST_AT_ONCE

    def _untried(
        self, entry: Blocked, places: Sequence[Place], cluster: Container[str], now: float
    ) -> Iterator[tuple[str, str]]:
        """Return all jobs or pods of a group that is kept off nodes, if there is no other for it."""
        shape = evolve(on_nodes(entry.key.shape, cluster), avoid=None, avoid_devices=())
        if not nothing_untried(shape, places, self._away(now)):
            return
        why = why_not(shape, places, {place.key: place.capacity for place in places})
        group = self._state.pending.of_group(entry.key)
        yield from ((waiting.job_id, why) for waiting in group[:_MOST_AT_ONCE])
        self._state.schedule_needed |= len(group) > _MOST_AT_ONCE
