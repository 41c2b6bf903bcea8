"""What a simulated run does beyond what every engine promises: it keeps to its script, to the instant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from holdfast.domain.failure import EndedBy, RunOutcome
from holdfast.engines.simulated import SimulatedEngine, SimulatedRun
from holdfast.ports.engine import Container, Observation, RunOrder, RunPhase, StopReason

MAIN = (Container(command=("x",)),)
ORDER = RunOrder("u", "j", "n", attempt=1, rank=0, size=1, containers=MAIN, node="here", grace_s=5.0)


@dataclass
class VirtualClock:
    instant: float = 100.0

    def now(self) -> float:
        return self.instant


@dataclass
class World:
    clock: VirtualClock
    engine: SimulatedEngine

    def at(self, instant: float) -> Observation:
        self.clock.instant = instant
        return self.engine.observe()["u"]

    def outcome(self, instant: float) -> RunOutcome:
        outcome = self.at(instant).outcome
        assert outcome is not None
        return outcome


def world(run: SimulatedRun, order: RunOrder = ORDER) -> World:
    clock = VirtualClock()
    engine = SimulatedEngine(clock, (), script=lambda _: run)
    engine.start([order])
    return World(clock, engine)


def test_a_run_keeps_to_its_script() -> None:
    here = world(SimulatedRun(start_delay_s=2.0, duration_s=3.0, progress="half"))
    assert here.at(101.9).phase is RunPhase.STARTING
    assert here.at(102.0) == Observation("u", RunPhase.RUNNING, 102.0, progress="half", ready=True)
    assert here.at(104.9).phase is RunPhase.RUNNING
    outcome = here.outcome(200.0)
    assert (outcome.started_at, outcome.ended_at, outcome.node) == (102.0, 105.0, "here")
    assert outcome.succeeded


def test_the_next_change_is_where_a_clock_can_jump_to() -> None:
    here = world(SimulatedRun(start_delay_s=2.0, duration_s=3.0))
    assert here.engine.next_change() == 102.0
    here.at(102.0)
    assert here.engine.next_change() == 105.0
    here.at(105.0)
    assert here.engine.next_change() is None


@pytest.mark.parametrize(
    ("term_delay_s", "grace_s", "ends_at", "number"),
    [(0.0, 5.0, 110.0, 15), (2.0, 5.0, 112.0, 15), (9.0, 3.0, 113.0, 9)],
)
def test_a_stopped_run_takes_its_time_and_no_more_than_its_grace(
    term_delay_s: float, grace_s: float, ends_at: float, number: int
) -> None:
    here = world(SimulatedRun(duration_s=None, term_delay_s=term_delay_s))
    here.at(110.0)
    here.engine.stop([("u", grace_s, StopReason.CASCADE)])
    outcome = here.outcome(ends_at)
    assert (outcome.ended_at, outcome.ended_by, outcome.containers[0].signal) == (ends_at, EndedBy.CASCADE, number)


def test_a_run_stopped_before_its_start_never_started() -> None:
    here = world(SimulatedRun(start_delay_s=50.0))
    here.engine.stop([("u", 5.0, StopReason.USER)])
    outcome = here.outcome(100.0)
    assert (outcome.started, outcome.started_at, outcome.containers, outcome.ended_by) == (
        False,
        None,
        (),
        EndedBy.USER,
    )


def test_an_end_before_the_stop_is_its_own() -> None:
    here = world(SimulatedRun(duration_s=1.0))
    here.clock.instant = 105.0
    here.engine.stop([("u", 5.0, StopReason.USER)])
    assert here.outcome(105.0).succeeded


@pytest.mark.parametrize(("duration_s", "ended_by"), [(10.0, EndedBy.ITSELF), (10.5, EndedBy.DEADLINE)])
def test_a_deadline_counts_from_the_start(duration_s: float, ended_by: EndedBy) -> None:
    order = RunOrder("u", "j", "n", attempt=1, rank=0, size=1, containers=MAIN, deadline_s=10.0)
    here = world(SimulatedRun(start_delay_s=7.0, duration_s=duration_s, term_delay_s=1.0), order)
    assert here.outcome(120.0).ended_by is ended_by
