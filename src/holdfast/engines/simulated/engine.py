"""An engine whose runs follow a script and a clock; it starts no processes, never blocks and never calls back.

Time passes only when ``observe`` or ``advance`` reads the clock: equal scripts and equal clocks give equal
observations.
"""

from __future__ import annotations

import heapq
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.domain.containers import Capability, EngineInfo
from holdfast.engines.simulated.life import Life, SimulatedRun
from holdfast.ports.engine import RunPhase

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.placement.pressure import Pressure
    from holdfast.ports.clock import Clock
    from holdfast.ports.engine import NodeInfo, Observation, RunOrder, StopReason

SIMULATED = EngineInfo("simulated", frozenset(Capability) - {Capability.PREPARING, Capability.PLACEMENT})
"""The default description: it can do everything."""


class SimulatedEngine:
    """An engine in memory; its state follows from its script, the clock and its orders."""

    def __init__(
        self,
        clock: Clock,
        nodes: Sequence[NodeInfo],
        *,
        script: Callable[[RunOrder], SimulatedRun],
        info: EngineInfo = SIMULATED,
    ) -> None:
        """Start with nothing running.

        Args:
            clock: The only source of time.
            nodes: The places to report.
            script: Returns the fate of an order; called once per order.
            info: Its description and capabilities.
        """
        self._clock = clock
        self._nodes = tuple(nodes)
        self._script = script
        self._info = info
        self._lives: dict[str, Life] = {}
        self._unfinished: dict[str, Life] = {}
        self._agenda: list[tuple[float, str]] = []
        """When to look at each run, so that runs that merely run cost nothing."""
        self._snapshot: Mapping[str, Observation] = MappingProxyType({})
        self._stale = False
        self._wakes: list[Callable[[], None]] = []
        self.pressed: Pressure | None = None
        """The pressure on its machine, if a test sets one."""

    def info(self) -> EngineInfo:
        """Return its capabilities."""
        return self._info

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places with their whole capacity."""
        return self._nodes

    def pressure(self) -> Pressure | None:
        """Return the pressure that was set."""
        return self.pressed

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Begin to prepare runs; known uids are ignored."""
        for order in orders:
            if order.uid not in self._lives:
                self._begin(order)
        self.advance()

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs, prepared or not; runs started before are ignored."""
        now = self._clock.now()
        for order in orders:
            life = self._unfinished.get(order.uid)
            if order.uid not in self._lives:
                life = self._begin(order)
            if life is not None and not life.is_ordered:
                life.start(now)
                if now < min(life.starts_at, life.ends_at):
                    life.seen = life.look(now)
                heapq.heappush(self._agenda, (now, order.uid))
                self._stale = True
        self.advance()

    def _begin(self, order: RunOrder) -> Life:
        now, plan = self._clock.now(), self._script(order)
        pulls_at = now + plan.prepare_s
        places_itself = Capability.PLACEMENT in self._info.capabilities
        life = Life(order, plan, pulls_at, pulls_at + plan.pull_s, places_itself)
        life.seen = life.look(now)
        self._lives[order.uid] = self._unfinished[order.uid] = life
        heapq.heappush(self._agenda, (now, order.uid))
        self._stale = True
        return life

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs; the first reason and the earliest end count."""
        self.advance()
        now = self._clock.now()
        for uid, grace_s, reason in stops:
            life = self._unfinished.get(uid)
            if life is None:
                continue
            life.stop(now, grace_s, reason)
            heapq.heappush(self._agenda, (now, uid))
        self.advance()

    def observe(self) -> Mapping[str, Observation]:
        """Return every run that was not forgotten yet, as of the clock's time."""
        self.advance()
        if self._stale:
            self._snapshot = MappingProxyType({uid: life.seen for uid, life in self._lives.items()})
            self._stale = False
        return self._snapshot

    def forget(self, uids: Sequence[str]) -> None:
        """Drop finished runs; unknown or unfinished ones are ignored."""
        for uid in uids:
            if uid in self._lives and uid not in self._unfinished:
                del self._lives[uid]
                self._stale = True

    def on_change(self, wake: Callable[[], None]) -> None:
        """Register a callback for when ``advance`` changes something."""
        self._wakes.append(wake)

    def trouble(self) -> str | None:
        """Return nothing: it always works."""
        return None

    def close(self) -> None:
        """Do nothing: it holds no resources."""

    def advance(self) -> None:
        """Let every run do what is due by now."""
        now = self._clock.now()
        changed = False
        while self._agenda and self._agenda[0][0] <= now:
            life = self._unfinished.get(heapq.heappop(self._agenda)[1])
            if life is not None:
                seen = life.look(now)
                changed = changed or seen is not life.seen
                life.seen = seen
                self._plan_next(life, now)
        if changed:
            self._stale = True
            for wake in self._wakes:
                wake()

    def _plan_next(self, life: Life, now: float) -> None:
        uid = life.order.uid
        if life.seen.phase is RunPhase.FINISHED:
            del self._unfinished[uid]
            return
        due = life.next_at(now)
        if life.seen.phase is RunPhase.RUNNING:
            due = min(due, life.forced_at)
        heapq.heappush(self._agenda, (due, uid))

    def next_change(self) -> float | None:
        """Return when a run next changes by itself, so that a virtual clock can jump there."""
        now = self._clock.now()
        due = min((life.next_at(now) for life in self._unfinished.values()), default=inf)
        return None if due == inf else due
