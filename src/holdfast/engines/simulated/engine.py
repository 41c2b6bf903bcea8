"""An engine whose runs follow a script and a clock; it starts no processes, never blocks and never calls back.

Time passes only when ``observe`` or ``advance`` reads the clock: equal scripts and equal clocks give equal
observations.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.ports.engine import NodeInfo, Observation, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.clock import Clock
    from holdfast.ports.engine import RunOrder

_SUCCESS = RunOutcome(containers=(ContainerResult(0, reason="Completed"),))
_SIGTERM, _SIGKILL = 15, 9


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What one run will do."""

    start_delay_s: float = 0.0
    """From the order to the start of its program."""
    duration_s: float | None = 0.0
    """From its start to its end; ``None`` never ends by itself."""
    outcome: RunOutcome = _SUCCESS
    """How it ends by itself; times and place are filled in. ``started=False`` never starts and ends after the delay."""
    term_delay_s: float = 0.0
    """From SIGTERM to its end; longer than the grace means that it has to be killed."""
    progress: str = ""
    """What it reports once it runs."""


@dataclass(slots=True)
class _Life:
    """One run and the instants of its life, as planned now."""

    order: RunOrder
    plan: SimulatedRun
    starts_at: float
    ends_at: float
    grace_s: float
    """Of the stop that counts; the order's, if only the deadline stops it."""
    stopped: StopReason | None = None
    seen: Observation = field(init=False)

    def __post_init__(self) -> None:
        self.seen = Observation(self.order.uid, RunPhase.STARTING)


class SimulatedEngine:
    """An engine in memory; its state is what its script and the clock make of its orders."""

    def __init__(self, clock: Clock, nodes: Sequence[NodeInfo], *, script: Callable[[RunOrder], SimulatedRun]) -> None:
        """Start with nothing running.

        Args:
            clock: The only source of time.
            nodes: The places to report.
            script: Says for each order what will become of it; called once per order.
        """
        self._clock = clock
        self._nodes = tuple(nodes)
        self._script = script
        self._lives: dict[str, _Life] = {}
        self._unfinished: dict[str, _Life] = {}
        self._agenda: list[tuple[float, str]] = []
        """When to look at a run, so that the many that only run cost nothing."""
        self._snapshot: Mapping[str, Observation] = MappingProxyType({})
        self._stale = False
        self._wakes: list[Callable[[], None]] = []

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places and their whole capacity."""
        return self._nodes

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs; known uids are ignored."""
        now = self._clock.now()
        for order in orders:
            if order.uid not in self._lives:
                life = _plan(order, self._script(order), now)
                self._lives[order.uid] = self._unfinished[order.uid] = life
                heapq.heappush(self._agenda, (life.starts_at, order.uid))
                self._stale = True
        self.advance()

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs; the first reason stays, the earliest end counts."""
        self.advance()
        now = self._clock.now()
        for uid, grace_s, reason in stops:
            life = self._unfinished.get(uid)
            if life is None:
                continue
            if life.stopped is None:
                life.stopped = reason
            delay = 0.0 if now < life.starts_at else min(life.plan.term_delay_s, grace_s)
            if now + delay < life.ends_at:
                life.ends_at, life.grace_s = now + delay, grace_s
            heapq.heappush(self._agenda, (now, uid))
        self.advance()

    def observe(self) -> Mapping[str, Observation]:
        """Return every run not yet forgotten, as of the clock's now."""
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
        """Register a hint, called when ``advance`` changed something."""
        self._wakes.append(wake)

    def trouble(self) -> str | None:
        """Return nothing: it always works."""
        return None

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def advance(self) -> None:
        """Let every run do what is due by now."""
        now = self._clock.now()
        changed = False
        while self._agenda and self._agenda[0][0] <= now:
            life = self._unfinished.get(heapq.heappop(self._agenda)[1])
            if life is not None and _step(life, now):
                changed = True
                self._plan_next(life)
        if changed:
            self._stale = True
            for wake in self._wakes:
                wake()

    def _plan_next(self, life: _Life) -> None:
        uid = life.order.uid
        if life.seen.phase is RunPhase.FINISHED:
            del self._unfinished[uid]
            return
        heapq.heappush(self._agenda, (life.ends_at, uid))
        if life.seen.phase is RunPhase.RUNNING and life.order.deadline_s is not None:
            heapq.heappush(self._agenda, (life.starts_at + life.order.deadline_s, uid))

    def next_change(self) -> float | None:
        """Return when the next run starts or ends by itself, so that a virtual clock can jump there."""
        instants = [
            life.starts_at if life.seen.phase is RunPhase.STARTING else life.ends_at
            for life in self._unfinished.values()
        ]
        due = min(instants, default=float("inf"))
        return None if due == float("inf") else due


