"""What the simulated world found: faults in the controller and the executor, each in its smallest form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.controller.mailbox import Mailbox
from holdfast.domain.failure import FailureCondition
from holdfast.domain.job import JobState, Resources
from holdfast.domain.lifecycle import AttemptStatus, Ending
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.errors import Unavailable
from holdfast.ports.engine import NodeInfo, RunPhase
from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable

FOREVER = SimulatedRun(duration_s=None)


class Slow:
    """A line whose answers take their time."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.takes_s = 0.0
        self.broken = False

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        if self.broken:
            raise Unavailable
        answer = self.lab.transport.exchange(request)
        self.lab.clock.time += self.takes_s
        return answer

    def on_change(self, executor: str, wake: object) -> None:
        """Nobody needs waking here."""


class Recorded:
    """A line that remembers what it carried."""

    def __init__(self, lab: Lab) -> None:
        self.inner = lab.transport
        self.requests: list[ExchangeRequest] = []
        self.broken = False

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        self.requests.append(request)
        return self.inner.exchange(request)

    def on_change(self, executor: str, wake: object) -> None:
        """Nobody needs waking here."""


def test_an_observed_set_that_was_overtaken_by_a_newer_one_says_nothing(lab: Lab) -> None:
    line = Recorded(lab)
    lab.executor._transport = line  # noqa: SLF001 - listens in
    job = lab.submit(job_named("long", retrying(3)), FOREVER)
    lab.pass_s(5)
    late = next(request for request in line.requests if not request.observed)
    lab.controller.tick([late])
    lab.pass_s(5)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.RUNNING, 1)
    assert [order.attempt for order in lab.orders] == [1]


def test_what_an_executor_told_in_an_earlier_life_is_older_than_anything_in_this_one(lab: Lab) -> None:
    line = Recorded(lab)
    lab.executor._transport = line  # noqa: SLF001 - listens in
    lab.pass_s(5)
    late = line.requests[-1]
    lab.restart_executor()
    job = lab.submit(job_named("long", retrying(3)), FOREVER)
    lab.pass_s(1)
    lab.controller.tick([late])
    lab.pass_s(5)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.RUNNING, 1)


def test_what_was_told_to_an_earlier_controller_is_not_evidence_that_a_run_is_gone(lab: Lab) -> None:
    line = Recorded(lab)
    lab.executor._transport = line  # noqa: SLF001 - listens in
    lab.pass_s(1)
    late = line.requests[-1]
    job = lab.submit(job_named("long", retrying(3)), FOREVER)
    lab.pass_s(5)
    lab.restart_controller()
    lab.controller.tick([late])
    lab.pass_s(5)
    assert (lab.job(job).state, lab.job(job).attempt) == (JobState.RUNNING, 1)
    assert [order.attempt for order in lab.orders] == [1]


def test_a_run_that_a_new_controller_misses_is_lost_at_the_second_exchange_and_not_started_again(lab: Lab) -> None:
    job = lab.submit(job_named("long", retrying(3)), FOREVER)
    lab.pass_s(2)
    lab.restart_controller()
    lab.use(*lab.engine.nodes())
    lab.step()
    assert [order.attempt for order in lab.orders] == [1]
    lab.pass_s(3)
    first = lab.runs(job)[0].outcome
    assert first is not None
    assert first.conditions == {FailureCondition.EXECUTOR_LOST}
    assert [order.attempt for order in lab.orders] == [1, 2]


@pytest.mark.parametrize("seen_running", [False, True])
def test_a_run_that_was_handed_out_to_a_lost_executor_may_have_run(lab: Lab, *, seen_running: bool) -> None:
    lab.pass_s(1)
    job = lab.submit(job_named("job", retrying(3)), FOREVER)
    lab.step()
    if seen_running:
        lab.pass_s(3)
    lab.transport.broken = True
    for _ in range(70):
        lab.clock.time += 1.0
        lab.tick()
    [attempt] = lab.attempts(job)
    assert (attempt.ending, attempt.status) == (Ending.FAILED, AttemptStatus.ERROR)
    assert attempt.failure is not None
    assert (attempt.failure.started, attempt.failure.conditions) == (True, frozenset({"ExecutorLost", "EndUnknown"}))
    assert ("may have run" in attempt.failure.message) is not seen_running


@pytest.mark.parametrize(("silent_s", "lost"), [(60.0, False), (60.001, True)])
def test_an_executor_is_lost_once_it_was_silent_for_longer_than_its_lease(
    make_lab: type[Lab], silent_s: float, *, lost: bool
) -> None:
    lab = make_lab(lease_s=60.0)
    job = lab.submit(job_named("job", retrying(3, delay_s=9.0)), FOREVER)
    lab.pass_s(2)
    lab.clock.time += silent_s
    lab.tick()
    assert lab.job(job).state is (JobState.BACKOFF if lost else JobState.RUNNING)


