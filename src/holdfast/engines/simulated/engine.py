"""An engine whose runs follow a script and a clock; it starts no processes, never blocks and never calls back.

Time passes only when ``observe`` or ``advance`` reads the clock: equal scripts and equal clocks give equal
observations.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING

from holdfast.domain.containers import Capability, EngineInfo, Role
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.ports.engine import NodeInfo, Observation, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.ports.clock import Clock
    from holdfast.ports.engine import RunOrder

SIMULATED = EngineInfo("simulated", frozenset(Capability) - {Capability.PREPARING, Capability.PLACEMENT})
"""What it does unless told otherwise; it can do everything."""
_SUCCESS = RunOutcome(containers=(ContainerResult(0, reason="Completed"),))
_SIGTERM, _SIGKILL = 15, 9


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """What one run will do."""

    start_delay_s: float = 0.0
    """From being prepared and told to start until its first program starts."""
    duration_s: float | None = 0.0
    """Of its main containers; ``None`` never ends by itself."""
    outcome: RunOutcome = _SUCCESS
    """How it ends by itself; times and place are filled in. ``started=False`` never starts and ends after the delay."""
    term_delay_s: float = 0.0
    """From SIGTERM to its end; longer than the grace means that it has to be killed."""
    progress: str = ""
    """What it reports once it runs."""
    prepare_s: float = 0.0
    """How long it is prepared before its images are pulled."""
    pull_s: float = 0.0
    pull_fails: bool = False
    init_s: float = 0.0
    """How long each of its init containers runs."""
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    """Of init containers and of further main ones, by name, where not 0."""
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The last lines of each container's log, by its name."""
    ready_after_s: float = 0.0
    """From the start of its main containers until they serve."""
    address: str = ""
    nodes: tuple[str, ...] = ("",)
    """Where it may land, if the engine places runs itself: on the first, but for the one its order avoids."""


@dataclass(slots=True)
class _Life:
    """One run and the instants of its life, as planned now."""

    order: RunOrder
    plan: SimulatedRun
    pulls_at: float
    prepared_at: float
    places_itself: bool = False
    starts_at: float = inf
    """When its first program starts."""
    mains_at: float = inf
    """When its main containers start."""
    own_end: float = inf
    """When it ends if nobody ends it."""
    ends_at: float = inf
    grace_s: float = 0.0
    """Of the stop that counts; the order's, if only the deadline stops it."""
    stopped: StopReason | None = None
    seen: Observation = field(init=False)

    def __post_init__(self) -> None:
        self.grace_s = self.order.grace_s
        if self.plan.pull_fails:
            self.ends_at = self.prepared_at
        self.seen = Observation(self.order.uid, RunPhase.PREPARING)

    @property
    def told(self) -> bool:
        """Whether it was told to start."""
        return self.starts_at < inf

    def start(self, now: float) -> None:
        """Plan its start as soon as it is prepared."""
        plan, order = self.plan, self.order
        self.starts_at = max(now, self.prepared_at) + plan.start_delay_s
        if plan.pull_fails:
            return
        inits = [one.name for one in order.containers if one.role is Role.INIT]
        failed = next((place for place, name in enumerate(inits) if plan.exit_codes.get(name)), None)
        if not plan.outcome.started:
            self.ends_at = self.starts_at
        elif failed is not None:
            self.ends_at = self.starts_at + plan.init_s * (failed + 1)
        else:
            self.mains_at = self.starts_at + plan.init_s * len(inits)
            self.ends_at = self.mains_at + (inf if plan.duration_s is None else plan.duration_s)
        self.own_end = self.ends_at
        if order.deadline_s is not None and plan.outcome.started:
            forced = order.deadline_s + min(plan.term_delay_s, order.grace_s)
            self.ends_at = min(self.ends_at, self.starts_at + forced)

    def next_at(self, now: float) -> float:
        """Return when something happens to it next by itself."""
        instants = (self.pulls_at, self.prepared_at, self.starts_at, self.mains_at, self.ready_at, self.ends_at)
        return min((at for at in instants if at > now), default=inf)

    @property
    def ready_at(self) -> float:
        """When it begins to serve."""
        return self.mains_at + self.plan.ready_after_s

    def is_past_deadline(self, now: float) -> bool:
        """Whether its deadline has passed."""
        return self.order.deadline_s is not None and now >= self.starts_at + self.order.deadline_s

    @property
    def landed(self) -> str:
        """The node the engine chose; the one to be avoided where there is no other."""
        nodes = self.plan.nodes if self.places_itself else ("",)
        return next((node for node in nodes if node != self.order.avoid_node), nodes[0])

    def look(self, now: float) -> Observation:
        """Say how it is at ``now``."""
        if now >= self.ends_at:
            return _finished(self)
        phase, runs = self._phase(now), now >= self.mains_at
        ready = phase is RunPhase.RUNNING and now >= self.ready_at
        if self.seen.phase is phase and self.seen.ready is ready:
            return self.seen
        return Observation(
            self.order.uid,
            phase,
            self.starts_at if now >= self.starts_at else None,
            progress=self.plan.progress if runs else "",
            node=self.landed if now >= self.starts_at else "",
            ready=ready,
            addresses=(self.plan.address,) if self.plan.address and runs else (),
            ports=_ports(self.order) if runs else {},
        )

    def _phase(self, now: float) -> RunPhase:
        if now < self.prepared_at:
            return RunPhase.PULLING if now >= self.pulls_at else RunPhase.PREPARING
        if now < self.starts_at:
            return RunPhase.STARTING if self.told else RunPhase.PREPARED
        if self.stopped is not None or self.is_past_deadline(now):
            return RunPhase.STOPPING
        return RunPhase.RUNNING if now >= self.mains_at else RunPhase.STARTING