def _plan(order: RunOrder, plan: SimulatedRun, now: float) -> _Life:
    starts_at = now + plan.start_delay_s
    if not plan.outcome.started:
        return _Life(order, plan, starts_at, starts_at, order.grace_s)
    duration_s = float("inf") if plan.duration_s is None else plan.duration_s
    ends_at = starts_at + duration_s
    if order.deadline_s is not None:
        forced = order.deadline_s + min(plan.term_delay_s, order.grace_s)
        ends_at = min(ends_at, starts_at + forced)
    return _Life(order, plan, starts_at, ends_at, order.grace_s)


def _step(life: _Life, now: float) -> bool:
    """Move one run to where it is at ``now``; returns whether that is news."""
    if now >= life.ends_at:
        seen = _finished(life)
    elif now < life.starts_at or (
        life.seen.phase is RunPhase.RUNNING and life.stopped is None and not _is_past_deadline(life, now)
    ):
        return False
    else:
        phase = RunPhase.RUNNING if life.stopped is None and not _is_past_deadline(life, now) else RunPhase.STOPPING
        seen = Observation(life.order.uid, phase, life.starts_at, progress=life.plan.progress)
    if seen == life.seen:
        return False
    life.seen = seen
    return True


def _is_past_deadline(life: _Life, now: float) -> bool:
    return life.order.deadline_s is not None and now >= life.starts_at + life.order.deadline_s


def _finished(life: _Life) -> Observation:
    never = life.ends_at < life.starts_at or not life.plan.outcome.started
    outcome = replace(
        _stopped_outcome(life) or life.plan.outcome,
        started=not never,
        started_at=None if never else life.starts_at,
        ended_at=life.ends_at,
        node=life.order.node or None,
        progress="" if never else life.plan.progress,
    )
    return Observation(life.order.uid, RunPhase.FINISHED, outcome.started_at, outcome, outcome.progress)


def _stopped_outcome(life: _Life) -> RunOutcome | None:
    """Return the outcome of a run that did not end by itself."""
    own_end = life.starts_at + (float("inf") if life.plan.duration_s is None else life.plan.duration_s)
    past_deadline = _is_past_deadline(life, life.ends_at)
    if life.stopped is None and (not past_deadline or not life.plan.outcome.started):
        return None
    if life.ends_at < life.starts_at:
        return RunOutcome(
            ended_by=EndedBy((life.stopped or StopReason.USER).value), message="stopped before it started"
        )
    if life.stopped is None and own_end <= life.starts_at + (life.order.deadline_s or 0.0):
        return None
    by = EndedBy.DEADLINE if life.stopped is None else EndedBy(life.stopped.value)
    grace_over = life.plan.term_delay_s > life.grace_s
    number = _SIGKILL if grace_over else _SIGTERM
    conditions = frozenset({FailureCondition.DEADLINE_EXCEEDED.value}) if by is EndedBy.DEADLINE else frozenset[str]()
    container = ContainerResult(128 + number, signal=number, reason="Error")
    return RunOutcome(containers=(container,), conditions=conditions, ended_by=by)
