"""One step of an executor: report the observed runs, fetch the desired ones, reconcile.

Results stay with the engine until the controller has stored them, which it signals by no longer desiring the run.

Fencing: the controller starts a run elsewhere once it has not heard of this executor for the lease, and cannot know
whether the executor is dead or only cut off. Only this side can make sure that the program is gone by then. So the
lease counts here from when an answered request was *sent*, which the controller received no earlier, and by the steady
clock. Whatever is not known counts as expired: an answer to an earlier request, or to an earlier process. A run that is
not known here may have been ordered in a lost answer, so each step closes the whole difference between the runs that
exist and those that should, and no message is sent only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.containers import Capability
from holdfast.domain.failure import EndedBy, RunOutcome
from holdfast.errors import Unavailable
from holdfast.ports.engine import LEADING, Observation, RunPhase, StopReason
from holdfast.ports.exchange import ExchangeRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.clock import SteadyClock
    from holdfast.ports.engine import Engine, RunOrder
    from holdfast.ports.exchange import DesiredRun, ExchangeTransport

    Stop = tuple[str, float, StopReason]
    """A uid, its grace period in seconds, and the reason."""

_TOLD_AGAIN_S = 5.0
"""Seconds after which a stopping run is told to stop again."""
_UNSTARTED = frozenset({RunPhase.PREPARING, RunPhase.PULLING, RunPhase.PREPARED})
_ENDED_BY = {
    reason: EndedBy(reason.value) for reason in (StopReason.USER, StopReason.LOST, StopReason.EVICTION, *LEADING)
}


class Executor:
    """Drives one engine towards the runs that the controller wants."""

    def __init__(
        self,
        name: str,
        engine: Engine,
        transport: ExchangeTransport,
        *,
        clock: SteadyClock,
        lease_s: float | None = None,
        fenced: Callable[[], bool] = lambda: False,
    ) -> None:
        """Wire the executor.

        Args:
            name: Its name, stable over restarts.
            engine: The engine.
            transport: Reaches the controller.
            clock: Its time; leases count by the steady clock, which nobody sets.
            lease_s: Seconds without an answer after which it stops its own runs, before the controller may start them
                elsewhere; ``None`` for never, with a controller in the same process.
            fenced: Whether the controller in the same process no longer leads, as far as it knows: the next leader may
                start its runs elsewhere.
        """
        self._name = name
        self._engine = engine
        self._info = engine.info()
        self._transport = transport
        self._clock = clock
        self._lease_s = lease_s
        self._fenced = fenced
        self._incarnation = clock.now()
        self._sequence = 0
        self._acked: str | None = None
        # When an earlier incarnation was last answered is unknown: the runs it left have no lease yet.
        self._answered_at = float("-inf")
        self._stopping: dict[str, tuple[float, float, StopReason]] = {}
        """The last stop of each run: grace period in seconds, time and reason."""
        self._never_started: dict[str, Observation] = {}

    def step(self) -> bool:
        """Exchange once and act on the answer; returns whether the controller could be reached."""
        observed = {**self._engine.observe(), **self._never_started}
        if self._fenced():
            self._fence(observed)
            return False
        self._sequence += 1
        asked_at = self._clock.steady()
        request = ExchangeRequest(
            self._name,
            self._sequence,
            self._engine.nodes(),
            observed,
            self._incarnation,
            self._acked,
            self._info,
            self._engine.pressure(),
        )
        try:
            response = self._transport.exchange(request)
        except Unavailable:  # the controller tells what keeps it from answering
            self._fence(observed)
            return False
        if response.sequence < self._sequence:
            # The answer to this request was lost, so nothing is known of the lease.
            self._fence(observed)
            return False
        # The controller counts the lease from what it heard, which was sent then.
        self._answered_at = asked_at
        self._acked = response.controller_epoch
        if self._is_cut_off():
            self._fence(observed)
            return False
        self._close_difference(observed, response.desired)
        return True

    def _close_difference(self, observed: Mapping[str, Observation], desired: Mapping[str, DesiredRun]) -> None:
        stops = self._drop(observed, desired)
        starts: list[RunOrder] = []
        prepares: list[RunOrder] = []
        for uid, target in desired.items():
            order, seen = target.order, observed.get(uid)
            if target.stop is not None:
                if seen is None:
                    self._never_started[uid] = self._not_started(order, target.stop)
                elif self._is_worth_telling(seen, order.grace_s, target.stop):
                    stops.append((uid, order.grace_s, target.stop))
            elif seen is None or (not target.prepare and seen.phase in _UNSTARTED):
                (prepares if target.prepare else starts).append(order)
        if stops:
            self._stop_now(stops)
        if prepares and Capability.PREPARING in self._info.capabilities:
            self._engine.prepare(prepares)
        if starts:
            self._engine.start(starts)

    def _drop(self, observed: Mapping[str, Observation], desired: Mapping[str, DesiredRun]) -> list[Stop]:
        """Forget results that are safe with the controller; return how to stop what it does not know."""
        finished, stops = [], []
        for uid, seen in observed.items():
            if uid not in desired:
                if seen.phase is RunPhase.FINISHED:
                    finished.append(uid)
                    self._stopping.pop(uid, None)
                    self._never_started.pop(uid, None)
                elif self._is_worth_telling(seen, 0.0, StopReason.LOST):
                    stops.append((uid, 0.0, StopReason.LOST))
        if finished:
            self._engine.forget(finished)
        return stops

    def _stop_now(self, stops: Sequence[Stop]) -> None:
        now = self._clock.steady()
        for uid, grace_s, reason in stops:
            self._stopping[uid] = (grace_s, now, reason)
        self._engine.stop(stops)

    def _is_worth_telling(self, seen: Observation, grace_s: float, reason: StopReason) -> bool:
        """Whether to tell a run to stop: the first time, in less time, or when it runs on as if not told.

        A reason that leaves no time for a warning ends one.

        The engine that was told may have been replaced since.
        """
        if seen.phase is RunPhase.FINISHED:
            return False
        told_grace_s, told_at, why = self._stopping.get(seen.uid, (float("inf"), 0.0, reason))
        goes_on = seen.phase is not RunPhase.STOPPING and self._clock.steady() - told_at >= _TOLD_AGAIN_S
        return grace_s < told_grace_s or goes_on or (why in LEADING and reason not in LEADING)

    def _not_started(self, order: RunOrder, reason: StopReason) -> Observation:
        """Report a run that is to be stopped and was never started, so that nobody waits for it."""
        outcome = RunOutcome(
            ended_by=_ENDED_BY.get(reason, EndedBy.CASCADE),
            started=False,
            ended_at=self._clock.now(),
            node=order.node,
            executor=self._name,
            message="stopped before it was started",
        )
        return Observation(order.uid, RunPhase.FINISHED, outcome=outcome)

    def _fence(self, observed: Mapping[str, Observation]) -> None:
        """Stop every run once the lease is over: the controller may start it elsewhere from now on.

        Also those that are stopping already: their grace may be longer than the controller waits.
        """
        if self._is_cut_off():
            running = [uid for uid, seen in observed.items() if seen.phase is not RunPhase.FINISHED]
            if running:
                self._stop_now([(uid, 0.0, StopReason.LOST) for uid in running])

    def _is_cut_off(self) -> bool:
        if self._fenced():
            return True
        return self._lease_s is not None and self._clock.steady() - self._answered_at > self._lease_s
