"""A machine that can break: a simulated engine whose nodes get lost, and which can lose everything it knew.

Decides what is seen of a run after its node or its machine is gone; what programs do by themselves is the
simulated engine's.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.domain.failure import Condition, EndedBy, RunOutcome
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.ports.engine import Engine, Observation, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.engines.simulated.engine import SimulatedRun
    from holdfast.ports.clock import Clock
    from holdfast.ports.engine import NodeInfo, RunOrder
    from holdfast.sim.programs import Programs
    from holdfast.sim.trace import Fuse


class Machine(Engine):
    """The ``Engine`` port on a simulated engine that breaks when told."""

    def __init__(  # noqa: PLR0913 - the parts of one machine, each by name
        self,
        name: str,
        nodes: Sequence[NodeInfo],
        *,
        clock: Clock,
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
        self._engine = self._new_engine()
        self._seen: Mapping[str, Observation] = {}

    def _new_engine(self) -> SimulatedEngine:
        return SimulatedEngine(self._clock, self._nodes, script=self._script)

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes that are not lost."""
        return [node for node in self._nodes if node.name not in self.lost]

    def all_nodes(self) -> Sequence[NodeInfo]:
        """List every node it was built with."""
        return self._nodes

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; one for a lost node cannot be launched."""
        self._fuse.burn()
        for order in orders:
            if order.uid in self._orders:
                continue
            self._orders[order.uid] = order
            self._programs.again(order)
            if order.node in self.lost:
                self._overruled[order.uid] = self._not_launched(order)
            else:
                self._engine.start([order])
            self._fuse.burn()
        self.look()

    def _not_launched(self, order: RunOrder) -> Observation:
        outcome = RunOutcome(
            conditions=frozenset({Condition.LAUNCH_FAILED}),
            started=False,
            ended_at=self._clock.now(),
            node=order.node,
            message=f"node {order.node} is gone",
        )
        return Observation(order.uid, RunPhase.FINISHED, outcome=outcome)

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs."""
        self._fuse.burn()
        self._engine.stop(stops)
        self.look()

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten."""
        self.look()
        seen = self._engine.observe()
        return {**seen, **self._overruled} if self._overruled else seen

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs."""
        self.look()
        for uid in uids:
            if uid in self._orders:
                self._may_forget(uid)
                self._fuse.burn()
                self._engine.forget([uid])
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
        self._engine = self._new_engine()
        self._orders, self._overruled, self._seen = {}, {}, {}
        return killed
