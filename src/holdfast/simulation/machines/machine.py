"""A machine that can break: a simulated engine whose nodes get lost, and which can lose all its state."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.domain.failure import Condition, EndedBy
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.ports.engine import Engine, Observation, RunPhase, StopReason
from holdfast.simulation.clocks import Wall
from holdfast.simulation.machines.shim import Shim, not_launched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.engines.simulated.engine import SimulatedRun
    from holdfast.ports.engine import NodeInfo, RunOrder
    from holdfast.simulation.agenda import Agenda
    from holdfast.simulation.machines.programs import Programs
    from holdfast.simulation.trace import Fuse


class Machine(Engine):
    """The ``Engine`` port on a simulated engine that breaks when told."""

    def __init__(  # noqa: PLR0913 - the parts of one machine, each by name
        self,
        name: str,
        nodes: Sequence[NodeInfo],
        *,
        clock: Agenda,
        script: Callable[[RunOrder], SimulatedRun],
        programs: Programs,
        may_forget: Callable[[str], None],
        fuse: Fuse,
    ) -> None:
        """Begin with every node there.

        Args:
            name: Of the executor it belongs to.
            nodes: Its nodes while none is lost.
            clock: The world's time.
            script: What becomes of each order.
            programs: Where the truth is written.
            may_forget: Asked before a result is forgotten.
            fuse: Of the executor's process; each call of a method is a point where it can end.
        """
        self.name = name
        self._nodes = tuple(nodes)
        self._clock = clock
        self._script = script
        self._programs = programs
        self._may_forget = may_forget
        self._fuse = fuse
        self._wakes: list[Callable[[], None]] = []
        self.lost: set[str] = set()
        self._orders: dict[str, RunOrder] = {}
        self._overruled: dict[str, Observation] = {}
        """What is seen of runs whose node was lost, in place of what the engine says."""
        self._seen: Mapping[str, Observation] = {}
        self._told: dict[str, tuple[Observation, Observation]] = {}
        """What was seen last, by the world's time and by this machine's clock."""
        self.wall = Wall(clock)
        self.slow_s = 0.0
        """How long each call takes before anything happens."""
        self.hangs: Callable[[RunOrder], bool] = lambda _: False
        """Whether the start of a run hangs."""
        self._install()

    def _install(self) -> None:
        self._engine = SimulatedEngine(self._clock, self._nodes, script=self._script)
        self.shim = Shim(self._engine, self._clock, self._launch)

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes that are not lost."""
        return [node for node in self._nodes if node.name not in self.lost]

    def all_nodes(self) -> Sequence[NodeInfo]:
        """List every node it was built with."""
        return self._nodes

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; one for a lost node cannot be launched."""
        self._take_time()
        for order in orders:
            if order.uid in self._orders:
                continue
            self._orders[order.uid] = order
            self._programs.again(order)
            if self.hangs(order):
                self.shim.hang(order)
            else:
                self.shim.start(order)
            self._fuse.burn()
        self.look()

    def _take_time(self) -> None:
        self._fuse.burn()
        if self.slow_s:
            self._clock.run_until(self._clock.now() + self.slow_s)
            self._fuse.burn()

    def _launch(self, order: RunOrder) -> None:
        if order.node in self.lost:
            self._overruled[order.uid] = not_launched(order, self._clock.now(), f"node {order.node} is gone")
        else:
            self._engine.start([order])

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs."""
        self._take_time()
        self.shim.stop(stops)
        self.look()

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten."""
        if self.slow_s:
            self._take_time()
        self.look()
        return self.seen()

    def seen(self) -> Mapping[str, Observation]:
        """Return what ``observe`` does, at once."""
        seen = self.shim.observe()
        if self._overruled and not self.shim.down:
            seen = {**seen, **self._overruled}
        if len(self.wall.readings) == 1:
            return seen
        told = {uid: self._by_own_clock(uid, each) for uid, each in seen.items()}
        self._told = {uid: (seen[uid], each) for uid, each in told.items()}
        return told

    def _by_own_clock(self, uid: str, seen: Observation) -> Observation:
        """Tell when things happened by this machine's clock as it was when they were seen."""
        known, told = self._told.get(uid, (None, None))
        if known is seen and told is not None:
            return told
        ahead, outcome = self.wall.offset, seen.outcome
        started_at = seen.started_at
        if told is not None and told.started_at is not None:
            started_at = told.started_at
        elif started_at is not None:
            started_at += ahead
        if outcome is not None:
            outcome = replace(
                outcome,
                started_at=None if outcome.started_at is None else started_at,
                ended_at=outcome.ended_at + ahead,
            )
        return replace(seen, started_at=started_at, outcome=outcome)

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs."""
        self.look()
        for uid in uids:
            if uid in self._orders and not self.shim.down:
                self._may_forget(uid)
                self._fuse.burn()
                self.shim.forget(uid)
                self._overruled.pop(uid, None)
                del self._orders[uid]

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a hint."""
        self._wakes.append(wake)

    def trouble(self) -> str | None:
        """Return nothing: what breaks shows in its runs."""
        return None

    def close(self) -> None:
        """Let go of nothing."""

    def look(self) -> None:
        """Let programs do what is due by now, write the truth down, and hint that something changed."""
        seen = self._engine.observe()
        if seen is self._seen:
            return
        for uid, observation in seen.items():
            if observation is not self._seen.get(uid):
                self._programs.seen(self.name, self._orders[uid], observation)
        self._seen = seen
        self._changed()

    def _changed(self) -> None:
        for wake in self._wakes:
            wake()

    def next_change(self) -> float | None:
        """Return when a program starts or ends next by itself."""
        return self._engine.next_change()

    def lose_node(self, node: str) -> int:
        """Lose a node and every program on it; returns how many runs that ended."""
        self.look()
        self.lost.add(node)
        ended = [
            uid
            for uid, each in self._engine.observe().items()
            if self._orders[uid].node == node and each.phase is not RunPhase.FINISHED
        ]
        self._engine.stop([(uid, 0.0, StopReason.LOST) for uid in ended])
        self.look()
        for uid, each in self._engine.observe().items():
            if uid in ended and each.outcome is not None:
                gone = replace(
                    each.outcome,
                    conditions=frozenset({Condition.NODE_LOST}),
                    ended_by=EndedBy.LOST,
                    message=f"node {node} stopped answering",
                )
                self._overruled[uid] = replace(each, outcome=gone)
        return len(ended)

    def lose_everything(self) -> int:
        """Be replaced by a new machine of that name; returns how many programs that ended."""
        self.look()
        killed = self._programs.wiped(self.name, self._clock.now())
        self._install()
        self._orders, self._overruled, self._seen, self._told = {}, {}, {}, {}
        return killed

    def kill_shim(self, *, torn: bool) -> int:
        """End the daemon between executor and programs, its journal perhaps torn; returns how many orders that lost."""
        self.look()
        self.shim.die()
        lost = self.shim.tear() if torn else []
        for uid in lost:
            self._orders.pop(uid, None)
        return len(lost)

    def revive_shim(self) -> None:
        """Start the daemon again."""
        self.shim.come_back()
        self.look()
        self._changed()

    def let_go(self, uid: str) -> None:
        """Let a start that hung go on."""
        self.shim.release(uid)
        self.look()
        self._changed()

    def client_lost(self) -> None:
        """Handle the end of the executor's process, with what it had not sent."""
        for uid in self.shim.lose_client():
            self._orders.pop(uid, None)
