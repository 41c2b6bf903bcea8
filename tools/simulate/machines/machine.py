"""A machine that breaks in more ways than nodes do: behind a shim that dies, slow, hanging, and with a wrong clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, FailureCondition
from holdfast.domain.record import evolve
from holdfast.ports.engine import Observation, RunPhase
from holdfast.simulation.machine import Machine, not_launched
from tools.simulate.clocks import Wall
from tools.simulate.machines.shim import Shim

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import NodeInfo, RunOrder, StopReason
    from holdfast.simulation.agenda import Agenda
    from tools.simulate.machines.programs import Programs
    from tools.simulate.trace import Fuse


class FaultyMachine(Machine):
    """A machine that tells the truth about its programs to the checks, and not always to its executor."""

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
        self._programs = programs
        self._may_forget = may_forget
        self._fuse = fuse
        self.wall = Wall(clock)
        self.slow_s = 0.0
        """How long each call takes before anything happens."""
        self.hangs: Callable[[RunOrder], bool] = lambda _: False
        """Whether the start of a run hangs."""
        self.short: dict[str, str] = {}
        """By node, why no program can be started there now."""
        self.refused: set[str] = set()
        """Uids of the runs that were refused for that."""
        super().__init__(name, nodes, clock=clock, script=script)

    def _install(self) -> None:
        super()._install()
        self.shim = Shim(self._engine, self._clock, self._launch)
        self._told: dict[str, tuple[Observation, Observation]] = {}
        """What was seen last, by the world's time and by this machine's clock."""

    def all_nodes(self) -> Sequence[NodeInfo]:
        """List every node it was built with."""
        return self._nodes

    def report(self, node: NodeInfo) -> None:
        """Tell something else of a node from now on."""
        self._nodes = tuple(node if each.name == node.name else each for each in self._nodes)
        self._changed()

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

    def _launch(self, order: RunOrder) -> None:
        reason = self.short.get(order.node)
        if reason is None or order.node in self.lost:
            super()._launch(order)
            return
        self.refused.add(order.uid)
        words = f"cannot start 'work': {reason}"
        seen = not_launched(order, self._clock.now(), words)
        container = ContainerResult(None, reason=reason, message=words)
        self._overruled[order.uid] = evolve(
            seen, outcome=seen.outcome and evolve(seen.outcome, containers=(container,))
        )

    def _take_time(self) -> None:
        self._fuse.burn()
        if self.slow_s:
            self._clock.run_until(self._clock.now() + self.slow_s)
            self._fuse.burn()

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
            outcome = evolve(
                outcome,
                started_at=None if outcome.started_at is None else started_at,
                ended_at=outcome.ended_at + ahead,
            )
        return evolve(seen, started_at=started_at, outcome=outcome)

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

    def look(self) -> None:
        """Let programs do what is due by now, write the truth down, and hint that something changed."""
        before, seen = self._seen, self._engine.observe()
        for uid, observation in seen.items() if seen is not before else ():
            if observation is not before.get(uid):
                self._programs.seen(self.name, self._orders[uid], observation)
        super().look()

    def lose_everything(self) -> int:
        """Be replaced by a new machine of that name; returns how many programs that ended."""
        self.look()
        killed = self._programs.wiped(self.name, self._clock.now())
        self._install()
        return killed

    def running(self) -> list[str]:
        """List the runs whose program runs."""
        return [uid for uid, each in self._engine.observe().items() if each.phase is RunPhase.RUNNING]

    def lose_watchers(self) -> int:
        """End all that watches the programs, and these with it; nobody knows how; returns how many."""
        self.look()
        ended = self.running()
        self._lose(ended, FailureCondition.EXECUTOR_LOST, "nothing is left that watched it")
        return len(ended)

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
