"""Jobs that are lost with their place, again and again: who is kept away from others, and who is not."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.events.operators import NodeLost
from holdfast.domain.job import JobState, Resources
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.model import Action, Backoff, RetryPolicy, Rule
from holdfast.engines.simulated import SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo, RunPhase
from holdfast.ports.events import EventFilter
from holdfast.ports.requests import RequestKind
from holdfast.ports.store import JobFilter
from holdfast.service.explain import Explainer
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.ports.clock import SteadyClock

MACHINE = NodeInfo("n0", Resources(64_000, 64 << 30))
TICK_S = 0.25
FOREVER = SimulatedRun(duration_s=None)
EVERY_JOB = JobFilter()


class Off:
    """The clock of a machine, which somebody set wrongly."""

    def __init__(self, right: SteadyClock, by_s: float) -> None:
        self.steady = right.steady
        self.now = lambda: right.now() + by_s


class Stage:
    """One machine that a test may take down with all that runs on it."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.lab.use(MACHINE)
        self.losses = 0
        self.restarts_too = False

    def run(self, until: Callable[[], bool], takes_down: Callable[[], bool], *, within_s: float = 3600.0) -> None:
        """Let time pass; lose the machine whenever the test says so."""
        give_up = self.lab.clock.time + within_s
        while not until():
            assert self.lab.clock.time < give_up, self.states()
            self.lab.clock.time += TICK_S
            self.lab.step(2)
            if takes_down():
                self.lose()

    def lose(self) -> None:
        self.losses += 1
        self.lab.use(MACHINE)
        if self.restarts_too:
            self.lab.restart_controller()
        self.lab.step(2)

    def submit(self, count: int, lasts_s: float = 30.0) -> list[str]:
        return [self.lab.submit(job_named(f"good-{i}"), exits(0, after_s=lasts_s + i)) for i in range(count)]

    def running_for_s(self, job: str) -> float:
        """Return for how long a job's program has been running; -1 if it does not."""
        found = [
            self.lab.clock.time - (seen.started_at or self.lab.clock.time)
            for uid, seen in self.lab.engine.observe().items()
            if uid.startswith(job) and seen.phase is RunPhase.RUNNING
        ]
        return max(found, default=-1.0)

    def states(self) -> dict[str, str]:
        return {job.name: f"{job.state} {job.reason}" for job in self.lab.store.jobs(EVERY_JOB)}

    def are(self, jobs: Iterable[str], *states: JobState) -> bool:
        return all(self.lab.job(job).state in states for job in jobs)

    def lost(self) -> list[NodeLost]:
        found = self.lab.store.events(limit=1000, where=EventFilter(types=frozenset({"node.lost"})))
        return [each.event for each in found if isinstance(each.event, NodeLost)]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize("after_s", [0.0, 2.0, 20.0])
@pytest.mark.parametrize("restarts_too", [False, True], ids=["", "controller restarts each time"])
def test_a_job_that_takes_its_place_down_is_held_and_the_others_finish(
    stage: Stage, after_s: float, *, restarts_too: bool
) -> None:
    stage.restarts_too = restarts_too
    others = stage.submit(9, lasts_s=200.0)
    culprit = stage.lab.submit(job_named("culprit"), FOREVER)
    stage.run(
        lambda: stage.are(others, JobState.SUCCEEDED) and stage.are([culprit], JobState.HELD),
        lambda: stage.running_for_s(culprit) >= after_s,
    )
    held = stage.lab.job(culprit)
    last = stage.lab.attempts(culprit)[-1].decision
    assert last is not None
    assert (last.action, last.code, last.counter) == (Action.HOLD, DecisionCode.SUSPECTED, None)
    assert held.reason.startswith(f"was running at each of the last {stage.losses} losses of node n0, which")
    assert held.reason.endswith("release it if it is not to blame")
    assert 3 <= stage.losses <= 12


def test_nobody_else_is_suspected_once_the_culprit_is_found(stage: Stage) -> None:
    others = stage.submit(9, lasts_s=200.0)
    culprit = stage.lab.submit(job_named("culprit"), FOREVER)
    stage.run(lambda: stage.are([culprit], JobState.HELD), lambda: stage.running_for_s(culprit) >= 0.0)
    stage.run(lambda: stage.are(others, JobState.RUNNING), lambda: False, within_s=120.0)
    stage.lose()
    decisions = [stage.lab.attempts(job)[-1].decision for job in others]
    assert all(decision is not None and "was running" not in decision.reason for decision in decisions)


