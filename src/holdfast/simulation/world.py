"""Assembles a world: a controller on a store, machines with an executor each, and the schedule of faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.simulation.agenda import BEGINNING, Agenda
from holdfast.simulation.machine import Machine
from holdfast.simulation.processes import HEARTBEAT_S, POLL_S, ControllerProcess, ExecutorProcess, SeededDice
from holdfast.simulation.trace import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.controller import ControllerSettings
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import NodeInfo, RunOrder
    from holdfast.ports.store import ControllerStore


class World:
    """One world; requests are scheduled on its ``agenda``, which is also its clock."""

    def __init__(
        self,
        store: ControllerStore,
        machines: Mapping[str, Sequence[NodeInfo]],
        *,
        script: Callable[[RunOrder], SimulatedRun],
        seed: int = 0,
        begins_at: float = BEGINNING,
        settings: ControllerSettings | None = None,
    ) -> None:
        """Build a world.

        Args:
            store: Holds the work and the catalogue, and the results.
            machines: The nodes of each machine, by name.
            script: Returns the fate of an order.
            seed: Determines everything random.
            begins_at: Seconds since the epoch; nothing in the store is newer.
            settings: The controller's settings.
        """
        self.agenda = Agenda(begins_at=begins_at)
        self.trace = Trace(lambda: self.agenda.elapsed)
        dice = SeededDice(f"{seed}/dice")
        self._controller = ControllerProcess(store, agenda=self.agenda, dice=dice, settings=settings)
        self.machines = {
            name: Machine(name, nodes, clock=self.agenda, script=script) for name, nodes in machines.items()
        }
        self._executors = {
            name: ExecutorProcess(machine, self._controller, agenda=self.agenda, trace=self.trace)
            for name, machine in self.machines.items()
        }
        for executor in self._executors.values():
            self.agenda.after(0.0, executor.boot)
            self._every(HEARTBEAT_S, executor.step)
        self._every(POLL_S, self._controller.tick)

    def _every(self, period_s: float, act: Callable[[], None]) -> None:
        def again() -> None:
            act()
            self.agenda.after(period_s, again)

        self.agenda.after(0.0, again)

    def run(self, for_s: float, *, enough: Callable[[], bool] | None = None) -> None:
        """Let time pass, or stop earlier if ``enough`` holds after a step."""
        self.agenda.run_until(self.agenda.now() + for_s, enough=enough)

    def lose_machine(self, name: str, *, after_s: float, for_s: float) -> None:
        """Lose a machine, and replace it by a new one of the same name a while later."""

        def lose() -> None:
            ended = self.machines[name].lose_everything()
            self.trace.fault("machine lost", f"{name}, {ended} runs")
            self._executors[name].die()
            self.agenda.after(for_s, self._executors[name].boot)

        self.agenda.after(after_s, lose)

    def lose_node(self, machine: str, node: str, *, after_s: float, for_s: float) -> None:
        """Lose a node of a machine with its runs, and restore it a while later."""

        def lose() -> None:
            ended = self.machines[machine].lose_node(node)
            self.trace.fault("node lost", f"{node}, {ended} runs")
            self.agenda.after(for_s, lambda: self.machines[machine].lost.discard(node))

        self.agenda.after(after_s, lose)
