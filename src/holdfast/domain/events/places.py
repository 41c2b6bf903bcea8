"""The events of the places that jobs run at."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NodeLost:
    """Jobs were lost with the place they ran at; who was there at loss after loss is suspected."""

    executor: str
    nodes: tuple[str, ...]
    taken: int
    """How many jobs were lost."""
    longest_s: float = 0.0
    """How long the one had been there that had been there longest."""
    jobs: tuple[tuple[str, float], ...] = ()
    """`[job, seconds]`: how long each had been there; of very many only those that came last."""


PlaceEvent = NodeLost
