"""What every engine promises, checked on real processes and on simulated runs alike."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.resources import Resources
from holdfast.engines.process.engine import ProcessEngine
from holdfast.engines.simulated import SimulatedEngine, SimulatedRun
from holdfast.ports.engine import Engine, NodeInfo, Observation, RunOrder, RunPhase, StopReason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NODES = (NodeInfo("here", Resources(4000, 1 << 30)),)
COMMANDS = {
    "succeeds": ("true",),
    "fails": ("sh", "-c", "exit 3"),
    "stays": ("sleep", "1000"),
    "missing": ("/nonexistent/program",),
}
SCRIPT = {
    "succeeds": SimulatedRun(0.1, 1.0),
    "fails": SimulatedRun(0.1, 1.0, RunOutcome(containers=(ContainerResult(3, reason="Error"),))),
    "stays": SimulatedRun(0.1, None),
    "missing": SimulatedRun(
        0.1,
        outcome=RunOutcome(
            containers=(ContainerResult(None, reason="CommandNotFound"),),
            conditions=frozenset({FailureCondition.LAUNCH_FAILED}),
            started=False,
        ),
    ),
}


@dataclass
class VirtualClock:
    instant: float = 1_000_000.0

    def now(self) -> float:
        return self.instant


@dataclass
class Bench:
    """An engine, and a way to let time pass for it."""

    engine: Engine
    pass_time: Callable[[], None]
    orders: int = field(default=0)

    def order(self, kind: str, *, deadline_s: float | None = None) -> RunOrder:
        self.orders += 1
        return RunOrder(
            uid=f"run-{self.orders}",
            job_id=f"job-{self.orders}",
            job_name=kind,
            attempt=1,
            rank=0,
            size=1,
            command=COMMANDS[kind],
            node="here",
            deadline_s=deadline_s,
            grace_s=5.0,
        )

    def start(self, kind: str, *, deadline_s: float | None = None) -> str:
        order = self.order(kind, deadline_s=deadline_s)
        self.engine.start([order])
        return order.uid

    def until(self, uid: str, phase: RunPhase) -> Observation:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            seen = self.engine.observe().get(uid)
            if seen is not None and seen.phase is phase:
                return seen
            self.pass_time()
        pytest.fail(f"{uid} never became {phase}: {self.engine.observe()}")

    def outcome(self, uid: str) -> RunOutcome:
        outcome = self.until(uid, RunPhase.FINISHED).outcome
        assert outcome is not None
        return outcome


@pytest.fixture(params=["process", "simulated"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "simulated":
        clock = VirtualClock()

        def tick() -> None:
            clock.instant += 0.05

        yield Bench(SimulatedEngine(clock, NODES, script=lambda order: SCRIPT[order.job_name]), tick)
        return
    engine = ProcessEngine(tmp_path, nodes=NODES, shim_idle_s=0.1)
    changed = threading.Event()
    engine.on_change(changed.set)

    def wait() -> None:
        changed.wait(1)
        changed.clear()

    yield Bench(engine, wait)
    unfinished = [uid for uid, seen in engine.observe().items() if seen.phase is not RunPhase.FINISHED]
    engine.stop([(uid, 0.0, StopReason.USER) for uid in unfinished])
    for uid in unfinished:
        Bench(engine, wait).until(uid, RunPhase.FINISHED)
    engine.close()


def test_nodes_are_those_configured(bench: Bench) -> None:
    assert [(node.name, node.capacity) for node in bench.engine.nodes()] == [("here", NODES[0].capacity)]


def test_a_program_that_ends_with_zero_succeeded(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("succeeds"))
    assert outcome.succeeded
    assert outcome.node == "here"
    assert outcome.started_at is not None
    assert outcome.ended_at >= outcome.started_at


def test_a_programs_own_code_is_its_own_failure(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("fails"))
    assert [(one.exit_code, one.signal, one.reason) for one in outcome.containers] == [(3, None, "Error")]
    assert outcome.ended_by is EndedBy.ITSELF
    assert outcome.conditions == frozenset()


def test_a_program_that_cannot_start_never_started(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("missing"))
    assert not outcome.started
    assert outcome.started_at is None
    assert outcome.conditions == {FailureCondition.LAUNCH_FAILED}
    assert [(one.exit_code, one.reason) for one in outcome.containers] == [(None, "CommandNotFound")]


def test_an_order_is_seen_at_once(bench: Bench) -> None:
    uid = bench.start("stays")
    assert bench.engine.observe()[uid].phase in {RunPhase.STARTING, RunPhase.RUNNING}


def test_a_known_uid_is_not_started_again(bench: Bench) -> None:
    order = bench.order("fails")
    bench.engine.start([order, order])
    first = bench.outcome(order.uid)
    bench.engine.start([order])
    assert bench.engine.observe()[order.uid].outcome is first


@pytest.mark.parametrize("reason", StopReason)
def test_a_stopped_run_names_who_stopped_it(bench: Bench, reason: StopReason) -> None:
    uid = bench.start("stays")
    bench.until(uid, RunPhase.RUNNING)
    bench.engine.stop([(uid, 5.0, reason)])
    outcome = bench.outcome(uid)
    assert outcome.ended_by.value == reason.value
    assert not outcome.succeeded
    assert [(one.exit_code, one.signal) for one in outcome.containers] == [(143, 15)]


def test_a_run_past_its_deadline_is_stopped_for_it(bench: Bench) -> None:
    outcome = bench.outcome(bench.start("stays", deadline_s=0.2))
    assert outcome.conditions == {FailureCondition.DEADLINE_EXCEEDED}
    assert outcome.ended_by is EndedBy.DEADLINE
    assert outcome.ran_s is not None
    assert outcome.ran_s >= 0.199


def test_stopping_a_finished_run_changes_nothing(bench: Bench) -> None:
    uid = bench.start("fails")
    before = bench.outcome(uid)
    bench.engine.stop([(uid, 0.0, StopReason.USER)])
    assert bench.engine.observe()[uid].outcome is before


def test_unknown_uids_are_ignored(bench: Bench) -> None:
    bench.engine.stop([("nobody", 0.0, StopReason.USER)])
    bench.engine.forget(["nobody"])
    assert not bench.engine.observe()


def test_a_result_stays_until_forgotten(bench: Bench) -> None:
    uid = bench.start("succeeds")
    bench.outcome(uid)
    bench.outcome(bench.start("succeeds"))
    assert uid in bench.engine.observe()
    bench.engine.forget([uid])
    assert uid not in bench.engine.observe()


def test_a_run_that_has_not_finished_cannot_be_forgotten(bench: Bench) -> None:
    uid = bench.start("stays")
    bench.until(uid, RunPhase.RUNNING)
    bench.engine.forget([uid])
    assert bench.engine.observe()[uid].phase is RunPhase.RUNNING


def test_an_unchanged_run_is_the_same_object(bench: Bench) -> None:
    uid = bench.start("stays")
    before = bench.until(uid, RunPhase.RUNNING)
    snapshot = bench.engine.observe()
    bench.outcome(bench.start("succeeds"))
    assert bench.engine.observe()[uid] is before
    assert list(snapshot) == [uid]


def test_a_change_is_hinted(bench: Bench) -> None:
    hinted = threading.Event()
    bench.engine.on_change(hinted.set)
    bench.outcome(bench.start("succeeds"))
    assert hinted.wait(5)


def test_closing_twice_is_fine(bench: Bench) -> None:
    uid = bench.start("succeeds")
    bench.outcome(uid)
    bench.engine.close()
    bench.engine.close()
