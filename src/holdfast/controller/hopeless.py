"""Fails jobs that no node could ever hold, after a while; policies then decide about them.

A node that is cordoned or short of something may hold them later; where no node was reported, nothing is known. A retry
that avoids the nodes it was tried on fails at once if no other node is left or can come back.
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
    """How long in seconds a job may fit no node before it fails; ``None``: it waits for a node that can hold it."""

    usual_s: float | None = None
    of_doors_s: float | None = None
    """For jobs that another system's API submitted."""


class Hopeless:
    """The shapes of waiting jobs that fit no node, and since when."""

    def __init__(self, state: ControllerState, after: HopelessAfter, away: Callable[[float], Sequence[Place]]) -> None:
        """``away`` lists the nodes that are gone and may come back."""
        self._state = state
        self._after = after
        self._away = away
        self.since: dict[Shape, float] = {}
        """Since when nothing could hold each shape."""

    def over(
        self, blocked: Iterable[Blocked], places: Sequence[Place], cluster: Container[str], now: float
    ) -> Iterator[tuple[str, str]]:
        """Return the jobs, or the placements of pods, whose time is over, each with why no node could hold it.

        Args:
            blocked: What a round could not place.
            places: All nodes, whether they get work now or not.
            cluster: Names of resources counted for the whole cluster.
            now: Seconds since the epoch.
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
        """Return the jobs of a group that have waited long enough, as many as a round can fail."""
        why = why_not(shape, places, {place.key: place.capacity for place in places})
        group = [waiting for waiting in self._state.pending.of_group(entry.key) if waiting.since <= since]
        yield from ((waiting.job_id, why) for waiting in group[:_MOST_AT_ONCE])
        self._state.schedule_needed |= len(group) > _MOST_AT_ONCE

    def _untried(
        self, entry: Blocked, places: Sequence[Place], cluster: Container[str], now: float
    ) -> Iterator[tuple[str, str]]:
        """Return all jobs or pods of a group that avoid nodes, if no other node is left for it."""
        shape = evolve(on_nodes(entry.key.shape, cluster), avoid=None, avoid_devices=())
        if not nothing_untried(shape, places, self._away(now)):
            return
        why = why_not(shape, places, {place.key: place.capacity for place in places})
        group = self._state.pending.of_group(entry.key)
        yield from ((waiting.job_id, why) for waiting in group[:_MOST_AT_ONCE])
        self._state.schedule_needed |= len(group) > _MOST_AT_ONCE
