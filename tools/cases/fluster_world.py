"""Fluster's jobs on the real controller, executors and engines, whose programs do what a case says, at its instants.

They come in, and are looked at and ended, by the calls of Fluster's door.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.api.fluster._generated import cluster
from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings, Ticked
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.record import evolve
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.engine import NodeInfo, Observation, RunOrder, RunPhase, StopReason
from holdfast.simulation import Agenda, Machine
from tools.cases.fluster_door import CasesDoor
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.domain.job import Job, Resources
    from holdfast.domain.policy.model import RetryDefaults
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

GRACE_S = 5.0
BEGINS_S = 0.5
_ROUNDS = 3
_OWN_SHARE = 0.75
"""Of the time after which a worker is lost: when its executor stops what it has, as nobody answers."""
LOST = RunOutcome(conditions=frozenset({FailureCondition.NODE_LOST}), ended_by=EndedBy.LOST, message="it stopped")
NEVER_STARTED = RunOutcome(
    conditions=frozenset({FailureCondition.LAUNCH_FAILED}), started=False, message="its bundle could not be fetched"
)
OOM = RunOutcome(
    (ContainerResult(137, signal=9, reason="OOMKilled"),), frozenset({FailureCondition.OOM_KILLED}), EndedBy.MEMORY
)


OVERDUE = RunOutcome(
    (ContainerResult(143, signal=15, reason="DeadlineExceeded"),),
    frozenset({FailureCondition.DEADLINE_EXCEEDED}),
    EndedBy.DEADLINE,
)


def exit_of(code: int, error: str = "") -> RunOutcome:
    """Return how a program ended with an exit code."""
    reason = "Error" if code else "Completed"
    return RunOutcome(containers=(ContainerResult(code, reason=reason, message=error),))


def killed_by(number: int) -> RunOutcome:
    """Return how a program ended that a signal ended."""
    return RunOutcome(containers=(ContainerResult(128 + number, signal=number, reason="Error"),))


class Worker(Machine):
    """A machine of one node whose programs run until they are told how they end."""

    def __init__(
        self, name: str, resources: Resources, clock: Agenda, plan: Callable[[RunOrder], SimulatedRun]
    ) -> None:
        """Begin with nothing running."""
        super().__init__(name, [NodeInfo(name, resources)], clock=clock, script=plan)
        self.stops: list[tuple[str, float, StopReason]] = []
        """What it was told to stop, and how."""

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        """Stop runs, and remember that."""
        self.stops += [each for each in stops if each not in self.stops]
        super().stop(stops)

    def end(self, uid: str, outcome: RunOutcome, now: float) -> None:
        """Let a program end."""
        began = self._engine.observe()[uid].started_at
        self._engine.stop([(uid, 0.0, StopReason.LOST)])
        self.look()
        ended = evolve(outcome, started_at=began if outcome.started else None, ended_at=now, node=self.name)
        seen = self._engine.observe()[uid]
        self._overruled[uid] = evolve(seen, phase=RunPhase.FINISHED, outcome=ended)
        self._changed()


class Wire:
    """An executor's way to the controller, which can be cut."""

    def __init__(self, world: FlusterWorld) -> None:
        """Begin whole."""
        self._world, self.cut, self.lost = world, False, 0
        self.also: dict[str, Observation] = {}
        """What it tells beside what it sees."""

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Run a tick with what an executor tells.

        Raises:
            Unavailable: It is cut.
        """
        if self.lost:
            self.lost -= 1
            raise Unavailable
        if self.cut:
            raise Unavailable
        if self.also:
            request = evolve(request, observed={**request.observed, **self.also})
        return self._world.controller.tick([request], look=True).responses[request.executor]

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""


class FlusterWorld:
    """Jobs, workers and time."""

    def __init__(self, workers: Mapping[str, Resources], *, timeout_s: float | None = None) -> None:
        """Begin half a second after the epoch, before what cases give times.

        Args:
            workers: What each has.
            timeout_s: Silence after which one is lost; ``None`` is never.
        """
        self.clock, self.store = Agenda(begins_at=BEGINS_S), MemoryStore()
        self._settings = ControllerSettings(executor_lease_s=timeout_s, sweep_every_s=0.0)
        self.controller = self._begun("cases")
        self.door = CasesDoor(self.store, self.clock)
        self.runs: list[RunOrder] = []
        """Every program that was started."""
        self._names: dict[str, str] = {}
        """By the ids of jobs."""
        self.looks = 0
        """How often everything was looked at."""
        self.prepare_s = 0.0
        self.term_delay_s = 0.0
        self.workers = {name: Worker(name, has, self.clock, self._plan) for name, has in workers.items()}
        self.wires = {name: Wire(self) for name in workers}
        own_s = None if timeout_s is None else timeout_s * _OWN_SHARE
        self._executors = {
            name: Executor(name, worker, self.wires[name], clock=self.clock, lease_s=own_s)
            for name, worker in self.workers.items()
        }
        self.settle()

    def _begun(self, epoch: str) -> Controller:
        return Controller(
            self.store,
            clock=self.clock,
            dice=_Dice(),
            load_spec=load_spec,
            controller_epoch=epoch,
            settings=self._settings,
        )

    def restart(self) -> None:
        """Have the controller end without a word, and another one begin with what is stored."""
        self.controller = self._begun(f"cases {self.looks}")
        self.settle()

    def _plan(self, order: RunOrder) -> SimulatedRun:
        self.runs.append(order)
        return SimulatedRun(duration_s=None, prepare_s=self.prepare_s, term_delay_s=self.term_delay_s)

    def submit(
        self,
        name: str,
        retry: Mapping[str, Any] | None = None,
        *,
        resources: Mapping[str, Any] | None = None,
        timeout_s: float | None = None,
    ) -> str:
        """Launch a job; returns its id.

        Raises:
            Refused: Something is wrong with it.
        """
        sent: dict[str, Any] = {}
        if retry is not None:
            sent["retry"] = cluster.RetryConfig(**retry)
        if resources is not None:
            sent["resources"] = cluster.ResourceSpec(**resources)
        if timeout_s is not None:
            sent["scheduling_timeout_seconds"] = round(timeout_s)
        job = self.door.launch(name, **sent)
        self._names[job] = name
        return job

    def default(self, defaults: RetryDefaults) -> None:
        """Set what the controller says of what a launch does not say."""
        catalogue = self.store.catalogue()
        self.store.put_settings(evolve(catalogue.settings, fluster=defaults), catalogue.default_policy)

    def only(self, worker: str) -> None:
        """Have new work placed on one worker alone."""
        for name in self.workers:
            if name == worker:
                self.store.delete_cordon(name)
            else:
                self.store.put_cordon(Cordon(name, self.clock.now()))

    def close(self) -> None:
        """Have nothing placed any more."""
        for name in self.workers:
            self.store.put_cordon(Cordon(name, self.clock.now()))

    def cordon(self, worker: str) -> None:
        """Have nothing placed on a worker any more."""
        self.store.put_cordon(Cordon(worker, self.clock.now()))

    def open(self) -> None:
        """Have work placed on any worker again."""
        for name in self.workers:
            self.store.delete_cordon(name)

    def settle(self) -> Ticked:
        """Look at everything until nothing moves."""
        self.looks += 1
        for _ in range(_ROUNDS):
            for executor in self._executors.values():
                executor.step()
            self.controller.tick(look=True)
        return self.controller.tick(look=True)

    def run_to(self, at: float, *, enough: Callable[[], bool] = lambda: False) -> bool:
        """Let time pass, from one thing that is due to the next; returns whether it was enough before."""
        while not enough():
            due = self.settle().next_due
            if enough():
                break
            now = self.clock.now()
            if now >= at:
                return False
            moments = [due, *(worker.next_change() for worker in self.workers.values())]
            self.clock.run_until(min([at, *(each for each in moments if each is not None and each > now)]))
        return True

    def started(self, job: str) -> list[RunOrder]:
        """List the programs of a job that were started."""
        return [order for order in self.runs if order.job_id == job]

    def end(self, job: str, outcome: RunOutcome, *, rank: int = 0) -> None:
        """End the program of a job that runs now."""
        uid = next(order.uid for order in reversed(self.started(job)) if order.rank == rank)
        worker = next(worker for worker in self.workers.values() if uid in worker.observe())
        worker.end(uid, outcome, self.clock.now())

    def report(self, worker: str, uid: str, outcome: RunOutcome) -> None:
        """Have a worker tell how a run ended, whether it is its own or not."""
        self.wires[worker].also[uid] = Observation(
            uid, RunPhase.FINISHED, outcome=evolve(outcome, ended_at=self.clock.now())
        )
        self.settle()

    def terminate(self, job: str) -> None:
        """Ask for a job's end."""
        self.door.terminate(self._names[job])

    def job(self, job: str) -> Job:
        """Read a job."""
        return self.store.job(job)

    def status(self, job: str) -> dict[str, Any]:
        """Read what Fluster's users see of a job, its states by their names."""
        return self.door.status(self._names[job])


class _Dice:
    """Always the same draw."""

    def draw(self) -> float:
        return 0.5
