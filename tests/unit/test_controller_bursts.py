"""Many things at one moment: what is worked on first, how much of it at once, and who hears of it when."""

from __future__ import annotations

from threading import Thread

from holdfast.controller.mailbox import Mailbox
from holdfast.domain.job import Resources
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo, RunOrder
from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse
from tests.unit.conftest import Lab, exits, job_named, retrying

BURST = 64
STEP = 16


def roomy(lab: Lab) -> Lab:
    lab.use(NodeInfo("n0", Resources(1000 * BURST * 2, 1 << 40)))
    return lab


def fails_at_first(order: RunOrder) -> SimulatedRun:
    return exits(1, after_s=10.0) if order.attempt == 1 else SimulatedRun(duration_s=None)


def second_attempts(lab: Lab) -> int:
    return sum(order.attempt == 2 for order in lab.orders)


def test_the_first_of_a_burst_begin_again_before_the_last_are_decided(lab: Lab) -> None:
    roomy(lab)
    for number in range(BURST):
        lab.submit(job_named(f"job-{number}", retrying()), fails_at_first)
    lab.pass_s(9)
    assert len(lab.orders) == BURST
    lab.clock.time += 1.5
    again = []
    for _ in range(BURST // STEP):
        lab.step()
        again.append(second_attempts(lab))
    assert again == [STEP, 2 * STEP, 3 * STEP, BURST]


def test_what_ended_is_decided_before_what_began_is_noted(lab: Lab) -> None:
    roomy(lab)
    for number in range(STEP):
        lab.submit(job_named(f"failing-{number}", retrying()), fails_at_first)
    lab.pass_s(9)
    for number in range(BURST):
        lab.submit(job_named(f"later-{number}"), SimulatedRun(start_delay_s=1.0, duration_s=None))
    lab.step(3)
    lab.clock.time += 1.5
    lab.step()
    assert second_attempts(lab) == STEP


def test_nothing_of_a_burst_is_forgotten(lab: Lab) -> None:
    roomy(lab)
    jobs = [lab.submit(job_named(f"job-{number}", retrying()), fails_at_first) for number in range(BURST)]
    lab.pass_s(30)
    assert [lab.job(job).attempt for job in jobs] == [2] * BURST
    assert not lab.tick().more


def test_an_answer_ahead_leaves_what_was_told_to_the_next_tick_and_needs_no_hint() -> None:
    request = ExchangeRequest("e", 7, (), {}, incarnation=1.0)
    hints: list[str] = []
    mailbox = Mailbox(wake=lambda: None, timeout_s=10.0)
    mailbox.on_change("e", lambda: hints.append("e"))
    answers: list[ExchangeResponse] = []
    caller = Thread(target=lambda: answers.append(mailbox.exchange(request)))
    caller.start()
    while not mailbox.take():
        pass
    mailbox.answer({}, frozenset({"e"}), {"e": ExchangeResponse(7, "memory 1")})
    caller.join()
    assert [answer.sequence for answer in answers] == [7]
    assert mailbox.take() == [request]
    assert hints == []
    mailbox.answer({"e": ExchangeResponse(7, "memory 1")}, frozenset({"e"}))
    assert (mailbox.take(), hints) == ([], ["e"])
