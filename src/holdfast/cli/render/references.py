"""Names of jobs in lists that other commands understand as one job each."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

SHORTEST = 6
"""The fewest characters of an id that are shown."""


def references(jobs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Name jobs by name, and those that share one by ``NAME@`` and a distinct beginning of their ids.

    Args:
        jobs: Ids and names.

    Returns:
        The reference of each job, by its id.
    """
    ids: dict[str, set[str]] = defaultdict(set)
    for job_id, name in jobs:
        ids[name].add(job_id)
    return {job_id: called for name, same in ids.items() for job_id, called in _called(name, same)}


def _called(name: str, ids: set[str]) -> list[tuple[str, str]]:
    if len(ids) == 1:
        return [(job_id, name) for job_id in ids]
    ordered = sorted(ids)
    size = max(SHORTEST, *(_shared(*two) + 1 for two in pairwise(ordered)))
    return [(job_id, f"{name}@{job_id[:size]}") for job_id in ordered]


def _shared(first: str, other: str) -> int:
    """Return the length of the beginning that two ids share."""
    pairs = enumerate(zip(first, other, strict=False))
    return next((place for place, (mine, its) in pairs if mine != its), min(len(first), len(other)))
