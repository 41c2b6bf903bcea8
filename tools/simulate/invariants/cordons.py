"""Checks that nodes which are cordoned or drained get nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.simulate.promises import refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.domain.job import Run
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.ports.store import Changes, Store
    from tools.simulate.invariants.setrecord import SetRecord


class CordonChecks:
    """What must hold of nodes that operators have closed."""

    def __init__(self, sets: SetRecord) -> None:
        """Begin with none closed; ``sets`` know which pods begin again in their place."""
        self._sets = sets
        self._known: set[str] = set()
        self._closed: dict[str, Cordon] | None = None

    def begins(self, cordons: Mapping[str, Cordon]) -> None:
        """Take in what a tick knows: nodes that were closed for all ticks since the last commit stay so."""
        before = self._closed
        self._closed = {name: each for name, each in cordons.items() if before is None or before.get(name) == each}

    def check(self, changes: Changes, store: Store) -> None:
        """Check a commit that is part of the record already, and what is closed now."""
        closed, self._closed = self._closed or {}, None
        for uid, run in changes.runs.items():
            cordon = closed.get(run.node) if uid not in self._known else None
            self._known.add(uid)
            if cordon is None or store.catalogue().cordons.get(run.node) != cordon:
                continue
            if cordon.drain or not self._stays(run):
                refuse("closed-stays", f"{uid} is placed, and {cordon.in_words()} since {cordon.since:.3f}")

    def _stays(self, run: Run) -> bool:
        """Whether it is of a pod that begins again in the place it has."""
        kept = self._sets.kube_jobs.get(run.job_id)
        return kept is not None and any(pod.run == run.uid and pod.in_place for pod in kept.pods)
