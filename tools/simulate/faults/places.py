"""Further faults for some worlds: nodes short of what starting a program takes, and programs that nobody watches.

They are drawn from a random stream of their own, so that the other worlds stay the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from holdfast.domain.record import evolve
from holdfast.domain.terms.settings import UnknownEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.chance import Chance
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.people import People
    from tools.simulate.trace import FaultTrace

PLACES_EVERY, FIRST_WITH_PLACES = 17, 6
"""One seed of this many has such faults, from this one on."""
_TIMES = (3, 9)
_LONGEST_S = 45.0
_REASONS = ("DiskFull", "OutOfInodes", "OutOfFiles", "OutOfProcesses", "OutOfMemory", "ReadOnlyFileSystem")
_ONLY_ONCE = 0.6
"""The share of jobs there that must not run twice."""


class PlaceFaults:
    """Breaks places and heals them."""

    def __init__(self, machines: Sequence[FaultyMachine], agenda: Agenda, chance: Chance, trace: FaultTrace) -> None:
        """Remember what can break."""
        self._machines = machines
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._over = False

    def plan(self, seed: int, until: float, people: People) -> None:
        """Put this world's faults on the agenda, if it has any, and have people ask for what they could hurt."""
        if seed % PLACES_EVERY != FIRST_WITH_PLACES:
            return
        people.asks = partial(self._also_ask, people.asks)
        chance, now = self._chance, self._agenda.now()
        for kind in (self._node_short, self._watchers_lost):
            for _ in range(chance.randint(*_TIMES)):
                self._agenda.at(chance.moment(now, until), partial(self._strike, kind))

    def heal(self) -> None:
        """End every fault, for good."""
        self._over = True
        for machine in self._machines:
            machine.short.clear()

    def _strike(self, kind: Callable[[FaultyMachine], None]) -> None:
        busy = [machine for machine in self._machines if machine.running()]
        if not self._over:
            kind(self._chance.choice(busy or self._machines))

    def _also_ask(self, asks: Callable[[JobSpec], JobSpec], spec: JobSpec) -> JobSpec:
        """Have a job ask for what it asks for anyway, and perhaps not to be run twice."""
        says = self._chance.choice((UnknownEnd.HOLD, UnknownEnd.FAIL))
        return evolve(asks(spec), on_unknown_end=says if self._chance.happens(_ONLY_ONCE) else None)

    def _node_short(self, machine: FaultyMachine) -> None:
        node, reason = self._chance.choice(machine.all_nodes()).name, self._chance.choice(_REASONS)
        self._trace.fault("node short", f"{node}, {reason}", where=machine.name)
        machine.short[node] = reason
        self._agenda.after(self._chance.moment(0.2, _LONGEST_S), partial(self._node_well, machine, node))

    @staticmethod
    def _node_well(machine: FaultyMachine, node: str) -> None:
        machine.short.pop(node, None)

    def _watchers_lost(self, machine: FaultyMachine) -> None:
        ended = machine.lose_watchers()
        self._trace.fault("watchers lost", f"{machine.name}, {ended} programs", where=machine.name)
