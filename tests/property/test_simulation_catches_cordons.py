"""The world is worth something for nodes that are closed, too: the code, broken in named ways, is caught soon."""

# ruff: noqa: ANN401 - what breaks parts takes whatever they take

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.controller.policy_catalog import PolicyCatalog
from holdfast.controller.workloads.gangs import Gangs
from holdfast.domain.lifecycle import AttemptStatus
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang import endings
from holdfast.domain.workloads.gang.reconcile import Intervention
from holdfast.ports.requests import Request, RequestKind
from tests.property.breaks import Break, assert_noticed
from tools.simulate.operators import CORDONS_EVERY, PREEMPTIONS_EVERY

if TYPE_CHECKING:
    from collections.abc import Sequence


def cordons_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    read = PolicyCatalog.read

    def careless(self: PolicyCatalog) -> None:
        read(self)
        self.catalogue = evolve(self.catalogue, cordons={})

    patch.setattr(PolicyCatalog, "read", careless)


def a_new_controller_knows_no_cordons(patch: pytest.MonkeyPatch) -> None:
    begin = PolicyCatalog.__init__

    def forgetful(self: PolicyCatalog, store: Any) -> None:
        begin(self, store)
        self.catalogue = evolve(self.catalogue, cordons={})

    patch.setattr(PolicyCatalog, "__init__", forgetful)


def what_a_drain_stops_is_not_judged(patch: pytest.MonkeyPatch) -> None:
    interrupted = endings.interrupted
    patch.setattr(endings, "interrupted", lambda *known: evolve(interrupted(*known), decision=None))


def a_place_is_taken_again_and_again(patch: pytest.MonkeyPatch) -> None:
    ask, reconcile, asked = Gangs.ask, Gangs.reconcile, set[str]()

    def remembering(self: Gangs, request: Request, key: str, now: float) -> None:
        asked.update({key} if request.kind is RequestKind.PREEMPT else ())
        ask(self, request, key, now)

    def again(self: Gangs, keys: Sequence[str], now: float) -> None:
        reconcile(self, keys, now)
        for key in asked.intersection(keys, self._state.active):
            if self._state.active[key].attempt.status is AttemptStatus.RUNNING:
                self._ask(self._state.jobs[key], now, Intervention.PREEMPT, reason="asked by nobody")

    patch.setattr(Gangs, "ask", remembering)
    patch.setattr(Gangs, "reconcile", again)


BREAKS: dict[str, Break] = {
    "cordons are not looked at": (cordons_are_not_looked_at, {"closed-stays"}, 22),
    "a new controller knows no cordons": (a_new_controller_knows_no_cordons, {"closed-stays"}, 22),
    "what a drain stops is not judged": (what_a_drain_stops_is_not_judged, {"asked-for", "judged-once"}, 22),
    "a place is taken again and again": (a_place_is_taken_again_and_again, {"taken-when-asked"}, 14),
}


@pytest.mark.parametrize("name", BREAKS)
def test_the_world_catches_it_when(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    every = PREEMPTIONS_EVERY if "taken-when-asked" in BREAKS[name][1] else CORDONS_EVERY
    assert_noticed(BREAKS[name], monkeypatch, every=every)
