"""A whole Holdfast in virtual time: the real controller and executor, a simulated engine, one clock."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.controller import Controller, ControllerSettings, Ticked
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Attempt, Job, JobState, Resources, Run
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.engine import SIMULATED, SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.engine import NodeInfo, RunOrder
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from holdfast.domain.containers import Capability
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

Script = "Callable[[RunOrder], SimulatedRun]"
NOW = 1_000_000.0


class VirtualClock:
    """Time that moves only when told."""

    def __init__(self) -> None:
        self.time = NOW
        self.set_by = 0.0

    def now(self) -> float:
        return self.time + self.set_by

    def steady(self) -> float:
        return self.time


class LoadedDice:
    """Always the same draw."""

    def draw(self) -> float:
        return 0.5


class Direct:
    """An exchange is one tick; ``broken`` cuts the connection."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.broken = False

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        if self.broken:
            raise Unavailable
        ticked = self.lab.controller.tick([request])
        if request.executor not in ticked.responses:
            raise Unavailable
        return ticked.responses[request.executor]

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""


class Lab:
    """Submit, let time pass, look."""

    settings = ControllerSettings()

    def __init__(self, *, lease_s: float | None = 60.0) -> None:
        self.clock = VirtualClock()
        self.store = MemoryStore()
        self._memories = count(1)
        self.lease_s = lease_s
        self.plans: dict[str, Callable[[RunOrder], SimulatedRun]] = {}
        self.orders: list[RunOrder] = []
        self.controller = self._new_controller()
        self.transport = Direct(self)
        self.use(NodeInfo("n0", Resources(4000, 8 << 30, 0)))

    def use(self, *nodes: NodeInfo, also: Iterable[Capability] = ()) -> None:
        """Begin anew with an engine that has these nodes, and is also capable of something."""
        info = evolve(SIMULATED, capabilities=SIMULATED.capabilities | frozenset(also))
        self.engine = SimulatedEngine(self.clock, nodes, script=self._plan, info=info)
        self.executor = Executor("local", self.engine, self.transport, clock=self.clock, lease_s=self.lease_s)

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.orders.append(order)
        return self.plans[order.job_name](order)

    def _new_controller(self) -> Controller:
        settings = evolve(self.settings, executor_lease_s=self.lease_s)
        memory = f"memory {next(self._memories)}"
        return Controller(
            self.store,
            clock=self.clock,
            dice=LoadedDice(),
            load_spec=load_spec,
            controller_epoch=memory,
            settings=settings,
        )

    def restart_controller(self) -> None:
        """Forget everything in memory, as a crash does."""
        self.controller = self._new_controller()

    def restart_executor(self) -> None:
        """Begin a new life of the executor on the engine that is there."""
        self.executor = Executor("local", self.engine, self.transport, clock=self.clock, lease_s=self.lease_s)

    def submit(self, spec: JobSpec, plan: Callable[[RunOrder], SimulatedRun] | SimulatedRun | None = None) -> str:
        """Append a job whose runs do as planned (default: succeed at once)."""
        planned = plan if callable(plan) else (lambda _: plan or SimulatedRun())
        self.plans[spec.name] = planned
        job = Job(
            id=f"job-{len(self.plans):03}-{spec.name}",
            name=spec.name,
            queue=spec.queue,
            priority=spec.priority,
            submitted_at=self.clock.now(),
            spec=dump_spec(spec),
            request=spec.resources,
            gang=spec.gang,
            queued_at=self.clock.now(),
            kind=spec.kind,
        )
        self.store.submit(Submission([job]))
        return job.id

    def ask(self, kind: RequestKind, job: str, reason: str = "", payload: str = "") -> None:
        """Append a request."""
        self.store.append(Request(kind, (job,), self.clock.now(), actor="ann", reason=reason, payload=payload))

    def step(self, times: int = 1) -> None:
        """Exchange without letting time pass."""
        for _ in range(times):
            self.executor.step()

    def tick(self) -> Ticked:
        """Tick without the executor."""
        return self.controller.tick()

    def pass_s(self, seconds: float, *, every_s: float = 1.0) -> None:
        """Let time pass, exchanging as an executor would."""
        until = self.clock.time + seconds
        self.step(2)
        while self.clock.time < until:
            self.clock.time = min(until, self.clock.time + every_s)
            self.step(2)

    def job(self, job_id: str) -> Job:
        return self.store.job(job_id)

    def attempts(self, job_id: str) -> Sequence[Attempt]:
        return self.store.attempts(job_id)

    def runs(self, job_id: str) -> Sequence[Run]:
        return self.store.runs(job_id)

    def phases(self, job_id: str) -> list[tuple[str, str, str]]:
        """List (phase, outcome, to) of the history."""
        return [(row.phase, row.outcome.value, str(row.to_status)) for row in self.store.history(job_id)]


def exits(code: int, *, after_s: float = 1.0, signal: int | None = None) -> SimulatedRun:
    """Plan a run that ends by itself."""
    reason = "Completed" if code == 0 else "Error"
    container = ContainerResult(code, reason=reason, signal=signal)
    return SimulatedRun(duration_s=after_s, outcome=RunOutcome(containers=(container,)))


def ends_with(condition: FailureCondition, ended_by: EndedBy, *, started: bool = True) -> SimulatedRun:
    """Plan a run that the platform ends."""
    outcome = RunOutcome(
        containers=(ContainerResult(137, signal=9, reason=condition),) if started else (),
        conditions=frozenset({condition}),
        ended_by=ended_by,
        started=started,
        message="" if started else "no such file",
    )
    return SimulatedRun(duration_s=1.0, outcome=outcome)


def retrying(limit: int | None = 3, *, delay_s: float = 0.0, **rest: object) -> RetryPolicy:
    """Make a policy that retries everything."""
    values: Mapping[str, object] = {"rules": (), **rest}
    rules = values["rules"]
    assert isinstance(rules, tuple)
    return RetryPolicy(
        "inline", rules, retry_limit=limit, default_action=Action.RETRY, backoff=Backoff(initial_s=delay_s, max_s=None)
    )


def job_named(name: str, *policies: RetryPolicy, **fields: object) -> JobSpec:
    """Make a specification where only what matters is named."""
    return JobSpec(name=name, command=("true",), inline_policies=policies, **fields)  # type: ignore[arg-type] # tests name fields freely


@pytest.fixture
def lab() -> Lab:
    return Lab()


@pytest.fixture
def make_lab() -> type[Lab]:
    return Lab


__all__ = ["Action", "JobState", "Lab", "Rule", "ends_with", "exits", "job_named", "retrying"]
