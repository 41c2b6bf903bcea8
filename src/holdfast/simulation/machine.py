"""A machine that can break: a simulated engine that can lose nodes, or all its state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import EndedBy, FailureCondition, RunOutcome
from holdfast.domain.record import evolve
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.ports.engine import Engine, Observation, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.containers import EngineInfo
    from holdfast.domain.placement.pressure import Pressure
    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import NodeInfo, RunOrder
    from holdfast.simulation.agenda import Agenda


class Machine(Engine):
    """The ``Engine`` port on a simulated engine that breaks on demand."""

    def __init__(
        self, name: str, nodes: Sequence[NodeInfo], *, clock: Agenda, script: Callable[[RunOrder], SimulatedRun]
    ) -> None:
        """Begin with all nodes.

        Args:
            name: The name of its executor.
            nodes: Its nodes while none is lost.
            clock: The world's time.
            script: Returns the fate of an order.
        """
        self.name = name
        self._nodes = tuple(nodes)
        self._clock = clock
        self._script = script
        self._wakes: list[Callable[[], None]] = []
        self.lost: set[str] = set()
        """The nodes that are lost now."""
        self._install()

    def _install(self) -> None:
        self._engine = SimulatedEngine(self._clock, self._nodes, script=self._script)
        self._orders: dict[str, RunOrder] = {}
        self._overruled: dict[str, Observation] = {}
        """Observations of runs whose node was lost, which replace those of the engine."""
        self._seen: Mapping[str, Observation] = {}

    def info(self) -> EngineInfo:
        """Return its engine's capabilities."""
        return self._engine.info()

    def nodes(self) -> Sequence[NodeInfo]:
        """List the nodes that are not lost."""
        return [node for node in self._nodes if node.name not in self.lost]

    def pressure(self) -> Pressure | None:
        """Return its machine's pressure."""
        return self._engine.pressure()

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Do nothing: its engine starts runs without preparing them."""

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; one for a lost node cannot be launched."""
        for order in orders:
            if order.uid not in self._orders:
                self._orders[order.uid] = order
                self._launch(order)
        self.look()

    def _launch(self, order: RunOrder) -> None:
        if order.node in self.lost:
            self._overruled[order.uid] = not_launched(order, self._clock.now(), f"node {order.node} is gone")
        else:
            self._engine.start([order])

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs."""
        self._engine.stop(stops)
        self.look()

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten."""
        self.look()
        return {**self._engine.observe(), **self._overruled}

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs."""
        self._engine.forget(uids)
        for uid in uids:
            self._overruled.pop(uid, None)
            self._orders.pop(uid, None)

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a callback."""
        self._wakes.append(wake)

    def trouble(self) -> str | None:
        """Return nothing: faults show in its runs."""
        return None

    def close(self) -> None:
        """Do nothing: it holds no resources."""

    def look(self) -> None:
        """Let programs do what is due by now, and call back if something changed."""
        seen = self._engine.observe()
        if seen is not self._seen:
            self._seen = seen
            self._changed()

    def _changed(self) -> None:
        for wake in self._wakes:
            wake()

    def next_change(self) -> float | None:
        """Return when a program next starts or ends by itself."""
        return self._engine.next_change()

    def lose_node(self, node: str) -> int:
        """Lose a node with every program on it; returns how many runs that ended."""
        self.look()
        self.lost.add(node)
        ended = [
            uid
            for uid, observation in self._engine.observe().items()
            if self._orders[uid].node == node and observation.phase is not RunPhase.FINISHED
        ]
        self._lose(ended, FailureCondition.NODE_LOST, f"node {node} stopped answering")
        return len(ended)

    def _lose(self, uids: Sequence[str], condition: FailureCondition, message: str) -> None:
        """End programs without anybody seeing it."""
        self._engine.stop([(uid, 0.0, StopReason.LOST) for uid in uids])
        self.look()
        for uid, observation in self._engine.observe().items():
            if uid in uids and observation.outcome is not None:
                gone = evolve(
                    observation.outcome,
                    containers=(),
                    conditions=frozenset({condition}),
                    ended_by=EndedBy.LOST,
                    message=message,
                )
                self._overruled[uid] = evolve(observation, outcome=gone)

    def lose_everything(self) -> int:
        """Become a new machine of the same name; returns how many runs that ended."""
        self.look()
        ended = sum(observation.phase is not RunPhase.FINISHED for observation in self._seen.values())
        self._install()
        return ended


def not_launched(order: RunOrder, now: float, message: str) -> Observation:
    """Return the observation of a run that could not be started."""
    outcome = RunOutcome(
        conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
        started=False,
        ended_at=now,
        node=order.node or None,
        message=message,
    )
    return Observation(order.uid, RunPhase.FINISHED, outcome=outcome)
