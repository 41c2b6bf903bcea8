"""What a token tells that is for the work of one place: nothing of any other, whosever it is, whatever is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.access import Principal, Role
from holdfast.domain.access.people import Limit
from holdfast.domain.record import evolve
from holdfast.service.access.scopes import read_scopes
from tests.integration.others_stage import BEN, HER, LAB, MARK, Stage, staged
from tests.integration.test_what_others_see import ABSENT, TAKEN, Answers, _told, calls, told

if TYPE_CHECKING:
    from collections.abc import Iterator

SCOPES, WRONG = read_scopes(["*@job:group=own/", "watch@device", "watch@node", "watch@queue", "watch@server"])
LOOKERS = {
    "another user": evolve(BEN, limit=Limit(Role.USER, SCOPES)),
    "whose work it is": evolve(HER, limit=Limit(Role.USER, SCOPES)),
    "an admin": evolve(LAB, limit=Limit(Role.ADMIN, SCOPES)),
}


FIRST, *OTHERS = LOOKERS


@pytest.fixture(scope="module", params=[FIRST, *(pytest.param(each, marks=pytest.mark.slow) for each in OTHERS)])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    looker: Principal = LOOKERS[request.param]
    with staged(tmp_path_factory.mktemp("scoped"), "everything", looker) as found:
        yield found


@pytest.fixture(scope="module")
def answers(stage: Stage) -> Answers:
    return [(call, call.sent(stage.ben)) for call in calls(stage)]


def test_no_answer_to_a_token_of_one_place_says_anything_of_another(answers: Answers) -> None:
    assert WRONG == []
    assert len({call.operation for call, _ in answers}) >= 60, "every operation that is described"
    leaks = {(call.operation, *call.query, *told(one, call)) for call, one in answers if told(one, call)}
    own_name = {leak for leak in leaks if leak[-1] == "zqann"}  # who shows it, in a refusal
    assert leaks - own_name == set()


def test_what_a_token_is_not_for_answers_as_what_is_not_there(stage: Stage, answers: Answers) -> None:
    absent = {}
    different = set()
    for call, here in answers:
        names_who_asks = stage.ben_name in {call.value, ABSENT} or (call.value == "zq" and "zq" in stage.ben_name)
        if call.value == ABSENT or call.operation in TAKEN or names_who_asks:
            continue
        other = call.with_value(f"{ABSENT}=x" if "=" in call.value else ABSENT)
        key = (other.method, other.address, str(other.query))
        if key not in absent:
            absent[key] = other.sent(stage.ben)
        nowhere = absent[key]
        if here.status_code != nowhere.status_code or _told(here, call.value) != _told(nowhere, other.value):
            different.add((call.operation, *call.query, call.value, here.status_code, nowhere.status_code))
    assert different == set()


def test_nothing_was_done_to_what_the_token_is_not_for(stage: Stage, answers: Answers) -> None:
    assert answers
    stage.lab.pass_s(3.0)
    for name in ("zqjob", "zqkube"):
        assert stage.done(stage.her.get(f"/api/v1/jobs/{name}"))["state"] == "Running"
    assert stage.done(stage.her.get("/api/v1/arrays/zqarray"))["state"] == "Running"
    assert stage.done(stage.her.get("/api/v1/jobsets/zqset"))["state"] == "Running"


def test_what_the_token_is_for_is_seen_and_steered(stage: Stage) -> None:
    by = stage.ben
    assert [one["name"] for one in stage.done(by.get("/api/v1/jobs?tasks=false"))["items"]] == ["mine"]
    assert [one["name"] for one in stage.done(by.get("/api/v1/arrays"))["items"]] == ["own"]
    assert stage.done(by.get("/api/v1/jobsets"))["items"] == []
    kinds = {one["subject"] for one in stage.done(by.get("/api/v1/events"))["items"] if one.get("subject")}
    assert not any(MARK.search(kind) for kind in kinds)
    assert kinds
    stage.done(by.post("/api/v1/jobs/mine/hold"))
    stage.done(by.post("/api/v1/arrays/own/cancel"))
