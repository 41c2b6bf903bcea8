"""A place is given to another run only once the program that had it has stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.job import Resources
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.ports.engine import RunOrder

STUBBORN = SimulatedRun(duration_s=None, term_delay_s=5.0)
WHOLE = Resources(4000)


def cancels(lab: Lab) -> None:
    """Cancel a job, and submit another that needs all of its node."""
    job = lab.submit(job_named("first", resources=WHOLE), STUBBORN)
    lab.pass_s(2)
    lab.ask(RequestKind.CANCEL, job)
    lab.submit(job_named("next", resources=WHOLE), STUBBORN)


def fails_in_one_rank(lab: Lab) -> None:
    """Fail one rank of a gang that begins again at once, while the others take their time to stop."""

    def plan(order: RunOrder) -> SimulatedRun:
        return exits(1) if (order.attempt, order.rank) == (1, 0) else STUBBORN

    lab.submit(job_named("gang", retrying(1), gang=2, resources=Resources(2000)), plan)
    lab.pass_s(1)


def returns_with_an_old_run(lab: Lab) -> None:
    """Lose an executor, which comes back with its program still running, and submit a job that needs its place."""
    lab.submit(job_named("first", resources=WHOLE), STUBBORN)
    lab.pass_s(2)
    lab.clock.time += 61.0
    lab.tick()
    lab.submit(job_named("next", resources=WHOLE), STUBBORN)


def alive(lab: Lab) -> list[RunOrder]:
    observed = lab.engine.observe()
    return [order for order in lab.orders if order.uid in observed and not observed[order.uid].outcome]


@pytest.mark.parametrize("happens", [cancels, fails_in_one_rank, returns_with_an_old_run])
def test_a_place_is_free_only_once_its_program_has_stopped(lab: Lab, happens: Callable[[Lab], None]) -> None:
    lab.use(NodeInfo("n0", WHOLE))
    happens(lab)
    begun = len(lab.orders)
    for _ in range(40):
        lab.pass_s(0.25)
        assert sum(order.resources.cpu_m for order in alive(lab)) <= WHOLE.cpu_m
    assert alive(lab) == lab.orders[begun:] != []
