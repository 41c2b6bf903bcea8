"""Puts a world together: one controller on a store, machines with an executor each, and when what breaks."""

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
    """One world; what people ask for meanwhile is scheduled on its ``agenda``, which is its clock, too."""

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
            store: Holds the work and the catalogue, and whatever comes of them.
            machines: The nodes of each machine, by its name.
            script: Says what each program will do.
            seed: Determines everything that is random.
            begins_at: Seconds since the epoch; what the store holds is not newer.
            settings: Of the controller.
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
        """Let time pass, or less if ``enough`` holds after a step."""
        self.agenda.run_until(self.agenda.now() + for_s, enough=enough)

    def lose_machine(self, name: str, *, after_s: float, for_s: float) -> None:
        """Have a machine lost, and another of its name in its place a while later."""

        def lose() -> None:
            ended = self.machines[name].lose_everything()
            self.trace.fault("machine lost", f"{name}, {ended} runs")
            self._executors[name].die()
            self.agenda.after(for_s, self._executors[name].boot)

        self.agenda.after(after_s, lose)

    def lose_node(self, machine: str, node: str, *, after_s: float, for_s: float) -> None:
        """Have a node of a machine lost with what runs there, and back a while later."""

        def lose() -> None:
            ended = self.machines[machine].lose_node(node)
            self.trace.fault("node lost", f"{node}, {ended} runs")
            self.agenda.after(for_s, lambda: self.machines[machine].lost.discard(node))

        self.agenda.after(after_s, lose)
