"""One step of an executor against answers a test makes up: what it starts, stops, forgets, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import Resources
from holdfast.domain.record import evolve
from holdfast.engines.simulated.engine import SimulatedEngine
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.executor.executor import Executor
from holdfast.ports.engine import Container, NodeInfo, RunOrder, RunPhase, StopReason
from holdfast.ports.exchange import DesiredRun, ExchangeResponse
from tests.unit.conftest import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.ports.exchange import ExchangeRequest

SLOW_TO_STOP = SimulatedRun(duration_s=None, term_delay_s=20.0)


class Scripted:
    """Answers as the test says, and keeps what was asked."""

    def __init__(self) -> None:
        self.asked: list[ExchangeRequest] = []
        self.desired: Mapping[str, DesiredRun] | None = {}
        self.behind = 0
        self.memory = "a memory"

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        self.asked.append(request)
        if self.desired is None:
            raise Unavailable
        return ExchangeResponse(request.sequence - self.behind, self.memory, self.desired)

    def on_change(self, executor: str, wake: Callable[[], None]) -> None:
        """Nobody needs waking here."""


class Counting(SimulatedEngine):
    """Keeps in which calls it was told what."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock, [NodeInfo("n0", Resources(4000, 8 << 30))], script=lambda _: SLOW_TO_STOP)
        self.started: list[list[str]] = []
        self.stopped: list[list[str]] = []
        self.forgotten: list[list[str]] = []
        self.deaf = False
        """Whether it takes in what it is told to stop and does nothing about it."""

    def start(self, orders: Sequence[RunOrder]) -> None:
        self.started.append([order.uid for order in orders])
        super().start(orders)

    def stop(self, stops: Sequence[tuple[str, float, StopReason]]) -> None:
        self.stopped.append([uid for uid, _, _ in stops])
        if not self.deaf:
            super().stop(stops)

    def forget(self, uids: Sequence[str]) -> None:
        self.forgotten.append(list(uids))
        super().forget(uids)


class Stage:
    """An executor between an engine and a connection that both say what happened."""

    def __init__(self, *, lease_s: float | None = 60.0) -> None:
        self.clock = VirtualClock()
        self.engine = Counting(self.clock)
        self.transport = Scripted()
        self.executor = Executor("local", self.engine, self.transport, clock=self.clock, lease_s=lease_s)

    def want(self, *uids: str, stop: Sequence[str] = ()) -> None:
        self.transport.desired = {
            uid: DesiredRun(order(uid), stop=StopReason.CASCADE if uid in stop else None) for uid in (*uids, *stop)
        }

    def phases(self) -> dict[str, RunPhase]:
        return {uid: seen.phase for uid, seen in self.engine.observe().items()}


def order(uid: str) -> RunOrder:
    return RunOrder(
        uid, "job", "job", attempt=1, rank=0, size=1, containers=(Container(command=("true",)),), grace_s=30.0
    )


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_an_answer_to_an_earlier_question_changes_nothing(stage: Stage) -> None:
    stage.want("a", "b")
    stage.executor.step()
    assert stage.engine.started == [["a", "b"]]
    stage.transport.behind = 1
    stage.transport.memory = "a memory that has passed"
    stage.want("c", stop=["b"])
    assert not stage.executor.step(), "nothing is known of the lease"
    assert stage.phases() == {"a": RunPhase.RUNNING, "b": RunPhase.RUNNING}
    assert (stage.engine.started, stage.engine.stopped, stage.engine.forgotten) == ([["a", "b"]], [], [])
    stage.transport.behind = 0
    stage.transport.memory = "a memory"
    stage.executor.step()
    assert stage.transport.asked[-1].acked == "a memory", "what an overtaken answer says is not heard either"


def test_an_answer_to_an_earlier_question_does_not_renew_the_lease(stage: Stage) -> None:
    stage.want("a")
    stage.executor.step()
    stage.transport.behind = 1
    stage.clock.time += 59.0
    stage.executor.step()
    stage.transport.desired = None
    stage.clock.time += 2.0
    stage.executor.step()
    assert stage.engine.stopped == [["a"]]


def test_all_that_is_to_stop_is_told_so_in_one_call(stage: Stage) -> None:
    ranks = [f"rank-{number}" for number in range(8)]
    stage.want(*ranks)
    stage.executor.step()
    stage.want(stop=ranks)
    stage.executor.step()
    assert stage.engine.stopped == [ranks]
    assert set(stage.phases().values()) == {RunPhase.STOPPING}
    stage.executor.step()
    assert stage.engine.stopped == [ranks], "told once"


def test_what_nobody_wants_any_more_is_stopped_in_one_call(stage: Stage) -> None:
    ranks = [f"rank-{number}" for number in range(8)]
    stage.want(*ranks)
    stage.executor.step()
    stage.want()
    stage.executor.step()
    assert stage.engine.stopped == [ranks]


@pytest.mark.parametrize("wanted", [True, False], ids=["to be stopped", "unknown"])
def test_a_run_that_goes_on_as_if_nobody_told_it_to_stop_is_told_again(stage: Stage, *, wanted: bool) -> None:
    stage.want("a", "b")
    stage.executor.step()
    stage.engine.deaf = True
    stage.want(stop=["a", "b"] if wanted else [])
    for _ in range(4):
        stage.executor.step()
        stage.clock.time += 1.0
    assert stage.engine.stopped == [["a", "b"]], "it may only be about to"
    stage.engine.deaf = False
    stage.clock.time += 2.0
    for _ in range(8):
        stage.executor.step()
        stage.clock.time += 1.0
    assert stage.engine.stopped == [["a", "b"]] * 2, "one that is stopping is left to its grace"


def test_a_shorter_grace_is_told_at_once_and_a_longer_one_never(stage: Stage) -> None:
    stage.want("a")
    stage.executor.step()
    for grace_s in (10.0, 20.0, 10.0, 2.0, 30.0):
        stage.transport.desired = {"a": DesiredRun(evolve(order("a"), grace_s=grace_s), stop=StopReason.USER)}
        stage.executor.step()
        stage.clock.time += 0.1
    assert len(stage.engine.stopped) == 2
