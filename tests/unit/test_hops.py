"""Between a failure and the next start each thing is asked once: what failed, what follows, and what moves on by it."""

from __future__ import annotations

import sys
from collections import Counter
from typing import TYPE_CHECKING

from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from types import FrameType

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder

COUNTED = {
    "Gangs.reconcile": "reconcile of a kind",
    "classify": "classify",
    "decide": "decide",
}


def fails_once(order: RunOrder) -> SimulatedRun:
    return exits(3, after_s=2.0) if order.attempt == 1 else exits(0, after_s=50.0)


def test_a_failed_job_is_classified_and_decided_once_and_moved_on_in_three_looks(lab: Lab) -> None:
    job = lab.submit(job_named("train", retrying(1)), fails_once)
    lab.pass_s(1)
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        name = COUNTED.get(frame.f_code.co_qualname)
        if event == "call" and name is not None:
            calls[name] += 1

    lab.clock.time += 5.0
    sys.setprofile(count)
    try:
        while len(lab.runs(job)) == 1:
            lab.step()
    finally:
        sys.setprofile(None)
    assert lab.store.job(job).attempt == 2
    assert calls["classify"] == calls["decide"] == 1
    assert 1 <= calls["reconcile of a kind"] <= 3
