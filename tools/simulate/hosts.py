"""The executors' processes: they crash and restart, on machines that outlive them.

A process that ends leaves nothing but its machine; the steps are the real ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.model import Backoff
from holdfast.simulation.processes import AFTER_FAILURE_S, ExecutorProcess
from tools.simulate.trace import Crashed

if TYPE_CHECKING:
    from holdfast.ports.clock import SteadyClock
    from holdfast.ports.exchange import ExchangeTransport
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.trace import FaultTrace, Fuse

LEASES_S = (18.0, 18.0, 60.0)
"""After how long a controller gives up a silent executor; each world has one of these."""
MARGIN_S = 10.0
"""By how much sooner an executor stops its own runs: all that can keep it from doing so in time."""
HARSH_LEASES_S = (26.0, 26.0, 60.0)
HARSH_MARGIN_S = 16.0
"""Both in a harsh world, where machines may be slow and their daemons may die, on top of everything else."""
POD_BACKOFF = Backoff(initial_s=1.0, max_s=8.0, multiplier=2.0)
"""Of failed pods, and of programs that start again in theirs."""


class ExecutorHost(ExecutorProcess):
    """One executor's process, which may end in the middle of a step."""

    machine: FaultyMachine

    def __init__(
        self, machine: FaultyMachine, connection: ExchangeTransport, *, agenda: Agenda, trace: FaultTrace, fuse: Fuse
    ) -> None:
        """Begin with the process down."""
        super().__init__(machine, connection, agenda=agenda, trace=trace)
        self._fuse = fuse
        self._busy = False
        self.lease_s = LEASES_S[0] - MARGIN_S

    @property
    def up(self) -> bool:
        """Whether the process runs."""
        return self._executor is not None

    def boot(self) -> None:
        """Start the process, once the last one has ended for good."""
        if self._busy:
            self._agenda.after(AFTER_FAILURE_S, self.boot)
        else:
            super().boot()

    def _clock(self) -> SteadyClock:
        return self.machine.wall.process()

    def die(self) -> None:
        """End the process, also in the middle of a step."""
        self.machine.client_lost()
        if self._busy:
            self._fuse.light(1)
        else:
            self._fuse.put_out()
        super().die()

    def step(self) -> None:
        """Run one step, unless one is under way."""
        if self._busy:
            self._asked = False
            return
        self._busy = True
        try:
            super().step()
        except Crashed:
            self._busy = False
            self.die()
        finally:
            self._busy = False
