"""Worlds in virtual time: real controller and executors, on machines that get lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.failure import ContainerResult, RunOutcome
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.builtin import INFRASTRUCTURE
from holdfast.domain.policy.model import Action, Backoff, JitterMode, RetryPolicy
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.service.submit import Submitter
from holdfast.simulation import World
from holdfast.simulation.agenda import BEGINNING
from tools.memory_store import MemoryStore

if TYPE_CHECKING:
    from holdfast.domain.job import Attempt
    from holdfast.ports.engine import RunOrder

HOUR_S = 3600.0
MINUTE_S = 60.0
MACHINES = {name: [NodeInfo(f"{name}n0", Resources(4000))] for name in ("e0", "e1")}
RETRY = RetryPolicy(
    "inline", default_action=Action.RETRY, retry_limit=3, backoff=Backoff(10.0, jitter=JitterMode.RANDOM)
)


class Numbered:
    """Ids that count."""

    def __init__(self) -> None:
        self.last = 0

    def new(self) -> str:
        self.last += 1
        return f"{self.last:026}"


class Stage:
    """A world with jobs that take ten minutes each."""

    def __init__(self, jobs: int = 1, *, seed: int = 0) -> None:
        self.store = MemoryStore()
        self.world = World(self.store, MACHINES, script=self.script, seed=seed)
        submitter = Submitter(self.store, self.world.agenda, Numbered())
        spec = JobSpec(name="job", command=("work",), resources=Resources(1000), inline_policies=(RETRY,))
        self.jobs = [submitter.submit(spec).id for _ in range(jobs)]

    def script(self, order: RunOrder) -> SimulatedRun:
        if order.attempt == 1 and order.job_id.endswith("3"):
            return SimulatedRun(duration_s=30.0, outcome=RunOutcome(containers=(ContainerResult(7),)))
        return SimulatedRun(duration_s=10 * MINUTE_S)

    def over(self) -> bool:
        return all(job.state in {JobState.SUCCEEDED, JobState.FAILED} for job in self.store.jobs_by_id(self.jobs))

    def states(self) -> list[JobState]:
        return [job.state for job in self.store.jobs_by_id(self.jobs)]

    def attempts(self) -> list[list[Attempt]]:
        return [list(self.store.attempts(job_id)) for job_id in self.jobs]


def test_a_world_ends_as_soon_as_it_is_told_that_it_is_enough() -> None:
    stage = Stage(jobs=4)
    stage.world.run(HOUR_S, enough=stage.over)
    assert stage.states() == [JobState.SUCCEEDED] * 4
    assert [len(attempts) for attempts in stage.attempts()] == [1, 1, 2, 1]
    assert 10 * MINUTE_S < stage.world.agenda.elapsed < 12 * MINUTE_S


def test_jobs_of_a_lost_machine_are_started_elsewhere() -> None:
    stage = Stage()
    stage.world.lose_machine("e0", after_s=MINUTE_S, for_s=HOUR_S)
    stage.world.lose_machine("e1", after_s=5 * MINUTE_S, for_s=MINUTE_S)
    stage.world.run(HOUR_S, enough=stage.over)
    assert stage.states() == [JobState.SUCCEEDED]
    executors = [run.executor for run in sorted(stage.store.runs(stage.jobs[0]), key=lambda run: run.attempt)]
    assert executors in (["e0", "e1", "e1"], ["e1", "e1"])
    assert stage.world.trace.faults == {"machine lost": 2}
    assert any("machine lost: e1, 1 runs" in line for line in stage.world.trace.last())


def test_a_lost_node_takes_nothing_new_until_it_is_back() -> None:
    stage = Stage()
    for name in MACHINES:
        stage.world.lose_node(name, f"{name}n0", after_s=MINUTE_S, for_s=20 * MINUTE_S)
    stage.world.run(HOUR_S, enough=stage.over)
    [first, second] = stage.attempts()[0]
    assert stage.states() == [JobState.SUCCEEDED]
    assert first.decision is not None
    assert first.decision.policy == INFRASTRUCTURE.name
    assert second.started_at is not None
    assert second.started_at - BEGINNING >= 21 * MINUTE_S


def test_equal_seeds_give_equal_worlds_and_others_do_not() -> None:
    def ends(seed: int) -> list[float | None]:
        stage = Stage(jobs=6, seed=seed)
        stage.world.lose_machine("e1", after_s=MINUTE_S, for_s=MINUTE_S)
        stage.world.run(HOUR_S, enough=stage.over)
        return [attempt.ended_at for attempts in stage.attempts() for attempt in attempts]

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)
