"""Reports that are repeated, late, of nobody's run or of another's: with a real database, real engines and programs."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.app.time import SystemClock, SystemDice
from holdfast.compiled.codec import dump_spec, load_spec
from holdfast.controller.controller import Controller, ControllerSettings
from holdfast.domain.job import Job, JobState, Resources
from holdfast.domain.lifecycle import RunStatus
from holdfast.domain.record import evolve
from holdfast.executor.executor import Executor
from holdfast.ports.engine import NodeInfo, Observation, RunPhase
from holdfast.ports.exchange import ExchangeTransport
from holdfast.ports.requests import Request, RequestKind
from holdfast.ports.store import Submission
from holdfast.service.explain import Explainer
from holdfast.storage.sql import open_store
from tests.databases import migrated
from tests.unit.conftest import exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
    from holdfast.storage.sql.store import SqlStore
    from tests.integration.conftest import NewMachine

JOB = "job-1"
PROGRAM = 'test "$HOLDFAST_ATTEMPT" = 1 && exit 3; exec sleep 1000'
"""Of an attempt that fails, and then of one that goes on."""


class Network(ExchangeTransport):
    """Between executors and a controller; it has a copy of all that was sent, which it may deliver again."""

    def __init__(self, controller: Controller) -> None:
        """Lead to a controller."""
        self._controller = controller
        self._number = 0
        self.sent: list[ExchangeRequest] = []

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        """Deliver a report, numbered as what is delivered is."""
        self._number += 1
        numbered = evolve(request, sequence=self._number)
        self.sent.append(copied(numbered))
        return evolve(
            self._controller.tick([numbered], look=True).responses[request.executor], sequence=request.sequence
        )

    def again(self, request: ExchangeRequest) -> None:
        """Deliver a report as it was, as one that was held up."""
        self._controller.tick([copied(request)])

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""


def copied(request: ExchangeRequest) -> ExchangeRequest:
    """Return what comes out of a wire: equal, and another object."""
    return evolve(request, observed={uid: evolve(seen) for uid, seen in request.observed.items()})


class World:
    """A controller on a database, and two executors: the second has no room for the job."""

    def __init__(self, store: SqlStore, new_machine: NewMachine, folder: Path) -> None:
        self.store = store
        self.clock = SystemClock()
        settings = ControllerSettings(look_every_s=0.0)
        self.controller = Controller(
            store, clock=self.clock, dice=SystemDice(), load_spec=load_spec, controller_epoch="one", settings=settings
        )
        self.network = Network(self.controller)
        machines = {
            name: new_machine(folder / name, nodes=[NodeInfo(f"node-{name}", Resources(cpu, 1 << 30, 0))])
            for name, cpu in (("here", 4000), ("there", 0))
        }
        self.changed = machines["here"].changed
        self.executors = {
            name: Executor(name, machine.engine, self.network, clock=self.clock) for name, machine in machines.items()
        }
        self.observe = machines["here"].engine.observe

    def submit(self) -> None:
        spec = job_named("stubborn", retrying(5), resources=Resources(1000, 16 << 20, 0), grace_s=0.0)
        spec = evolve(spec, command=("/bin/sh", "-c", PROGRAM))
        now = self.clock.now()
        job = Job(JOB, spec.name, "default", 0, now, dump_spec(spec), queued_at=now, request=spec.resources)
        self.store.submit(Submission([job]))

    def until(self, condition: Callable[[], object]) -> None:
        """Have both exchange until it is so."""
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, self.told()
            self.changed.clear()
            self.step()
            self.changed.wait(0.02)

    def step(self) -> None:
        for executor in self.executors.values():
            assert executor.step()

    def runs(self, uid: str) -> bool:
        return (uid, RunStatus.RUNNING) in [(run.uid, run.status) for run in self.store.runs(JOB)]

    def told(self) -> Mapping[str, Any]:
        """All that anybody is told of the job."""
        return {
            "job": self.store.job(JOB),
            "attempts": [*self.store.attempts(JOB)],
            "runs": [*self.store.runs(JOB)],
            "events": [*self.store.events(limit=1000)],
            "why": Explainer(self.store).why(JOB),
            "kept aside": self.store.quarantined(),
        }


@pytest.fixture
def world(tmp_path: Path, new_machine: NewMachine) -> Iterator[World]:
    with closing(open_store(str(migrated(tmp_path / "holdfast.db")))) as store:
        yield World(store, new_machine, tmp_path)


def test_reports_that_are_late_repeated_unknown_or_of_anothers_run_change_nothing(world: World) -> None:
    world.submit()
    first, second = f"{JOB}-1-0-1", f"{JOB}-2-0-1"
    world.until(lambda: world.runs(second))
    assert len(world.store.events(limit=1000)) > 3
    before = world.told()
    earlier = [one for one in world.network.sent if first in one.observed]
    assert [one for one in earlier if one.observed[first].outcome is not None]
    latest = next(one for one in reversed(world.network.sent) if second in one.observed)
    there = next(one for one in reversed(world.network.sent) if one.executor == "there")
    over = Observation(first, RunPhase.FINISHED, outcome=exits(0).outcome)
    for late in earlier:  # late: overtaken by what came since
        world.network.again(late)
        assert world.told() == before
    for _ in range(2):  # repeated
        world.network.again(latest)
        assert world.told() == before
    for late in earlier:  # the end of the earlier attempt, told anew beside what runs
        world.network.exchange(evolve(late, observed={**late.observed, **latest.observed}))
        assert world.told() == before
    unknown = {uid: evolve(over, uid=uid) for uid in (first, f"{JOB}-9-0-1", f"{JOB}-2-0-2", "nobody-1-0-1")}
    world.network.exchange(evolve(latest, observed={**latest.observed, **unknown}))
    assert world.told() == before
    for strange in (
        evolve(over, uid=second),
        Observation(second, RunPhase.STOPPING, started_at=1.0),
        Observation(second, RunPhase.RUNNING, started_at=1.0, progress="99%", node="node-there"),
    ):
        answer = world.network.exchange(evolve(there, observed={second: strange}))
        assert world.told() == before
        assert second not in answer.desired, "it is not for that one to keep"
    world.step()
    assert world.told() == before
    assert world.observe()[second].phase is RunPhase.RUNNING, "nobody stopped it"


def test_whose_run_it_is_still_ends_it_once_after_all_that(world: World) -> None:
    world.submit()
    second = f"{JOB}-2-0-1"
    world.until(lambda: world.runs(second))
    world.store.append(Request(RequestKind.CANCEL, (JOB,), world.clock.now(), actor="ann"))
    world.until(lambda: world.store.job(JOB).terminal)
    before = world.told()
    assert before["job"].state is JobState.CANCELLED
    for one in [*world.network.sent]:
        world.network.again(one)
        if one.executor == "here":
            world.network.exchange(one)
        else:
            over = Observation(second, RunPhase.FINISHED, outcome=exits(0).outcome)
            world.network.exchange(evolve(one, observed={second: over}))
    assert world.told() == before
