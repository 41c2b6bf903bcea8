"""The one engine drives any table: here doors and their hinges, whose failures nobody counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from holdfast.domain.lifecycle import (
    EntityKind,
    HandlerRow,
    Lifecycle,
    Match,
    Outcome,
    PromotionRow,
    Step,
    TransitionStatus,
)
from holdfast.domain.lifecycle.engine import HandlerOptions, Report, advance, resolve_options
from holdfast.domain.lifecycle.table import JUDGED


class DoorStatus(StrEnum):
    AJAR = "ajar"
    SHUT = "shut"
    STUCK = "stuck"
    GONE = "gone"


class HingeStatus(StrEnum):
    WHOLE = "whole"
    BROKEN = "broken"


D, H = DoorStatus, HingeStatus
NOTHING = "no oil"
CHECK: HandlerRow[DoorStatus, HingeStatus] = HandlerRow(
    "CheckDoors",
    frozenset({D.AJAR, D.SHUT}),
    frozenset({H.WHOLE}),
    {
        Outcome.SUCCESS: TransitionStatus(D.SHUT),
        Outcome.FAILURE: TransitionStatus(D.STUCK, H.BROKEN),
    },
    timeout_s=1.0,
    max_retries=0,
)
OFF = PromotionRow("FallOff", frozenset({D.STUCK}), frozenset({H.BROKEN}), Match.ALL, D.GONE)
SHUT_ALONE = PromotionRow(
    "ShutAlone", frozenset({D.AJAR}), frozenset({H.BROKEN}), Match.ALL, D.STUCK, expired=D.SHUT, timeout_s=50.0
)
DOORS = Lifecycle(
    EntityKind.ATTEMPT,  # doors have no histories of their own
    frozenset({Outcome.SUCCESS, Outcome.FAILURE}),
    (CHECK,),
    (OFF, SHUT_ALONE),
)
ALONE = Lifecycle(EntityKind.ATTEMPT, frozenset({Outcome.SUCCESS, Outcome.FAILURE}), (CHECK,))


@dataclass
class Door:
    """A door that says of its work what it is told to say, or raises."""

    says: Outcome | None = None
    status: DoorStatus = D.AJAR
    children: list[HingeStatus] = field(default_factory=lambda: [H.WHOLE, H.WHOLE])
    tries: int = 0
    steps: list[tuple[str, Outcome, str]] = field(default_factory=list)
    worked: int = 0
    raised: Exception | None = None
    broken: bool = False

    def since(self, now: float) -> float:
        del now
        return 0.0

    def options(
        self, row: HandlerRow[DoorStatus, HingeStatus] | PromotionRow[DoorStatus, HingeStatus]
    ) -> HandlerOptions:
        return resolve_options(row)

    def work(self, row: HandlerRow[DoorStatus, HingeStatus], now: float) -> Report | None:
        assert row is CHECK
        del now
        self.worked += 1
        if self.broken:
            raise LookupError(NOTHING)
        return None if self.says is None else Report(self.says, message="creaks")

    def take(self, step: Step, to: TransitionStatus[DoorStatus, HingeStatus]) -> bool:
        before = self.status
        self.steps.append((step.phase, step.outcome, step.message))
        self.status = to.status or self.status
        self.children = [to.children or hinge for hinge in self.children]
        return self.status is not before


@pytest.mark.parametrize(
    ("said", "status", "hinge"),
    [
        (Outcome.SUCCESS, D.SHUT, H.WHOLE),
        (Outcome.FAILURE, D.STUCK, H.BROKEN),
    ],
)
def test_a_kind_of_its_own_moves_by_its_own_results(said: Outcome, status: DoorStatus, hinge: HingeStatus) -> None:
    door = Door(said, D.SHUT)
    advance(ALONE, door, 100.0)
    assert (door.status, door.children, door.steps) == (status, [hinge] * 2, [("CheckDoors", said, "creaks")])


@pytest.mark.parametrize("said", [None, Outcome.SKIPPED, Outcome.EXPIRED, Outcome.GIVE_UP, Outcome.NEED_RETRY])
def test_what_a_kind_does_not_have_changes_and_records_nothing_however_late_it_is(said: Outcome | None) -> None:
    door = Door(said, tries=9)
    advance(ALONE, door, 100.0)
    assert (door.status, door.steps) == (D.AJAR, [])


def test_work_that_raises_has_failed_and_what_it_raised_is_kept() -> None:
    door = Door(status=D.SHUT, broken=True)
    advance(ALONE, door, 100.0)
    assert (door.status, door.steps) == (D.STUCK, [("CheckDoors", Outcome.FAILURE, NOTHING)])
    assert isinstance(door.raised, LookupError)


@pytest.mark.parametrize(
    ("door", "worked"), [(Door(), 1), (Door(status=D.STUCK), 0), (Door(children=[H.BROKEN, H.WHOLE]), 1)]
)
def test_only_what_has_the_status_and_such_a_child_is_worked_on(door: Door, worked: int) -> None:
    advance(DOORS, door, 0.0)
    assert door.worked == worked


def test_one_whose_children_are_all_in_another_status_is_not_worked_on() -> None:
    door = Door(Outcome.SUCCESS, D.SHUT, [H.BROKEN])
    advance(DOORS, door, 0.0)
    assert (door.worked, door.steps) == (0, [])


@pytest.mark.parametrize(
    ("door", "now", "status"),
    [
        (Door(None, D.STUCK, [H.BROKEN, H.BROKEN]), 0.0, D.GONE),
        (Door(None, D.STUCK, [H.BROKEN, H.WHOLE]), 0.0, D.STUCK),
        (Door(None, D.AJAR), 50.0, D.AJAR),
        (Door(None, D.AJAR), 51.0, D.SHUT),
    ],
)
def test_children_and_time_promote(door: Door, now: float, status: DoorStatus) -> None:
    advance(DOORS, door, now)
    assert door.status is status


def test_one_look_goes_on_until_nothing_moves() -> None:
    door = Door(Outcome.FAILURE)
    advance(DOORS, door, 0.0)
    assert [step[0] for step in door.steps] == ["CheckDoors", "FallOff"]
    assert door.status is D.GONE


@pytest.mark.parametrize(("now", "outcome"), [(1.0, None), (1.5, Outcome.EXPIRED)])
def test_work_of_which_nothing_is_said_expires_like_what_is_skipped(now: float, outcome: Outcome | None) -> None:
    judged = Lifecycle(EntityKind.ATTEMPT, JUDGED, (CHECK,))
    door = Door()
    advance(judged, door, now)
    assert [step[1] for step in door.steps] == ([outcome] if outcome else [])
