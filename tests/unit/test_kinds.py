"""A kind of work that Holdfast does not have is looked after like any other, with no change to the controller."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from holdfast.controller.controller import ControllerSettings
from holdfast.controller.kind import Pace
from holdfast.controller.workloads.kinds import all_kinds
from holdfast.domain.job import JobState
from holdfast.domain.workloads.gang.reconcile import queued
from holdfast.ports.store import RequestKind
from tests.unit.conftest import Lab, exits, job_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.controller.kind import ForEach
    from holdfast.controller.state import ControllerState
    from holdfast.controller.workloads.kinds import Kinds, Wiring
    from holdfast.ports.store import Request, Snapshot

PAUSE_S = 5.0


class Relays:
    """Runs held jobs whose names begin with the relay's, one after the other and a pause apart."""

    name = "relay"
    pace = Pace(1, 10)
    works: ClassVar = {"broken": None, "run-": None}

    def __init__(self, state: ControllerState) -> None:
        self._state = state

    def restore(self, snapshot: Snapshot, each: ForEach) -> None:
        """Nothing of a relay is stored."""

    def ask(self, request: Request, key: str, now: float) -> None:
        del request, now
        self._state.queue.add(self.name, key)

    def reconcile(self, keys: Sequence[str], now: float) -> None:
        for key in keys:
            if key == "broken":
                message = "a baton was dropped"
                raise RuntimeError(message)
            jobs = [job for job in self._state.jobs.values() if job.name.startswith(key)]
            held = [job for job in jobs if job.state is JobState.HELD]
            if held and len(held) == len(jobs):
                self._state.put_job(queued(held[0], now))
            if held:
                self._state.queue.wake_at(self.name, key, now + PAUSE_S)


def relays_too(wiring: Wiring) -> Kinds:
    kinds = all_kinds(wiring)
    return kinds._replace(owners=(*kinds.owners, Relays(wiring.state)))


class LabWithRelays(Lab):
    settings = ControllerSettings(kinds=relays_too)


def test_a_kind_the_controller_never_heard_of_is_asked_reconciled_woken_and_quarantined() -> None:
    lab = LabWithRelays()
    jobs = [lab.submit(job_named(f"run-{number}"), exits(0)) for number in range(3)]
    for job in jobs:
        lab.ask(RequestKind.HOLD, job)
    lab.tick()
    lab.ask(RequestKind.RELEASE, "broken")
    lab.ask(RequestKind.RELEASE, "run-")
    lab.pass_s(4 * PAUSE_S)
    started = [lab.job(job).started_at or 0.0 for job in jobs]
    assert [lab.job(job).state for job in jobs] == [JobState.SUCCEEDED] * 3
    assert [later - earlier for earlier, later in pairwise(started)] == [PAUSE_S, PAUSE_S]
    assert lab.store.quarantined()["broken"].kind == "relay"
