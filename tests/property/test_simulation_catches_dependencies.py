"""The world is worth something for dependencies, too: the code, broken in named ways, is caught within a few seeds."""

# ruff: noqa: ANN401, SLF001 - what breaks private parts must reach them, and takes whatever they take

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller.dependencies import Waits
from holdfast.controller.workloads import arrays
from holdfast.controller.workloads.arrays import Arrays
from holdfast.controller.workloads.owners import Owners
from holdfast.domain.record import evolve
from holdfast.domain.workloads import dependencies
from holdfast.domain.workloads.array.model import ArraySpec
from holdfast.domain.workloads.gang import conclude
from holdfast.service.admission.dependencies import Resolved
from tests.property.breaks import Break, assert_noticed
from tools.simulate.dependent_people import DEPENDENTS_EVERY


def a_failure_counts_as_a_success(patch: pytest.MonkeyPatch) -> None:
    both = {"Succeeded", "Failed"}
    patch.setattr(dependencies, "_HOLDS", {**dependencies._HOLDS, dependencies.Condition.OK: both})


def one_of_several_is_enough(patch: pytest.MonkeyPatch) -> None:
    look = dependencies.check

    def hasty(*known: Any) -> Any:
        found = look(*known)
        return evolve(found, ready=bool(found.met))

    patch.setattr(dependencies, "check", hasty)


def nothing_waits_at_submission(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Resolved, "applied", lambda self, job: evolve(job, ready_at=job.submitted_at) if self.after else job)


def nobody_is_told(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Waits, "heed", lambda *_: None)


def what_ended_before_is_not_looked_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Waits, "look_up", lambda *_: None)


def an_array_makes_its_tasks_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Arrays, "decide", Owners.decide)


def the_end_of_an_array_is_not_the_end_of_its_tasks(patch: pytest.MonkeyPatch) -> None:
    told = ArraySpec.task_waits_for
    patch.setattr(
        ArraySpec, "task_waits_for", lambda self, index: tuple(evolve(one, array="none") for one in told(self, index))
    )


def a_released_job_waits_for_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(conclude, "kept_waiting", lambda job, _, now: evolve(conclude.queued(job, now), ready_at=now, met=()))


def an_array_that_is_to_be_held_goes_on(patch: pytest.MonkeyPatch) -> None:
    def hasty(*known: Any) -> Any:
        found = dependencies.check(*known)
        return evolve(found, unmet=None) if found.unmet is dependencies.OnUnmet.HOLD else found

    patch.setattr(arrays, "check", hasty)


BREAKS: dict[str, Break] = {
    "a failure counts as a success": (a_failure_counts_as_a_success, {"waits-for-it"}, 7),
    "one of several is enough": (one_of_several_is_enough, {"waits-for-it"}, 17),
    "nothing waits at submission": (nothing_waits_at_submission, {"waits-for-it"}, 2),
    "nobody is told": (nobody_is_told, {"all-ends"}, 32),
    "what ended before is not looked up": (what_ended_before_is_not_looked_up, {"waits-for-it", "all-ends"}, 7),
    "an array makes its tasks at once": (an_array_makes_its_tasks_at_once, {"waits-for-it"}, 2),
    "the end of an array is not the end of its tasks": (
        the_end_of_an_array_is_not_the_end_of_its_tasks,
        {"waits-for-it", "all-ends"},
        2,
    ),
    "an array that is to be held goes on": (an_array_that_is_to_be_held_goes_on, {"waits-for-it"}, 27),
    "a released job waits for nothing": (a_released_job_waits_for_nothing, {"waits-for-it"}, 2),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=DEPENDENTS_EVERY)