@pytest.mark.parametrize("restart", [None, Lab.restart_executor, Lab.restart_controller])
def test_an_end_that_could_not_be_reported_is_reported_at_the_next_exchange(
    lab: Lab, restart: Callable[[Lab], None] | None
) -> None:
    job = lab.submit(job_named("job", retrying(3)), exits(0, after_s=5.0))
    lab.pass_s(4)
    lab.transport.broken = True
    lab.pass_s(3)
    assert lab.job(job).state is JobState.RUNNING
    if restart is not None:
        restart(lab)
    lab.transport.broken = False
    lab.pass_s(3)
    assert (lab.job(job).state, lab.job(job).retries, len(lab.orders)) == (JobState.SUCCEEDED, 0, 1)


def test_an_attempt_is_not_given_up_while_its_silent_executor_may_still_run_it(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=120.0)
    job = lab.submit(job_named("stubborn", retrying(3), grace_s=1.0), FOREVER)
    lab.pass_s(2)
    lab.transport.broken = True
    lab.ask(RequestKind.CANCEL, job)
    for _ in range(100):
        lab.clock.time += 1.0
        lab.tick()
    running = [seen.phase for seen in lab.engine.observe().values()]
    assert running == [RunPhase.RUNNING]
    assert lab.job(job).state is JobState.RUNNING
    assert lab.controller.state.capacity.charges


def test_an_answer_counts_from_when_it_was_asked_for(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    lab.submit(job_named("long"), FOREVER)
    lab.pass_s(2)
    line = Slow(lab)
    lab.executor._transport = line  # noqa: SLF001 - slows it down
    line.takes_s = 50.0
    lab.executor.step()
    line.broken = True
    lab.clock.time += 11.0
    lab.executor.step()
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.FINISHED]


def test_an_answer_that_came_after_the_lease_starts_nothing(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    lab.pass_s(2)
    line = Slow(lab)
    lab.executor._transport = line  # noqa: SLF001 - slows it down
    line.takes_s = 61.0
    lab.submit(job_named("long"), FOREVER)
    lab.executor.step()
    assert lab.orders == []


def test_a_restarted_executor_that_reaches_nobody_stops_what_it_finds(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    lab.submit(job_named("long"), FOREVER)
    lab.pass_s(2)
    lab.transport.broken = True
    lab.clock.time += 50.0
    lab.restart_executor()
    lab.executor.step()
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.FINISHED]


def test_a_long_grace_ends_with_the_lease(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    job = lab.submit(job_named("long", grace_s=600.0), SimulatedRun(duration_s=None, term_delay_s=600.0))
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(2)
    lab.transport.broken = True
    lab.clock.time += 61.0
    lab.executor.step()
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.FINISHED]


def test_nothing_is_placed_on_a_node_that_its_executor_no_longer_has(make_lab: type[Lab]) -> None:
    lab = make_lab()
    lab.use(NodeInfo("n0", Resources(4000, 8 << 30)), NodeInfo("n1", Resources(4000, 8 << 30)))
    lab.step()
    lab.clock.time += 1.0
    lab.use(NodeInfo("n1", Resources(4000, 8 << 30)))
    lab.submit(job_named("a"), FOREVER)
    lab.pass_s(2)
    assert [order.node for order in lab.orders] == ["n1"]


def test_an_answer_to_an_executors_earlier_life_is_not_taken_for_one_to_this() -> None:
    earlier = ExchangeRequest("e", 100, (), {}, incarnation=1.0)
    mailbox = Mailbox(wake=lambda: mailbox.answer({"e": ExchangeResponse(100, "memory 1")}, frozenset()), timeout_s=5.0)
    assert mailbox.exchange(earlier).sequence == 100
    mailbox._wake = lambda: None  # noqa: SLF001 - the controller is busy
    mailbox._timeout_s = 0.0  # noqa: SLF001 - and will not answer
    with pytest.raises(Unavailable):
        mailbox.exchange(ExchangeRequest("e", 1, (), {}, incarnation=2.0))


class Stale:
    """A line whose answers are those to an earlier request."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def exchange(self, request: ExchangeRequest) -> ExchangeResponse:
        answer = self.lab.transport.exchange(request)
        return ExchangeResponse(request.sequence - 1, answer.controller_epoch, {})

    def on_change(self, executor: str, wake: object) -> None:
        """Nobody needs waking here."""


def test_an_executor_acts_on_no_overtaken_answer_and_counts_none_for_its_lease(make_lab: type[Lab]) -> None:
    lab = make_lab(lease_s=60.0)
    lab.submit(job_named("long"), FOREVER)
    lab.pass_s(5)
    lab.executor._transport = Stale(lab)  # noqa: SLF001 - its answers are late from now on
    lab.pass_s(50)
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.RUNNING]
    lab.pass_s(20)
    assert [seen.phase for seen in lab.engine.observe().values()] == [RunPhase.FINISHED]
