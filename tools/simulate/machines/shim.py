"""What stands between an executor and its programs: a daemon with a journal, which dies, comes back and refuses.

Programs and the journal outlive the daemon; what an executor asks for meanwhile is sent again by its process, if that
is still alive. A model of the process engine: the real one has tests of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import EndedBy, RunOutcome
from holdfast.ports.engine import Observation, RunPhase, StopReason
from holdfast.simulation.machine import not_launched

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.engines.simulated.engine import SimulatedEngine
    from holdfast.ports.clock import Clock
    from holdfast.ports.engine import RunOrder


class Shim:
    """The part of a machine that an executor talks to."""

    def __init__(self, engine: SimulatedEngine, clock: Clock, launch: Callable[[RunOrder], None]) -> None:
        """Begin healthy.

        Args:
            engine: Runs the programs.
            clock: The world's time.
            launch: Has the engine start a program, where its node is still there.
        """
        self._engine = engine
        self._clock = clock
        self._launch = launch
        self.down = False
        self.refuses = False
        """The journal cannot be written: nothing new is accepted."""
        self._last: Mapping[str, Observation] = {}
        """What was seen when the daemon died."""
        self._unsent: dict[str, RunOrder] = {}
        """What the executor's process sends once the daemon is back."""
        self._stops: list[tuple[str, float, StopReason]] = []
        self.hung: dict[str, RunOrder] = {}
        """Orders whose start hangs, each by itself: on a directory that does not answer."""
        self._told_to_stop: dict[str, StopReason] = {}
        """Those of them that must not start any more."""
        self._thawed: set[str] = set()
        """Those of them that no longer hang, and wait for the daemon."""
        self._told: dict[str, Observation] = {}
        """What is seen of runs the engine does not know."""

    def start(self, order: RunOrder) -> None:
        """Accept an order, or refuse it; it is in the journal before its program starts."""
        if self.down:
            self._unsent[order.uid] = order
            self._told[order.uid] = Observation(order.uid, RunPhase.STARTING)
        elif self.refuses:
            self._told[order.uid] = not_launched(order, self._clock.now(), "the journal cannot be written")
        else:
            self._told.pop(order.uid, None)
            self._launch(order)

    def hang(self, order: RunOrder) -> None:
        """Accept an order whose start hangs."""
        self.hung[order.uid] = order
        self._told[order.uid] = Observation(order.uid, RunPhase.STARTING)

    def release(self, uid: str) -> None:
        """Let a start that hung go on; what was stopped meanwhile never runs."""
        if self.down:
            self._thawed.add(uid)
            return
        order, reason = self.hung.pop(uid, None), self._told_to_stop.pop(uid, None)
        if order is not None and reason is not None:
            self._never_ran(order, reason)
        elif order is not None:
            del self._told[uid]
            self._launch(order)

    def _never_ran(self, order: RunOrder, reason: StopReason) -> None:
        by, now = EndedBy(reason.value), self._clock.now()
        outcome = RunOutcome(ended_by=by, started=False, ended_at=now, node=order.node, message="stopped in time")
        self._told[order.uid] = Observation(order.uid, RunPhase.FINISHED, outcome=outcome)

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs, at once or when the daemon is back; what hangs stops when it hangs no more."""
        if self.down:
            self._stops.extend(stops)
            for uid, _, reason in stops:
                order = self._unsent.pop(uid, None)
                if order is not None:
                    self._never_ran(order, reason)
            return
        self._told_to_stop.update((uid, reason) for uid, _, reason in stops if uid in self.hung)
        self._engine.stop(stops)

    def observe(self) -> Mapping[str, Observation]:
        """Return what the executor sees: while the daemon is away, what it last saw."""
        seen = self._last if self.down else self._engine.observe()
        return {**seen, **self._told} if self._told else seen

    def forget(self, uid: str) -> None:
        """Drop a result."""
        if uid not in self.hung:
            self._engine.forget([uid])
            self._told.pop(uid, None)

    def die(self) -> None:
        """End the daemon; what it ran goes on."""
        if not self.down:
            self._last = self._engine.observe()
            self.down = True

    def tear(self) -> list[str]:
        """Lose what is last in the journal: orders whose programs have not started; returns which."""
        torn = [uid for uid, seen in self._engine.observe().items() if seen.phase is RunPhase.STARTING]
        self._engine.stop([(uid, 0.0, StopReason.LOST) for uid in torn])
        self._engine.forget(torn)
        return torn

    def come_back(self) -> None:
        """Start a daemon that reads the journal, finds the programs, and takes what was not sent."""
        if not self.down:
            return
        self.down = False
        orders, stops = list(self._unsent.values()), self._stops
        self._unsent, self._stops = {}, []
        self.stop(stops)
        for order in orders:
            self.start(order)
        for uid in self._thawed:
            self.release(uid)
        self._thawed = set()

    def lose_client(self) -> list[str]:
        """Forget what the executor's process had yet to send, because it ended; returns which orders."""
        lost = list(self._unsent)
        for uid in lost:
            del self._told[uid]
        self._unsent, self._stops = {}, []
        return lost
