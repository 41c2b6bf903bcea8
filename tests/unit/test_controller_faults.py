"""What the simulated world found: faults in the controller and the executor, each in its smallest form."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.job import JobState
from holdfast.engines.simulated.engine import SimulatedRun
from tests.unit.conftest import Lab, job_named, retrying

if TYPE_CHECKING:
    from holdfast.ports.exchange import ExchangeRequest, ExchangeResponse

FOREVER = SimulatedRun(duration_s=None)


class Recorded:
    """A line that remembers what it carried."""

    def __init__(self, lab: Lab) -> None:
        self.inner = lab.line
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
