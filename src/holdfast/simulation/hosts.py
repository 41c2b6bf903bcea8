"""The executors' processes: they crash and restart, on machines that outlive them.

A process that ends leaves nothing but its machine; the steps are the real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.model import Backoff
from holdfast.executor.executor import Executor
from holdfast.simulation.trace import Crashed

if TYPE_CHECKING:
    from holdfast.ports.exchange import Transport
    from holdfast.simulation.agenda import Agenda
    from holdfast.simulation.machines.machine import Machine
    from holdfast.simulation.trace import Fuse, Trace

LEASES_S = (18.0, 18.0, 60.0)
"""After how long a controller gives up a silent executor; each world has one of these."""
MARGIN_S = 10.0
"""By how much sooner an executor stops its own runs: all that can keep it from doing so in time."""
HARSH_LEASES_S = (26.0, 26.0, 60.0)
HARSH_MARGIN_S = 16.0
"""Both in a harsh world, where machines may be slow and their daemons may die, on top of everything else."""
HEARTBEAT_S = 2.0
POLL_S = 1.0
AFTER_FAILURE_S = 0.5
POD_BACKOFF = Backoff(initial_s=1.0, max_s=8.0, multiplier=2.0)
"""Of failed pods, and of programs that start again in theirs."""


class ExecutorHost:
    """One executor's process, on a machine that outlives it."""

    def __init__(self, machine: Machine, connection: Transport, *, agenda: Agenda, trace: Trace, fuse: Fuse) -> None:
        """Begin with the process down."""
        self.machine = machine
        self._connection = connection
        self._agenda = agenda
        self._trace = trace
        self._fuse = fuse
        self._executor: Executor | None = None
        self._busy = False
        self._asked = False
        self._watched = float("inf")
        self.lease_s = LEASES_S[0] - MARGIN_S
        machine.on_change(self.wake)

    @property
    def name(self) -> str:
        """The executor's name."""
        return self.machine.name

    @property
    def up(self) -> bool:
        """Whether the process runs."""
        return self._executor is not None

    def boot(self) -> None:
        """Start the process, once the last one has ended for good."""
        if self._busy:
            self._agenda.after(AFTER_FAILURE_S, self.boot)
        elif self._executor is None:
            clock = self.machine.wall.process()
            self._executor = Executor(self.name, self.machine, self._connection, clock=clock, lease_s=self.lease_s)
            self._trace.say(f"executor {self.name} starts")
            self.wake()

    def die(self) -> None:
        """End the process, as by kill -9; its machine's programs go on."""
        self._executor = None
        self.machine.client_lost()
        if self._busy:
            self._fuse.light(1)
        else:
            self._fuse.put_out()
        self._trace.say(f"executor {self.name} dies")

    def wake(self) -> None:
        """Make the next step come at once."""
        if not self._asked:
            self._asked = True
            self._agenda.after(0.0, self.step)

    def step(self) -> None:
        """Run one step, unless one is under way."""
        self._asked = False
        executor = self._executor
        if executor is None or self._busy:
            return
        self._busy = True
        try:
            reached = executor.step()
        except Crashed:
            self._busy = False
            self.die()
            return
        finally:
            self._busy = False
        if not reached:
            self._agenda.after(AFTER_FAILURE_S, self.wake)
        self.watch()

    def watch(self) -> None:
        """Look at the machine again when a program starts or ends next by itself."""
        due = self.machine.next_change()
        if due is not None and due < self._watched:
            self._watched = due
            self._agenda.at(due, self._look)

    def _look(self) -> None:
        self._watched = float("inf")
        self.machine.look()
        self.watch()
