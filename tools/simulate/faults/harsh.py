"""Further faults for every second world: clocks, leases on the database, slow engines, shims.

They are drawn from a random stream of their own, so that the other worlds stay the same.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tools.simulate.leases import TTL_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.ports.engine import RunOrder
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.chance import Chance
    from tools.simulate.controllers import ControllerHost
    from tools.simulate.disk import Disk
    from tools.simulate.machines.machine import FaultyMachine
    from tools.simulate.trace import FaultTrace

_MOST_FAULTS = 20
_FURTHEST_OFF_S = 300.0
_SLOWEST_CALL_S = 1.5
_LONGEST_OUTAGE_S = 2.0
"""Of a shim: what an executor needs to stop its programs in time; with its crashes and slow calls it has
``HARSH_MARGIN_S``."""
_LONGEST_HANG_S = 120.0


class HarshFaults:
    """Breaks more of the world's parts and heals them."""

    def __init__(
        self,
        *,
        controllers: Sequence[ControllerHost],
        machines: Sequence[FaultyMachine],
        disk: Disk,
        agenda: Agenda,
        chance: Chance,
        trace: FaultTrace,
    ) -> None:
        """Remember what can break, and set every clock wrong."""
        self._controllers = controllers
        self._machines = machines
        self._disk = disk
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._over = False
        self.kinds: list[Callable[[], None]] = [
            self._controllers_clock,
            self._executors_clock,
            self._engine_slow,
            self._start_hangs,
            self._shim_killed,
            self._journal_torn,
            self._journal_refuses,
            self._commit_unanswered,
        ]
        if len(controllers) > 1:
            self.kinds += [self._controller_stalls, self._controller_stalls_in_commit]
        if chance.happens(0.5):
            for wall in (*(host.wall for host in controllers), *(machine.wall for machine in machines)):
                wall.set(self._off_by())

    def _off_by(self) -> float:
        most = self._chance.choice((1.0, _FURTHEST_OFF_S))
        return self._chance.moment(-most, most)

    def plan(self, until: float) -> None:
        """Put this world's faults on the agenda: a few kinds, each at its own rate."""
        chance, now = self._chance, self._agenda.now()
        kinds = chance.sample(self.kinds, chance.randint(1, len(self.kinds)))
        for _ in range(chance.randint(0, _MOST_FAULTS)):
            self._agenda.at(chance.moment(now, until), partial(self._strike, chance.choice(kinds)))

    def heal(self) -> None:
        """End every fault, for good; clocks stay as wrong as they are."""
        self._over = True
        self._disk.unanswered = False
        for host in self._controllers:
            host.stalled = False
            if host.store is not None:
                host.store.stall_s = 0.0
        for machine in self._machines:
            machine.slow_s = 0.0
            machine.hangs = lambda _: False
            machine.shim.refuses = False
            machine.revive_shim()
            for uid in list(machine.shim.hung):
                machine.let_go(uid)

    def _strike(self, kind: Callable[[], None]) -> None:
        if not self._over:
            kind()

    def _for_a_while(self, longest_s: float, end: Callable[[], None]) -> None:
        self._agenda.after(self._chance.moment(0.2, longest_s), end)

    def _controllers_clock(self) -> None:
        host, offset = self._chance.choice(self._controllers), self._off_by()
        self._trace.fault("controller's clock set", f"{host.name}: {host.wall.offset:+} s to {offset:+} s")
        host.wall.set(offset)

    def _executors_clock(self) -> None:
        machine, offset = self._chance.choice(self._machines), self._off_by()
        detail = f"{machine.name}: {machine.wall.offset:+} s to {offset:+} s"
        self._trace.fault("executor's clock set", detail, where=machine.name)
        machine.wall.set(offset)

    def _controller_stalls(self) -> None:
        host = self._chance.choice(self._controllers)
        self._trace.fault("controller stalls", host.name)
        host.stalled = True
        self._for_a_while(2 * TTL_S, lambda: setattr(host, "stalled", False))

    def _controller_stalls_in_commit(self) -> None:
        store = self._chance.choice(self._controllers).store
        if store is not None:
            store.stall_s = self._chance.moment(1.0, 2 * TTL_S)

    def _commit_unanswered(self) -> None:
        self._disk.unanswered = True

    def _engine_slow(self) -> None:
        machine = self._chance.choice(self._machines)
        machine.slow_s = self._chance.moment(0.1, _SLOWEST_CALL_S)
        self._trace.fault("engine slow", f"{machine.name}, {machine.slow_s} s a call", where=machine.name)
        self._for_a_while(20.0, lambda: setattr(machine, "slow_s", 0.0))

    def _start_hangs(self) -> None:
        """Let the next run that starts on a machine hang, and only that one."""
        machine = self._chance.choice(self._machines)

        def hangs(order: RunOrder) -> bool:
            machine.hangs = lambda _: False
            self._trace.fault("start hangs", order.uid, where=machine.name)
            self._for_a_while(_LONGEST_HANG_S, partial(machine.let_go, order.uid))
            return True

        machine.hangs = hangs

    def _shim_killed(self, *, torn: bool = False) -> None:
        machine = self._chance.choice(self._machines)
        before = {*machine.seen()}
        lost = machine.kill_shim(torn=torn)
        kind, detail = ("journal torn", f", {lost} orders") if torn else ("shim killed", f", {len(before)} runs")
        self._trace.fault(kind, machine.name + detail, where=machine.name)
        self._for_a_while(_LONGEST_OUTAGE_S, machine.revive_shim)

    def _journal_torn(self) -> None:
        self._shim_killed(torn=True)

    def _journal_refuses(self) -> None:
        machine = self._chance.choice(self._machines)
        self._trace.fault("journal refuses", machine.name, where=machine.name)
        shim = machine.shim
        shim.refuses = True
        self._for_a_while(20.0, lambda: setattr(shim, "refuses", False))
