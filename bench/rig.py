"""The real controller, executor and SQLite store over a simulated engine; its clock moves only when told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.app.embedded import loading_records
from holdfast.app.time import SortableIds, SystemDice
from holdfast.compiled.codec import load_spec
from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.domain.job import Resources
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.executor.executor import Executor
from holdfast.ports.engine import NodeInfo
from holdfast.service.jobsets.sets import SetWriter
from holdfast.service.submit import Submitter
from holdfast.storage.sql import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import RunOrder
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

MOST_AT_ONCE = 10_000


class RigClock:
    """Simulated time."""

    def __init__(self) -> None:
        """Start somewhere."""
        self.time = 1_000_000.0

    def now(self) -> float:
        """Return the time."""
        return self.time

    def steady(self) -> float:
        """Return the time; nobody sets it."""
        return self.time


class Rig:
    """One controller and one executor, joined without threads."""

    def __init__(
        self, folder: Path, *, nodes: int, cpu_m: int, script: Callable[[RunOrder], SimulatedRun] | None = None
    ) -> None:
        """Open a store in ``folder`` and an engine with equal nodes; ``load`` begins."""
        self.clock = RigClock()
        self.store = open_store(folder / "bench.db")
        places = [NodeInfo(f"n{i:05}", Resources(cpu_m, 1 << 40)) for i in range(nodes)]
        self.engine = SimulatedEngine(self.clock, places, script=script or (lambda _: SimulatedRun()))
        self.executor = Executor("local", self.engine, self, clock=self.clock)
        self.controller: Controller | None = None

    def load(self) -> Controller:
        """Start the controller on what the store holds."""
        settings = ControllerSettings(executor_lease_s=None)
        with loading_records():
            self.controller = Controller(
                self.store,
                clock=self.clock,
                dice=SystemDice(),
                load_spec=load_spec,
                controller_epoch=SortableIds().new(),
                settings=settings,
            )
        return self.controller

    def load_once(self) -> Controller:
        """Return the controller, started when it is not yet."""
        return self.controller or self.load()

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Be the transport: an exchange is one tick."""
        return self.load_once().tick([request]).responses[request.executor]

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""

    def submit(self, spec: JobSpec, count: int) -> None:
        """Append ``count`` equal jobs."""
        submitter = Submitter(self.store, self.clock, SortableIds())
        for start in range(0, count, MOST_AT_ONCE):
            submitter.submit_many([spec] * min(MOST_AT_ONCE, count - start))

    def submit_set(self, manifest: Mapping[str, object]) -> None:
        """Append a job set with all of its jobs."""
        SetWriter(self.store, self.clock, SortableIds()).create(manifest)

    def step(self, seconds: float = 0.0) -> None:
        """Let time pass and exchange once."""
        self.clock.time += seconds
        self.executor.step()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()
