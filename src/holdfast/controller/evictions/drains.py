"""Empties nodes that are being drained: each kind of work stops what it has there, by its own rules."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.kind import Taking
from holdfast.domain.lifecycle import RUN_TERMINAL, Interruption

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.placement.cordon import Cordon


class Drains:
    """What runs on nodes that should have nothing."""

    def __init__(self, state: ControllerState, quarantine: Quarantine) -> None:
        """Remember where runs are."""
        self._state = state
        self._quarantine = quarantine

    def run(self, cordons: Mapping[str, Cordon], now: float) -> None:
        """Have whatever runs on a draining node stopped; what is being stopped already is left alone."""
        draining = {name: cordon for name, cordon in cordons.items() if cordon.drain}
        for job_id, active in list(self._state.active.items()) if draining else ():
            nodes = {
                run.node: None
                for run in active.runs.values()
                if run.node in draining and run.interrupted is None and run.status not in RUN_TERMINAL
            }
            for node in nodes:
                kind = self._state.kinds[active.job.kind]
                taking = Taking(Interruption.DRAIN, draining[node].in_words(), node)
                drain = partial(kind.take_place, job_id, taking, now)
                self._quarantine.attempt(active.job.kind, job_id, now, "draining its node", drain)
