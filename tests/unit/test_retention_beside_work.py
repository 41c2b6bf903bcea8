"""What retention leaves alone because work in progress needs it, whenever the controller is killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.workloads import still_awaited
from holdfast.domain.job import JobState
from holdfast.ports.requests import RequestKind
from holdfast.service.retention import Retention
from tests.unit.conftest import exits
from tests.unit.test_arrays import NoFiles
from tests.unit.test_dependencies import SUCCEEDED, WAITING, lab

if TYPE_CHECKING:
    from tests.unit.test_dependencies import WaitingLab

__all__ = ["lab"]
WAITING_JOBS = tuple(f"then-{number}" for number in range(5))


def deleted(lab: WaitingLab) -> int:
    return sum(Retention(lab.store, NoFiles()).sweep(ended_before=lab.clock.now() + 1.0))


def end_before_anybody_is_told(lab: WaitingLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``first`` end in a commit before those that tell who waits for it, as of the second thousand that do."""
    lab.pass_s(1)
    with monkeypatch.context() as patch:
        patch.setattr("holdfast.controller.dependencies._AT_ONCE", 0)
        lab.clock.time += 1
        lab.step()
    assert lab.states("first", *WAITING_JOBS) == [SUCCEEDED, *[WAITING] * len(WAITING_JOBS)]


@pytest.mark.parametrize("restarts", [False, True])
def test_what_others_wait_for_stays_until_all_of_them_are_told(
    lab: WaitingLab, monkeypatch: pytest.MonkeyPatch, *, restarts: bool
) -> None:
    lab.ends = lambda _: exits(0, after_s=1.5)
    lab.add("first")
    for name in WAITING_JOBS:
        lab.add(name, "first")
    lab.add_array("sweep", 2, "first")
    end_before_anybody_is_told(lab, monkeypatch)
    assert deleted(lab) == 0
    if restarts:
        lab.restart_controller()
    lab.pass_s(10)
    assert {*lab.states(*WAITING_JOBS)} == {SUCCEEDED}
    assert (lab.array("sweep").ended, lab.array("sweep").state.succeeded) == ("Succeeded", 2)
    assert deleted(lab) == 1 + len(WAITING_JOBS) + 2


def test_what_a_held_job_waited_for_goes_once_that_is_stored_with_it(lab: WaitingLab) -> None:
    lab.ends = lambda _: exits(0, after_s=5.0)
    lab.add("first")
    lab.add("next", "first")
    lab.pass_s(1)
    lab.ask(RequestKind.HOLD, lab.job("next").id)
    lab.pass_s(10)
    assert lab.states("first", "next") == [SUCCEEDED, JobState.HELD]
    assert deleted(lab) == 1
    lab.restart_controller()
    lab.ask(RequestKind.RELEASE, lab.job("next").id)
    lab.pass_s(10)
    assert lab.states("next") == [SUCCEEDED]


def test_what_has_happened_goes_while_something_else_is_waited_for(lab: WaitingLab) -> None:
    lab.ends = lambda order: exits(0, after_s=20.0 if order.job_name == "slow" else 1.0)
    lab.add("quick")
    lab.add("slow")
    lab.add("both", "quick", "slow")
    lab.pass_s(5)
    assert deleted(lab) == 1
    lab.restart_controller()
    lab.pass_s(30)
    assert lab.states("both") == [SUCCEEDED]


def test_what_cannot_be_read_of_who_waits_keeps_nothing_from_being_deleted() -> None:
    spec = '{"version":1,"spec":{"after":[{"id":"a"}]}}'
    assert [[*still_awaited(spec, met)] for met in (None, "[0]", "{")] == [["a"], [], []]
    assert [[*still_awaited(broken, None)] for broken in ("{", "[]", '{"spec":{"after":1}}')] == [[], [], []]
