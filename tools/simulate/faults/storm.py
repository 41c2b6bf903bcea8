"""The faults of a world: drawn from its seed, each healed after a while, all over at a known time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.errors import Conflict, Unavailable
from tools.simulate.hosts import MARGIN_S
from tools.simulate.promises import refuse
from tools.simulate.trace import Crashed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.simulation.agenda import Agenda
    from tools.simulate.chance import Chance
    from tools.simulate.connections import Connection
    from tools.simulate.controllers import ControllerHost
    from tools.simulate.disk import Disk
    from tools.simulate.hosts import ExecutorHost
    from tools.simulate.leases import Leases
    from tools.simulate.trace import FaultTrace, Fuse

_MOST_FAULTS = 40
_LONGEST_FUSE = 60
_LONGEST_CRASH_S = MARGIN_S - 4.0
"""An executor's process that is away for longer cannot stop its programs in time: its machine is lost, then."""


class Faults:
    """Breaks the world's parts and heals them."""

    def __init__(  # noqa: PLR0913 - the world's parts, each by name
        self,
        *,
        controllers: Sequence[ControllerHost],
        leases: Leases,
        executors: Sequence[ExecutorHost],
        connections: Sequence[Connection],
        fuses: Sequence[Fuse],
        disk: Disk,
        agenda: Agenda,
        chance: Chance,
        trace: FaultTrace,
    ) -> None:
        """Remember what can break; ``executors``, ``connections`` and ``fuses`` are in the same order."""
        self._controllers = controllers
        self._leases = leases
        self._executors = executors
        self._connections = connections
        self._fuses = fuses
        self._disk = disk
        self._agenda = agenda
        self._chance = chance
        self._trace = trace
        self._over = False
        self.kinds: tuple[Callable[[], None], ...] = (
            self._controller_crash,
            self._controller_crash_at_commit,
            self._controller_crash_in_tick,
            self._controller_replaced,
            self._executor_crash,
            self._executor_crash_in_step,
            self._machine_lost,
            self._node_lost,
            self._connection_cut,
            self._connection_deaf,
            self._disk_full,
            self._disk_locked,
            self._disk_slow,
        )

    def plan(self, until: float) -> None:
        """Put this world's faults on the agenda: a few kinds, each at its own rate."""
        chance, now = self._chance, self._agenda.now()
        kinds = chance.sample(self.kinds, chance.randint(1, len(self.kinds)))
        for _ in range(chance.randint(0, _MOST_FAULTS)):
            self._agenda.at(chance.moment(now, until), chance.choice(kinds))
        for connection in self._connections:
            connection.trouble = chance.choice((0.0, 0.05, 0.3))

    def heal(self) -> None:
        """End every fault, for good."""
        self._over = True
        self._disk.full = self._disk.locked = False
        self._disk.slow_s = 0.0
        for connection in self._connections:
            connection.cut = connection.deaf = False
            connection.trouble = 0.0
        for fuse in (*self._fuses, *(each.fuse for each in self._controllers)):
            fuse.put_out()
        for each in self._controllers:
            if each.store is not None:
                each.store.die_before_commit = each.store.die_after_commit = False
            each.lose_next_answers = False
        for host in self._executors:
            host.machine.lost.clear()
            host.boot()
        for each in self._controllers:
            each.boot()
        self._trace.say("all faults are over")

    def revive(self) -> None:
        """Bring a controller and executors back that died by themselves, a while from now."""
        for each in self._controllers:
            if not each.up:
                self._agenda.after(self._chance.moment(0.0, 6.0), each.boot)
        for host in self._executors:
            if not host.up:
                self._agenda.after(self._chance.moment(0.0, _LONGEST_CRASH_S), host.boot)

    def _for_a_while(self, longest_s: float, end: Callable[[], None]) -> None:
        self._agenda.after(self._chance.moment(0.2, longest_s), end)

    @property
    def _controller(self) -> ControllerHost:
        """The controller to strike: mostly the one that leads, where there are two."""
        if len(self._controllers) == 1:
            return self._controllers[0]
        leading = [each for each in self._controllers if each.leads]
        return self._chance.choice([*self._controllers, *leading, *leading])

    def _controller_crash(self) -> None:
        host = self._controller
        if not self._over and host.up:
            self._trace.fault("controller crash")
            if self._chance.happens(0.5):
                host.lose_next_answers = True
            else:
                host.die()

    def _controller_crash_at_commit(self) -> None:
        store = self._controller.store
        if self._over or store is None:
            return
        if self._chance.happens(0.5):
            self._trace.fault("controller crash before commit")
            store.die_before_commit = True
        else:
            self._trace.fault("controller crash after commit")
            store.die_after_commit = True

    def _controller_crash_in_tick(self) -> None:
        if not self._over:
            self._trace.fault("controller crash in tick")
            self._controller.fuse.light(self._chance.randint(1, _LONGEST_FUSE))

    def _controller_replaced(self) -> None:
        """Let another controller take over while the old one only sleeps; it wakes up later."""
        host = self._controller
        left = None if self._over or len(self._controllers) > 1 else host.retire()
        if left is None:
            return
        controller, store = left
        epoch = self._leases.newest
        self._trace.fault("controller replaced")
        host.boot()

        def wake_up() -> None:
            if self._leases.newest == epoch:
                return
            store.committed = lambda changes: refuse("one-writer", f"a deposed controller committed {changes}")
            try:
                controller.tick(look=True)
            except (Conflict, Unavailable, Crashed) as error:
                self._trace.say(f"deposed controller: {error}")

        self._for_a_while(20.0, wake_up)

    @property
    def _lease_s(self) -> float:
        return self._controllers[0].lease_s

    def _any(self) -> int:
        return self._chance.randrange(len(self._executors))

    def _executor_crash(self) -> None:
        host = self._executors[self._any()]
        if not self._over and host.up:
            self._trace.fault("executor crash", host.name, where=host.name)
            host.die()

    def _executor_crash_in_step(self) -> None:
        if not self._over:
            index = self._any()
            name = self._executors[index].name
            self._trace.fault("executor crash in step", name, where=name)
            self._fuses[index].light(self._chance.randint(1, 8))

    def _machine_lost(self) -> None:
        if self._over:
            return
        host = self._executors[self._any()]
        killed = host.machine.lose_everything()
        self._trace.fault("machine lost", f"{host.name}, {killed} programs", where=host.name)
        host.die()
        self._for_a_while(60.0, host.boot)

    def _node_lost(self) -> None:
        if self._over:
            return
        machine = self._executors[self._any()].machine
        node = self._chance.choice(machine.all_nodes()).name
        killed = machine.lose_node(node)
        self._trace.fault("node lost", f"{node}, {killed} runs", where=machine.name)
        self._for_a_while(40.0, lambda: machine.lost.discard(node))

    def _connection_cut(self) -> None:
        index = self._any()
        connection = self._connections[index]
        if not self._over:
            self._trace.fault("connection cut", where=self._executors[index].name)
            connection.cut = True
            self._for_a_while(2 * self._lease_s, lambda: setattr(connection, "cut", False))

    def _connection_deaf(self) -> None:
        index = self._any()
        connection = self._connections[index]
        if not self._over:
            self._trace.fault("answers do not pass", where=self._executors[index].name)
            connection.deaf = True
            self._for_a_while(2 * self._lease_s, lambda: setattr(connection, "deaf", False))

    def _disk_full(self) -> None:
        if not self._over:
            self._trace.fault("disk full")
            self._disk.full = True
            self._for_a_while(25.0, lambda: setattr(self._disk, "full", False))

    def _disk_locked(self) -> None:
        if not self._over:
            self._trace.fault("database locked")
            self._disk.locked = True
            self._for_a_while(8.0, lambda: setattr(self._disk, "locked", False))

    def _disk_slow(self) -> None:
        if not self._over:
            self._trace.fault("disk slow")
            self._disk.slow_s = self._chance.moment(0.1, 3.0)
            self._for_a_while(20.0, lambda: setattr(self._disk, "slow_s", 0.0))
