"""Nodes short of something that programs need to start, as refused runs or the machine itself show.

A shortage is stored in the record of its node, so that readers see it and it survives a restart.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.domain import shortage
from holdfast.domain.events.operators import NodeRecovered, NodeShort
from holdfast.domain.events.registry import EventRecord
from holdfast.domain.record import evolve
from holdfast.domain.units import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from holdfast.controller.state import ControllerState
    from holdfast.domain.job import Node, Run
    from holdfast.domain.placement.fit import PlaceKey
    from holdfast.domain.placement.pressure import Lack
    from holdfast.domain.shortage import Short

_log = logging.getLogger(__name__)


class Shortages:
    """The shortages of all nodes."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._short: dict[PlaceKey, Short] = {}
        self._pressed: set[str] = set()
        """Executors whose machines are short of something now."""
        self.refused: dict[tuple[str, int], int] = {}
        """How often in a row a program could not be started, by job and rank; not kept over a restart."""

    def press(self, executor: str, lack: Lack | None, now: float) -> None:
        """Take in the pressure on an executor's machine."""
        if lack is None:
            self._pressed.discard(executor)
            for key, short in [entry for entry in self._short.items() if entry[0][0] == executor and entry[1].pressed]:
                self._put(key, evolve(short, refused_at=now))
            return
        begins = executor not in self._pressed
        self._pressed.add(executor)
        for key in [
            entry for entry in self._state.nodes if entry[0] == executor and entry in self._state.capacity.places
        ]:
            before = self._short.get(key)
            if begins or before is None or not before.pressed or before.of is not lack.of:
                self._begin(key, shortage.under_pressure(before, lack.of, lack.in_words(), now), now, before)

    def restore(self, stored: Iterable[Node], now: float) -> None:
        """Restore the shortages from before this controller."""
        for node in stored:
            if node.short is not None:
                self._short[node.executor, node.name] = shortage.restored(node.short, now)

    def on(self, node: Node) -> Node:
        """Return a reported node with its shortages."""
        return evolve(node, short=self._short.get((node.executor, node.name)))

    def by_name(self) -> Mapping[str, Short]:
        """Return the short nodes by name; nodes of several executors that share a name stand for each other."""
        return {key[1]: short for key, short in self._short.items()}

    def heard(self, run: Run, now: float) -> None:
        """Take in the first report about a run: its program was started, or could not be."""
        of = None if run.outcome is None else shortage.shortage_of(run.outcome)
        if of is None and not self._short and not self.refused:
            return  # This is the case for nearly every run.
        key = self._state.capacity.home(run.executor, run.node)
        short = self._short.get(key)
        if of is not None:
            self.refused[run.job_id, run.rank] = self.refused.get((run.job_id, run.rank), 0) + 1
        elif run.started_at is not None:
            self.refused.pop((run.job_id, run.rank), None)
        if of is not None and run.outcome is not None and key in self._state.nodes:
            if short is None or not short.pressed:
                self._begin(key, shortage.after_refusal(short, of, run.outcome.message, now), now, short)
        elif short is not None and short.trying:
            self._put(key, shortage.after_answer(short, now, well=run.started_at is not None))

    def refusals(self, runs: Iterable[Run]) -> int:
        """Return how often in a row a program of these runs could not be started; the highest number counts."""
        return max((self.refused.get((run.job_id, run.rank), 0) for run in runs), default=0)

    def tried(self, places: Iterable[PlaceKey], now: float) -> None:
        """Note that a job gets these places, one of which may be on a short node."""
        for key in self._short.keys() & places:
            self._put(key, shortage.after_trial(self._short[key], now))

    def look(self, now: float) -> None:
        """End shortages whose time is over."""
        for key, short in list(self._short.items()):
            if key[0] not in self._pressed and short.is_over(now):
                words = "node %s is no longer %s; that lasted %s"
                lasted_s = now - short.since
                _log.warning(words, key[1], short.of.words, format_duration(round(lasted_s)))
                self._state.emit(EventRecord(None, now, NodeRecovered(*key, str(short.of), lasted_s)))
                self._put(key, None)
                self.refused = {
                    job_id: count for job_id, count in self.refused.items() if job_id[0] in self._state.jobs
                }

    def _begin(self, key: PlaceKey, short: Short, now: float, earlier: Short | None) -> None:
        """Record a shortage of a node, and emit an event if it is new."""
        if earlier is None or earlier.of is not short.of:
            words = "node %s is %s: %s; it gets no new work until that is over"
            _log.warning(words, key[1], short.of.words, short.message)
            self._state.emit(EventRecord(None, now, NodeShort(*key, str(short.of), short.message)))
        self._put(key, short)

    def _put(self, key: PlaceKey, short: Short | None) -> None:
        if short is None:
            del self._short[key]
        else:
            self._short[key] = short
        self._state.change_node(self.on(self._state.nodes[key]))
