"""The one engine drives any table: here doors and their hinges, whose failures nobody counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import pytest

from holdfast.controller.coordinator import Coordinator, Standing
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
from holdfast.domain.lifecycle.judge import HandlerOptions, HandlerResult, Report, Reports, resolve_options
from holdfast.domain.lifecycle.table import JUDGED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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


@dataclass
class Door:
    name: str
    status: DoorStatus = D.AJAR
    hinges: list[HingeStatus] = field(default_factory=lambda: [H.WHOLE, H.WHOLE])
    tries: int = 0
    steps: list[tuple[str, Outcome, str]] = field(default_factory=list)


class Doors(Coordinator[Door, DoorStatus, HingeStatus]):
    def __init__(self, table: Lifecycle[DoorStatus, HingeStatus]) -> None:
        super().__init__(table, since=lambda entered: entered)

    def standing(self, entity: Door) -> Standing[DoorStatus]:
        return Standing(entity.name, entity.status, 0.0, entity.tries)

    def children(self, entity: Door) -> list[HingeStatus]:
        return entity.hinges

    def options(
        self, row: HandlerRow[DoorStatus, HingeStatus] | PromotionRow[DoorStatus, HingeStatus], entity: Door
    ) -> HandlerOptions:
        del entity
        return resolve_options(row)

    def apply(self, entity: Door, step: Step, to: TransitionStatus[DoorStatus, HingeStatus]) -> None:
        entity.steps.append((step.phase, step.outcome, step.message))
        entity.status = to.status or entity.status
        entity.hinges = [to.children or hinge for hinge in entity.hinges]


@dataclass
class Looked:
    """What is said of doors: never that one was passed over."""

    said: dict[str, Outcome]

    def reports(self) -> Iterator[Report]:
        return (Report(name, said, message="creaks") for name, said in self.said.items())


@dataclass
class Says:
    row: HandlerRow[DoorStatus, HingeStatus]
    result: Reports | None
    given: list[str] = field(default_factory=list)

    def execute(self, targets: Sequence[Door], now: float) -> Reports:
        del now
        self.given += [door.name for door in targets]
        if self.result is None:
            raise LookupError(NOTHING)
        return self.result


@pytest.mark.parametrize(
    ("said", "status", "hinge"),
    [
        (Outcome.SUCCESS, D.SHUT, H.WHOLE),
        (Outcome.FAILURE, D.STUCK, H.BROKEN),
    ],
)
def test_a_kind_of_its_own_moves_by_its_own_results(said: Outcome, status: DoorStatus, hinge: HingeStatus) -> None:
    door = Door("a")
    Doors(DOORS).run(Says(CHECK, Looked({"a": said})), [door], 100.0)
    assert (door.status, door.hinges, door.steps) == (status, [hinge] * 2, [("CheckDoors", said, "creaks")])


@pytest.mark.parametrize("said", [None, Outcome.SKIPPED, Outcome.EXPIRED, Outcome.GIVE_UP, Outcome.NEED_RETRY])
def test_what_a_kind_does_not_have_changes_and_records_nothing_however_late_it_is(said: Outcome | None) -> None:
    door = Door("a", tries=9)
    Doors(DOORS).run(Says(CHECK, Looked({"a": said} if said else {})), [door], 100.0)
    assert (door.status, door.steps) == (D.AJAR, [])


def test_a_handler_that_raises_has_failed() -> None:
    door = Door("a", D.SHUT)
    Doors(DOORS).run(Says(CHECK, None), [door], 100.0)
    assert (door.status, door.steps) == (D.STUCK, [("CheckDoors", Outcome.FAILURE, NOTHING)])


def test_only_targets_with_such_a_child_are_given_to_a_handler() -> None:
    doors = [Door("a"), Door("b", D.STUCK), Door("c", hinges=[H.BROKEN])]
    handler = Says(CHECK, Looked({}))
    Doors(DOORS).run(handler, doors, 0.0)
    assert handler.given == ["a"]


@pytest.mark.parametrize(
    ("door", "now", "status"),
    [
        (Door("a", D.STUCK, [H.BROKEN, H.BROKEN]), 0.0, D.GONE),
        (Door("a", D.STUCK, [H.BROKEN, H.WHOLE]), 0.0, D.STUCK),
        (Door("a", D.AJAR), 50.0, D.AJAR),
        (Door("a", D.AJAR), 51.0, D.SHUT),
    ],
)
def test_children_and_time_promote(door: Door, now: float, status: DoorStatus) -> None:
    Doors(DOORS).promote(door, now)
    assert door.status is status


@pytest.mark.parametrize(
    "result",
    [
        HandlerResult(successes=("nobody", "a")),
        HandlerResult(successes=("a",), failures={"nobody": ("E", "no such door")}),
        HandlerResult(successes=("a",), skipped={"nobody": "waits", "a": "said twice"}),
    ],
)
def test_an_unknown_id_in_a_result_harms_nobody_and_is_logged(
    result: HandlerResult, caplog: pytest.LogCaptureFixture
) -> None:
    door, other = Door("a"), Door("b")
    Doors(DOORS).run(Says(CHECK, result), [door, other], 0.0)
    assert (door.status, len(door.steps), other.steps) == (D.SHUT, 1, [])
    (said,) = caplog.messages
    assert said.startswith("handler")
    assert "not given: ['nobody'" in said


@pytest.mark.parametrize(("now", "outcome"), [(1.0, None), (1.5, Outcome.EXPIRED)])
def test_a_target_the_handler_does_not_mention_expires_like_one_it_skips(now: float, outcome: Outcome | None) -> None:
    judged = Lifecycle(EntityKind.ATTEMPT, JUDGED, (CHECK,))
    door = Door("a")
    Doors(judged).run(Says(CHECK, HandlerResult()), [door], now)
    assert [step[1] for step in door.steps] == ([outcome] if outcome else [])