def test_a_loss_is_an_event_that_says_who_was_there(stage: Stage) -> None:
    jobs = stage.submit(3)
    stage.run(lambda: stage.are(jobs, JobState.RUNNING), lambda: False)
    stage.lab.pass_s(5)
    stage.lose()
    [lost] = stage.lost()
    assert (lost.executor, lost.nodes, lost.taken) == ("local", ("n0",), 3)
    assert sorted(job for job, _ in lost.jobs) == sorted(jobs)
    assert all(4 < ran_s <= lost.longest_s < 8 for _, ran_s in lost.jobs)


@pytest.mark.parametrize("off_s", [-300.0, 300.0])
def test_how_long_a_job_was_there_does_not_depend_on_the_clock_of_its_machine(stage: Stage, off_s: float) -> None:
    lab = stage.lab
    lab.engine = SimulatedEngine(Off(lab.clock, off_s), (MACHINE,), script=lambda _: FOREVER)
    lab.restart_executor()
    jobs = stage.submit(2)
    lab.pass_s(5)
    began = [run.started_at for job in jobs for run in lab.runs(job)]
    stage.lose()
    [lost] = stage.lost()
    assert began == [lab.clock.time - 5] * 2
    assert [ran_s for _, ran_s in lost.jobs] == [5.0] * 2


def test_a_job_alone_at_every_loss_harms_nobody_and_goes_on(stage: Stage) -> None:
    [job] = stage.submit(1)
    stage.run(lambda: stage.losses == 20, lambda: stage.running_for_s(job) >= 1.0)
    stage.run(lambda: stage.are([job], JobState.SUCCEEDED), lambda: False)
    assert all(
        attempt.decision is None or attempt.decision.code is DecisionCode.RETRY for attempt in stage.lab.attempts(job)
    )


def test_jobs_on_a_machine_that_goes_down_by_itself_finish_in_the_end(stage: Stage) -> None:
    dice = Random(7)  # noqa: S311 - not a secret
    jobs = stage.submit(12, lasts_s=20.0)
    stage.run(lambda: stage.are(jobs, JobState.SUCCEEDED, JobState.HELD), lambda: dice.random() < TICK_S / 25.0)
    assert stage.losses > 5
    assert stage.are(jobs, JobState.SUCCEEDED), stage.states()


def test_a_suspect_stays_away_and_the_reason_says_why(stage: Stage) -> None:
    jobs = stage.submit(4, lasts_s=60.0)
    stage.run(lambda: stage.losses == 3, lambda: min(map(stage.running_for_s, jobs)) >= 2.0)
    third = [stage.lab.attempts(job)[2] for job in jobs]
    told = Explainer(stage.lab.store).why(jobs[0], 3)
    for attempt in third:
        assert attempt.decision is not None
        assert attempt.decision.code is DecisionCode.RETRY
        assert (
            "was running at each of the last 3 losses of node n0, which took 3, 3 and 3 other jobs"
            in attempt.decision.reason
        )
        assert attempt.decision.delay_s >= 8.0
    assert len({attempt.retry_at for attempt in third}) == 4
    assert any("is kept away to see whether it happens again" in line for line in told.summary)


def test_a_rule_of_the_user_does_not_overrule_that_others_are_harmed(stage: Stage) -> None:
    at_once = Backoff(initial_s=0.0)
    lost = Rule(Action.RETRY, "lost", conditions=frozenset({"ExecutorLost"}), backoff=at_once)
    others = stage.submit(5, lasts_s=100.0)
    culprit = stage.lab.submit(job_named("culprit", RetryPolicy("mine", (lost,))), FOREVER)
    stage.run(
        lambda: stage.are(others, JobState.SUCCEEDED) and stage.are([culprit], JobState.HELD),
        lambda: stage.running_for_s(culprit) >= 0.0,
    )
    assert stage.losses <= 12


def test_a_job_whose_own_failures_are_many_is_no_suspect(stage: Stage) -> None:
    stage.submit(3, lasts_s=60.0)
    flaky = stage.lab.submit(job_named("flaky", retrying(99)), lambda order: exits(int(order.attempt < 9)))
    stage.run(lambda: stage.are([flaky], JobState.SUCCEEDED), lambda: False)
    assert stage.lost() == []


def test_a_released_suspect_is_retried(stage: Stage) -> None:
    others = stage.submit(5, lasts_s=150.0)
    culprit = stage.lab.submit(
        job_named("culprit"), lambda _: exits(0, after_s=5.0) if stage.are([*others], JobState.SUCCEEDED) else FOREVER
    )
    stage.run(
        lambda: stage.are(others, JobState.SUCCEEDED) and stage.are([culprit], JobState.HELD),
        lambda: stage.running_for_s(culprit) >= 0.0,
    )
    retries = stage.lab.job(culprit).retries
    stage.lab.ask(RequestKind.RELEASE, culprit)
    stage.run(lambda: stage.are([culprit], JobState.SUCCEEDED), lambda: False)
    assert stage.lab.job(culprit).retries == retries
