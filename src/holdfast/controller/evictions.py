"""Evicts runs from machines short of memory or disk, and from nodes that are being drained.

A machine loses one run at a time, as ``domain.placement.pressure`` chooses; a drained node loses all of them. Each
kind's own rules decide what happens to evicted work.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from holdfast.controller.kind import Taking
from holdfast.domain.lifecycle import RUN_TERMINAL, Interruption, RunStatus
from holdfast.domain.lifecycle.statuses import EVICTIONS
from holdfast.domain.placement.pressure import DISK_REQUEST, Candidate, LastEviction, choose_victim
from holdfast.domain.shortage import Shortage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from holdfast.controller.active import Active
    from holdfast.controller.nodes.shortages import Shortages
    from holdfast.controller.reconcile import Quarantine
    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Run
    from holdfast.domain.placement.cordon import Cordon
    from holdfast.domain.placement.pressure import Eviction, Pressure
    from holdfast.ports.exchange import ExchangeRequest


_log = logging.getLogger(__name__)
_MILLI = 1000


class Evictions:
    """The pressure on each executor's machine, and the last eviction because of it."""

    def __init__(
        self, state: ControllerState, quarantine: Quarantine, shortages: Shortages, steady: Callable[[], float]
    ) -> None:
        self._state = state
        self._quarantine = quarantine
        self._shortages = shortages
        self._steady = steady
        self.pressed: dict[str, Pressure] = {}
        self._last: dict[str, LastEviction] = {}

    def take(self, request: ExchangeRequest, now: float) -> None:
        """Take in the pressure on a machine, and evict a run if one is due."""
        executor, pressure = request.executor, request.pressure
        before = self.pressed.get(executor)
        if pressure is None:
            if before is not None:
                del self.pressed[executor], self._last[executor]
                self._shortages.press(executor, None, now)
            return
        if before is not None and before.look == pressure.look:
            return
        self.pressed[executor] = pressure
        self._shortages.press(executor, pressure.lacks[0], now)
        self._evict(executor, pressure, now)

    def _evict(self, executor: str, pressure: Pressure, now: float) -> None:
        steady, runs_there = self._steady(), list(self._runs(executor))
        going = [(active, run) for active, run in runs_there if run.interrupted in EVICTIONS]
        last = self._last.get(executor, LastEviction(look=pressure.look))
        last = self._last[executor] = last.after_measurement(pressure, steady, going=bool(going))
        hard = any(lack.hard for lack in pressure.lacks)
        for active, run in going:
            if hard and run.interrupted is Interruption.EVICT:  # Its own grace period is too long now.
                message = "" if active.pods else active.job.reason  # A pod's eviction is recorded with the pod.
                self._stop(active, Taking(Interruption.EVICT_NOW, message, uid=run.uid), now)
        if not last.allows(pressure, steady):
            return
        running = {run.uid: (active, run) for active, run in runs_there if run.status is RunStatus.RUNNING}
        chosen = choose_victim(pressure, [_candidate(active, run) for active, run in running.values()])
        if chosen is not None:
            active, run = running[chosen.victim.uid]
            _log.warning("evicting run %s of job %s: %s", run.uid, active.job.name, chosen.reason)
            self._last[executor] = last.after_eviction(pressure, steady)
            self._stop(active, _taking(chosen), now)

    def _runs(self, executor: str) -> Iterator[tuple[Active, Run]]:
        for active in list(self._state.active.values()):
            for run in list(active.runs.values()):
                if run.executor == executor and run.status not in RUN_TERMINAL:
                    yield active, run

    def _stop(self, active: Active, taking: Taking, now: float) -> None:
        kind, job_id = self._state.kinds[active.job.kind], active.attempt.job_id
        stop = partial(kind.take_place, job_id, taking, now)
        self._quarantine.attempt(active.job.kind, job_id, now, "evicting it", stop)


def _candidate(active: Active, run: Run) -> Candidate:
    disk = run.request.amount_of(DISK_REQUEST) // _MILLI
    requested = {Shortage.MEMORY: run.request.memory, Shortage.DISK: disk}
    return Candidate(run.uid, run.job_id, active.job.priority, requested, run.started_at or 0.0, run.node)


def _taking(chosen: Eviction) -> Taking:
    why = Interruption.EVICT_NOW if chosen.hard else Interruption.EVICT
    return Taking(why, chosen.reason, uid=chosen.victim.uid)


class Drains:
    """Empties nodes that are being drained."""

    def __init__(self, state: ControllerState, quarantine: Quarantine) -> None:
        self._state = state
        self._quarantine = quarantine

    def run(self, cordons: Mapping[str, Cordon], now: float) -> None:
        """Have every run on a draining node stopped; runs that are stopping already are left alone."""
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
