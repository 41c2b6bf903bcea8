"""The life of one simulated run: what its script, its order and time make of it, to the instant."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from holdfast.domain.containers import ContainerRole
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.record import Struct, evolve, field
from holdfast.ports.engine import LEADING, Observation, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.ports.engine import RunOrder

_SUCCESS = RunOutcome(containers=(ContainerResult(0, reason="Completed"),))
_SIGTERM, _SIGKILL = 15, 9
_WARNED = LEADING | {StopReason.DEADLINE}
_CONDITION_OF = {EndedBy.DEADLINE: FailureCondition.DEADLINE_EXCEEDED, EndedBy.STALL: FailureCondition.STALLED}


class SimulatedRun(Struct, frozen=True):
    """The fate of one run."""

    start_delay_s: float = 0.0
    """Seconds from the start order, once prepared, to the start of its first program."""
    duration_s: float | None = 0.0
    """Seconds that its main containers run; ``None`` if they never end by themselves."""
    outcome: RunOutcome = _SUCCESS
    """How it ends by itself; times and place are filled in. With ``started=False`` it ends after the delay without a
    start."""
    term_delay_s: float = 0.0
    """Seconds from SIGTERM to its end; if longer than the grace period, it has to be killed."""
    progress: str = ""
    """Its progress report once it runs."""
    silent_after_s: float | None = None
    """Seconds from the start of its main containers until it falls silent for good; ``None`` if it never does."""
    saves_s: float | None = None
    """Seconds from its warning until it has saved and exits with its order's code for that; ``None``: it ignores
    warnings."""
    prepare_s: float = 0.0
    """Seconds of preparation before its images are pulled."""
    pull_s: float = 0.0
    pull_fails: bool = False
    init_s: float = 0.0
    """Seconds that each of its init containers runs."""
    exit_codes: Mapping[str, int] = field(default_factory=dict)
    """Exit codes other than 0 of init containers and further main ones, by name."""
    logs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The last lines of each container's log, by name."""
    ready_after_s: float = 0.0
    """Seconds from the start of its main containers until they serve."""
    address: str = ""
    nodes: tuple[str, ...] = ("",)
    """Where it may land if the engine places runs itself: on the first node, unless its order avoids that."""


class Life(Struct, gc=True):
    """One run and the moments of its life as planned now."""

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
    """When it ends unless somebody ends it."""
    ends_at: float = inf
    forced_at: float = inf
    """When its deadline is over or it has been silent for too long: then its engine stops it."""
    forced_by: EndedBy = EndedBy.DEADLINE
    forced_words: str = ""
    """The message about that."""
    warned_at: float = inf
    """When it gets the warning that its order asks for."""
    saved_at: float = inf
    """When it ends by itself because of the warning."""
    grace_s: float = 0.0
    """The reason of the stop that counts; the order's if only its engine stops it."""
    stopped: StopReason | None = None
    seen: Observation = Observation("", RunPhase.PREPARING)

    def __post_init__(self) -> None:
        """Plan its preparation."""
        self.grace_s = self.order.grace_s
        if self.plan.pull_fails:
            self.ends_at = self.prepared_at
        self.seen = Observation(self.order.uid, RunPhase.PREPARING)

    @property
    def is_ordered(self) -> bool:
        """Whether it was told to start."""
        return self.starts_at < inf

    def start(self, now: float) -> None:
        """Plan its start for when it is prepared."""
        plan, order = self.plan, self.order
        self.starts_at = max(now, self.prepared_at) + plan.start_delay_s
        if plan.pull_fails:
            return
        inits = [container.name for container in order.containers if container.role is ContainerRole.INIT]
        failed = next((place for place, name in enumerate(inits) if plan.exit_codes.get(name)), None)
        if not plan.outcome.started:
            self.ends_at = self.starts_at
        elif failed is not None:
            self.ends_at = self.starts_at + plan.init_s * (failed + 1)
        else:
            self.mains_at = self.starts_at + plan.init_s * len(inits)
            self.ends_at = self.mains_at + (inf if plan.duration_s is None else plan.duration_s)
        self.own_end = self.ends_at
        self._plan_forced_end()

    def _plan_forced_end(self) -> None:
        plan, order = self.plan, self.order
        if not plan.outcome.started:
            return
        if order.deadline_s is not None:
            self.forced_at = self.starts_at + order.deadline_s
        if order.stall is not None and plan.silent_after_s is not None:
            limit_s, words = min(order.stall.in_words().values())
            stalls_at = self.mains_at + plan.silent_after_s + limit_s
            if stalls_at < self.forced_at:
                self.forced_at, self.forced_by, self.forced_words = stalls_at, EndedBy.STALL, words
        self.ends_at = min(self.ends_at, self.forced_at + min(plan.term_delay_s, order.grace_s))
        if order.warning is not None and order.deadline_s is not None:
            self.warn(max(self.mains_at, self.starts_at + order.deadline_s - order.warning.before_s))

    def warn(self, at: float) -> None:
        """Plan its warning, unless there is an earlier one."""
        if self.plan.outcome.started and at < self.warned_at:
            self.warned_at = at
            if self.plan.saves_s is not None and self.order.checkpointed_exit_code is not None:
                self.saved_at = at + self.plan.saves_s
                self.ends_at = min(self.ends_at, self.saved_at)

    def stop(self, now: float, grace_s: float, reason: StopReason) -> None:
        """Stop it: the first reason and the earliest end count; some reasons leave the time that it asked for."""
        self.stopped = self.stopped or reason
        lead_s = 0.0
        if self.order.warning is not None and now >= self.mains_at and reason in _WARNED:
            self.warn(now)
            lead_s = max(0.0, self.warned_at + self.order.warning.before_s - now) if reason in LEADING else 0.0
        delay = 0.0 if now < self.starts_at else lead_s + min(self.plan.term_delay_s, grace_s)
        if now + delay < self.ends_at:
            self.ends_at, self.grace_s = now + delay, grace_s

    def next_at(self, now: float) -> float:
        """Return when it next changes by itself."""
        instants = (self.pulls_at, self.prepared_at, self.starts_at, self.mains_at, self.ready_at, self.ends_at)
        return min((at for at in instants if at > now), default=inf)

    @property
    def ready_at(self) -> float:
        """When it begins to serve."""
        return self.mains_at + self.plan.ready_after_s

    @property
    def landed(self) -> str:
        """The node that the engine chose: the one to avoid only if there is no other."""
        nodes = [node for node in self.plan.nodes if node not in self.order.avoid_nodes] if self.places_itself else []
        nodes = nodes or [""]
        return next((node for node in nodes if node != self.order.avoid_node), nodes[0])

    def look(self, now: float) -> Observation:
        """Return its state at ``now``."""
        if now >= self.ends_at:
            return finished(self)
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
        )

    def _phase(self, now: float) -> RunPhase:
        if now < self.prepared_at:
            return RunPhase.PULLING if now >= self.pulls_at else RunPhase.PREPARING
        if now < self.starts_at:
            return RunPhase.STARTING if self.is_ordered else RunPhase.PREPARED
        if self.stopped is not None or now >= self.forced_at:
            return RunPhase.STOPPING
        return RunPhase.RUNNING if now >= self.mains_at else RunPhase.STARTING


