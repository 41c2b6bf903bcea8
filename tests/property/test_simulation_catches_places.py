"""The world is worth something for short nodes and unknown ends, too: broken in named ways, the code is caught."""

# ruff: noqa: ANN401 - what breaks private parts passes on whatever it is given

from __future__ import annotations

from typing import Any

import pytest

from holdfast.controller import placement
from holdfast.domain import shortage
from holdfast.domain.placement.scheduling import Round
from holdfast.domain.record import evolve
from holdfast.domain.workloads import judge
from holdfast.domain.workloads.gang import policies
from tests.property.breaks import Break, assert_noticed
from tools.simulate.faults.places import PLACES_EVERY


def policies_are_asked_about_a_shortage(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(judge, "shortage_of", lambda _: None)


def a_shortage_is_charged_to_a_rule(patch: pytest.MonkeyPatch) -> None:
    uncounted = shortage.shortage_decision
    patch.setattr(judge, "shortage_decision", lambda *known: evolve(uncounted(*known), counter="mine"))


def a_short_node_gets_all_there_is(patch: pytest.MonkeyPatch) -> None:
    begin = Round.plan

    def careless(self: Round) -> Any:
        self.tried.clear()
        return begin(self)

    patch.setattr(Round, "plan", careless)


def a_short_node_gets_the_next_before_the_last_has_started(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(placement, "_gets_work", lambda *_: True)


def a_node_seems_well_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shortage, "OVER_AFTER_S", 2.0)


def nobody_asks_what_must_not_run_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(policies, "unknown_end_policy", lambda *_: None)


BREAKS: dict[str, Break] = {
    "policies are asked about a shortage": (policies_are_asked_about_a_shortage, {"short-costs-nothing"}, 23),
    "a shortage is charged to a rule": (a_shortage_is_charged_to_a_rule, {"short-costs-nothing"}, 23),
    "a node that is short gets all there is": (a_short_node_gets_all_there_is, {"short-stays-empty"}, 23),
    "a node that is short gets the next before the last has started": (
        a_short_node_gets_the_next_before_the_last_has_started,
        {"short-stays-empty"},
        23,
    ),
    "a node seems well at once": (a_node_seems_well_at_once, {"short-stays-empty"}, 23),
    "nobody asks what must not run twice": (
        nobody_asks_what_must_not_run_twice,
        {"never-again"},
        431,  # a job is lost that says so, and that nobody ever releases
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_noticed(BREAKS[name], monkeypatch, every=PLACES_EVERY)
