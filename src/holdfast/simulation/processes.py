"""The processes of a world: its controller, and an executor per machine; all may crash and restart.

Ticks and steps are the real ones; this module does what ``app.embedded`` does around them.
"""

from __future__ import annotations

import random  # noqa: TID251 - equal seeds give equal worlds
from typing import TYPE_CHECKING

from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller
from holdfast.errors import Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.exchange import ExchangeTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.controller.controller import ControllerSettings
    from holdfast.ports.clock import SteadyClock
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
    from holdfast.ports.store import ControllerStore
    from holdfast.simulation.agenda import Agenda
    from holdfast.simulation.machine import Machine
    from holdfast.simulation.trace import Trace

HEARTBEAT_S = 2.0
POLL_S = 1.0
AFTER_FAILURE_S = 0.5


class SeededDice:
    """The ``Dice`` port; equal seeds give equal draws on every machine."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)  # noqa: S311 - not a secret

    def draw(self) -> float:
        """Return a number in [0, 1)."""
        return self._random.random()


class ControllerProcess(ExchangeTransport):
    """The controller, and the transport to it."""

    def __init__(
        self, store: ControllerStore, *, agenda: Agenda, dice: SeededDice, settings: ControllerSettings | None
    ) -> None:
        self._agenda = agenda
        self._wakes: dict[str, Callable[[], None]] = {}
        self._controller = Controller(
            store, clock=agenda, dice=dice, load_spec=load_spec, controller_epoch="simulation", settings=settings
        )

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Run a tick with an executor's report.

        Raises:
            Unavailable: The commit was refused.
        """
        answer = self._tick([request]).get(request.executor)
        if answer is None:
            raise Unavailable
        return answer

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Register a callback."""
        self._wakes[executor] = wake

    def tick(self) -> None:
        """Tick without an exchange."""
        self._tick(())

    def _tick(self, requests: Sequence[ExchangeRequest]) -> Mapping[str, ExchangeResponse]:
        ticked = self._controller.tick(requests, look=True)
        for executor in sorted(ticked.changed & self._wakes.keys()):
            self._wakes[executor]()
        if ticked.refused is not None:
            self._agenda.after(AFTER_FAILURE_S, self.tick)
        elif ticked.more:
            self._agenda.after(0.0, self.tick)
        elif ticked.next_due is not None and ticked.next_due <= self._agenda.now() + POLL_S:
            self._agenda.at(ticked.next_due, self.tick)
        return ticked.responses


class ExecutorProcess:
    """One executor, on a machine that outlives it."""

    def __init__(self, machine: Machine, connection: ExchangeTransport, *, agenda: Agenda, trace: Trace) -> None:
        self.machine = machine
        self._connection = connection
        self._agenda = agenda
        self._trace = trace
        self._executor: Executor | None = None
        self._is_due = False
        self._watched = float("inf")
        self.lease_s: float | None = None
        """Seconds without an answer after which it stops its own runs."""
        machine.on_change(self.wake)
        connection.on_change(machine.name, self.wake)

    @property
    def name(self) -> str:
        """The executor's name."""
        return self.machine.name

    def boot(self) -> None:
        """Start the process, unless it is up."""
        if self._executor is None:
            self._executor = Executor(
                self.name, self.machine, self._connection, clock=self._clock(), lease_s=self.lease_s
            )
            self._trace.say(f"executor {self.name} starts")
            self.wake()

    def _clock(self) -> SteadyClock:
        """Return the clock of a process that starts now."""
        return self._agenda

    def die(self) -> None:
        """End the process, as by kill -9; its machine's programs go on."""
        self._executor = None
        self._trace.say(f"executor {self.name} dies")

    def wake(self) -> None:
        """Make the next step come at once."""
        if not self._is_due:
            self._is_due = True
            self._agenda.after(0.0, self.step)

    def step(self) -> None:
        """Run one step, if the process is up."""
        self._is_due = False
        if self._executor is None:
            return
        if not self._executor.step():
            self._agenda.after(AFTER_FAILURE_S, self.wake)
        self._watch()

    def _watch(self) -> None:
        """Look at the machine again when a program next starts or ends by itself."""
        due = self.machine.next_change()
        if due is not None and due < self._watched:
            self._watched = due
            self._agenda.at(due, self._look)

    def _look(self) -> None:
        self._watched = float("inf")
        self.machine.look()
        self._watch()