def finished(life: Life) -> Observation:
    """Return its end."""
    never = life.ends_at < life.starts_at or not life.plan.outcome.started or life.plan.pull_fails
    outcome = evolve(
        _saved_outcome(life) or _stopped_outcome(life) or _own_outcome(life),
        started=not never,
        started_at=None if never else life.starts_at,
        ended_at=life.ends_at,
        warned_at=life.warned_at if life.warned_at <= life.ends_at and not never else None,
        node=("" if never else life.landed) or life.order.node or None,
        progress="" if never else life.plan.progress,
    )
    return Observation(life.order.uid, RunPhase.FINISHED, outcome.started_at, outcome, outcome.progress)


def _saved_outcome(life: Life) -> RunOutcome | None:
    """Return the outcome of a run that saved its state when it was warned."""
    if life.ends_at < life.saved_at:
        return None
    container = ContainerResult(life.order.checkpointed_exit_code, life.order.main.name, reason="Error")
    ended_by = EndedBy.ITSELF if life.stopped is None else EndedBy(life.stopped.value)
    return RunOutcome(containers=(container,), ended_by=ended_by)


def _own_outcome(life: Life) -> RunOutcome:
    """Return the outcome of a run that ended by itself, with a result for each ended container."""
    plan = life.plan
    if plan.pull_fails:
        return RunOutcome(
            conditions=frozenset({FailureCondition.IMAGE_PULL_FAILED}), message="its image cannot be pulled"
        )
    if not plan.outcome.started or (len(life.order.containers) == 1 and not plan.logs):
        return plan.outcome
    return evolve(plan.outcome, containers=tuple(_results(life)))


def _results(life: Life) -> Iterator[ContainerResult]:
    plan, first = life.plan, life.order.main
    for container in life.order.containers:
        code, init = plan.exit_codes.get(container.name, 0), container.role is ContainerRole.INIT
        if container is first:
            for result in plan.outcome.containers:
                yield evolve(result, name=container.name, log_tail=plan.logs.get(container.name, ()))
        elif container.role is not ContainerRole.SIDECAR:
            reason, tail = "Error" if code else "Completed", plan.logs.get(container.name, ())
            yield ContainerResult(code, container.name, reason=reason, init=init, log_tail=tail)
        if init and code:
            return


def _stopped_outcome(life: Life) -> RunOutcome | None:
    """Return the outcome of a run that did not end by itself."""
    if life.stopped is None and life.ends_at < life.forced_at:
        return None
    if life.ends_at < life.starts_at:
        return RunOutcome(
            ended_by=EndedBy((life.stopped or StopReason.USER).value), message="stopped before it started"
        )
    if life.stopped is None and life.own_end <= life.forced_at:
        return None
    ended_by = life.forced_by if life.stopped is None else EndedBy(life.stopped.value)
    grace_over = life.plan.term_delay_s > life.grace_s
    number = _SIGKILL if grace_over else _SIGTERM
    conditions = frozenset({_CONDITION_OF[ended_by].value}) if ended_by in _CONDITION_OF else frozenset[str]()
    container = ContainerResult(128 + number, life.order.main.name, number, "Error")
    words = life.forced_words if ended_by is EndedBy.STALL else ""
    return RunOutcome(
        containers=(container,), conditions=conditions, ended_by=ended_by, message=words, log=life.plan.outcome.log
    )