class SimulatedEngine:
    """An engine in memory; its state is what its script and the clock make of its orders."""

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
            script: Says for each order what will become of it; called once per order.
            info: What it says of itself, and is capable of.
        """
        self._clock = clock
        self._nodes = tuple(nodes)
        self._script = script
        self._info = info
        self._lives: dict[str, _Life] = {}
        self._unfinished: dict[str, _Life] = {}
        self._agenda: list[tuple[float, str]] = []
        """When to look at a run, so that the many that only run cost nothing."""
        self._snapshot: Mapping[str, Observation] = MappingProxyType({})
        self._stale = False
        self._wakes: list[Callable[[], None]] = []

    def info(self) -> EngineInfo:
        """Say what it is capable of."""
        return self._info

    def nodes(self) -> Sequence[NodeInfo]:
        """List the places and their whole capacity."""
        return self._nodes

    def prepare(self, orders: Sequence[RunOrder]) -> None:
        """Begin to prepare runs; known uids are ignored."""
        for order in orders:
            if order.uid not in self._lives:
                self._begin(order)
        self.advance()

    def start(self, orders: Sequence[RunOrder]) -> None:
        """Begin to start runs, prepared or not; those already told are ignored."""
        now = self._clock.now()
        for order in orders:
            life = self._unfinished.get(order.uid)
            if order.uid not in self._lives:
                life = self._begin(order)
            if life is not None and not life.told:
                life.start(now)
                if now < min(life.starts_at, life.ends_at):
                    life.seen = life.look(now)
                heapq.heappush(self._agenda, (now, order.uid))
                self._stale = True
        self.advance()

    def _begin(self, order: RunOrder) -> _Life:
        now, plan = self._clock.now(), self._script(order)
        pulls_at = now + plan.prepare_s
        places_itself = Capability.PLACEMENT in self._info.capabilities
        life = _Life(order, plan, pulls_at, pulls_at + plan.pull_s, places_itself)
        life.seen = life.look(now)
        self._lives[order.uid] = self._unfinished[order.uid] = life
        heapq.heappush(self._agenda, (now, order.uid))
        self._stale = True
        return life

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
            if life is not None:
                seen = life.look(now)
                changed = changed or seen is not life.seen
                life.seen = seen
                self._plan_next(life, now)
        if changed:
            self._stale = True
            for wake in self._wakes:
                wake()

    def _plan_next(self, life: _Life, now: float) -> None:
        uid = life.order.uid
        if life.seen.phase is RunPhase.FINISHED:
            del self._unfinished[uid]
            return
        due = life.next_at(now)
        if life.seen.phase is RunPhase.RUNNING and life.order.deadline_s is not None:
            due = min(due, life.starts_at + life.order.deadline_s)
        heapq.heappush(self._agenda, (due, uid))

    def next_change(self) -> float | None:
        """Return when something happens next to a run by itself, so that a virtual clock can jump there."""
        now = self._clock.now()
        due = min((life.next_at(now) for life in self._unfinished.values()), default=inf)
        return None if due == inf else due


def _ports(order: RunOrder) -> Mapping[str, int]:
    ports = [port for one in order.containers if one.role is not Role.INIT for port in one.ports]
    return {port.name or str(port.number): port.number for port in ports}


def _finished(life: _Life) -> Observation:
    never = life.ends_at < life.starts_at or not life.plan.outcome.started or life.plan.pull_fails
    outcome = replace(
        _stopped_outcome(life) or _own_outcome(life),
        started=not never,
        started_at=None if never else life.starts_at,
        ended_at=life.ends_at,
        node=("" if never else life.landed) or life.order.node or None,
        progress="" if never else life.plan.progress,
    )
    return Observation(life.order.uid, RunPhase.FINISHED, outcome.started_at, outcome, outcome.progress)


def _own_outcome(life: _Life) -> RunOutcome:
    """Return the outcome of a run that ended by itself, with a result for each container that ended."""
    plan = life.plan
    if plan.pull_fails:
        return RunOutcome(
            conditions=frozenset({FailureCondition.IMAGE_PULL_FAILED}), message="its image cannot be pulled"
        )
    if not plan.outcome.started or (len(life.order.containers) == 1 and not plan.logs):
        return plan.outcome
    return replace(plan.outcome, containers=tuple(_results(life)))


def _results(life: _Life) -> Iterator[ContainerResult]:
    plan, first = life.plan, life.order.main
    for one in life.order.containers:
        code, init = plan.exit_codes.get(one.name, 0), one.role is Role.INIT
        if one is first:
            for result in plan.outcome.containers:
                yield replace(result, name=one.name, log_tail=plan.logs.get(one.name, ()))
        elif one.role is not Role.SIDECAR:
            reason, tail = "Error" if code else "Completed", plan.logs.get(one.name, ())
            yield ContainerResult(code, one.name, reason=reason, init=init, log_tail=tail)
        if init and code:
            return


def _stopped_outcome(life: _Life) -> RunOutcome | None:
    """Return the outcome of a run that did not end by itself."""
    past_deadline = life.is_past_deadline(life.ends_at)
    if life.stopped is None and (not past_deadline or not life.plan.outcome.started):
        return None
    if life.ends_at < life.starts_at:
        return RunOutcome(
            ended_by=EndedBy((life.stopped or StopReason.USER).value), message="stopped before it started"
        )
    if life.stopped is None and life.own_end <= life.starts_at + (life.order.deadline_s or 0.0):
        return None
    by = EndedBy.DEADLINE if life.stopped is None else EndedBy(life.stopped.value)
    grace_over = life.plan.term_delay_s > life.grace_s
    number = _SIGKILL if grace_over else _SIGTERM
    conditions = frozenset({FailureCondition.DEADLINE_EXCEEDED.value}) if by is EndedBy.DEADLINE else frozenset[str]()
    container = ContainerResult(128 + number, life.order.main.name, number, "Error")
    return RunOutcome(containers=(container,), conditions=conditions, ended_by=by)
