"""Fluster's cases: each passes, or is listed as different or as not understood, with the reason."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tools.cases.checkers import check
from tools.cases.fluster_deviations import DEVIATIONS
from tools.cases.fluster_given import READERS
from tools.cases.fluster_page import told
from tools.cases.fluster_phrases import PHRASES, read_phrase
from tools.cases.results import Deviates, Skip

ROOT = Path(__file__).resolve().parents[2]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/data/cases/fluster.json").read_text())
MORE: list[dict[str, Any]] = json.loads((ROOT / "tests/data/cases/fluster-more.json").read_text())
DIFFERENT = {"FL-056", "FL-065", "FL-074", "FL-089", "FL-091", "FL-092", "FL-107"}


def named(name: str) -> dict[str, Any]:
    return next(case for case in (*CASES, *MORE) if case["id"] == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_case_passes_or_is_listed(case: dict[str, Any]) -> None:
    if case["id"] in DIFFERENT:
        with pytest.raises(Deviates):
            check(case)
    else:
        assert check(case) == []


@pytest.mark.parametrize("case", MORE, ids=lambda case: case["id"])
def test_cases_of_the_same_kinds_with_other_numbers_and_phrases_pass(case: dict[str, Any]) -> None:
    assert check(case) == []


def test_every_case_is_there_once() -> None:
    names = [case["id"] for case in CASES]
    assert len(names) == len(set(names)) == 79
    assert set(names) >= DIFFERENT


def test_the_page_for_fluster_users_lists_every_deviation_with_its_reason() -> None:
    page = (ROOT / "docs/fluster.md").read_text()
    for deviation in DEVIATIONS:
        assert f"- {deviation.reason[0].upper()}{deviation.reason[1:]}.\n" in page


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("FL-002", {"executions": 2}),
        ("FL-003", {"worker_id": "w1"}),
        ("FL-004", {"first": "SHOULD_RETRY, failure_count=2"}),
        ("FL-004", {"finished_at_ms": 4001}),
        ("FL-009", {"after_first": {"preemption_count": 2}}),
        ("FL-204", {"next_worker_failure": "FAILED terminal"}),
        ("FL-013", {"error": "no more money"}),
        ("FL-016", {"error": "INVALID_ARGUMENT"}),
        ("FL-016", {"message_contains": "another"}),
        ("FL-017", {"order": "a, b, then c"}),
        ("FL-017", {"a/d": "KILLED"}),
        ("FL-018", {"requeued": True}),
        ("FL-020", {"worker_receives_stop": False}),
        ("FL-024", {"not": "RUNNING"}),
        ("FL-030", {"137": "no retry"}),
        ("FL-035", {"filters_consulted": True}),
        ("FL-038", {"delays_s": [1, 2, 4, 8, 16, 32, 64, 64]}),
        ("FL-041", {"at_10999": "assigned"}),
        ("FL-050", {"attempts[0]": {"error": "bang"}}),
        ("FL-058", {"j1": {"preemption_count": 0}}),
        ("FL-059", {"worker_healthy": False}),
        ("FL-061", {"endpoint_lookup": ["10.0.0.1:80"]}),
        ("FL-061", {"worker.running_jobs": ["j1"]}),
        ("FL-062", {"lookup('j1/actor')": ["10.0.0.1:80"]}),
        ("FL-064", {"job": "unchanged (attempt 2)"}),
        ("FL-065", {"state": "SUCCEEDED"}),
        ("FL-066", {"ignored": False}),
        ("FL-071", {"value": "0"}),
        ("FL-072", {"FLUSTER_JOB_ID": "evil"}),
        ("FL-073", {"env_present": ["FLUSTER_PORT_GRPC"]}),
        ("FL-079", {"third": "RuntimeError 'It rains'"}),
        ("FL-080", {"ports": "kept for attempt 1"}),
        ("FL-086", {"each": "INVALID_ARGUMENT, all queued"}),
        ("FL-087", {"error": None}),
        ("FL-090", {"preemption_counts": [1, 2]}),
        ("FL-097", {"workers": ["w1"]}),
        ("FL-101", {"returns_early": True}),
        ("FL-101", {"terminal_set": ["SUCCEEDED", "FAILED"]}),
        ("FL-101", {"on_timeout": "PENDING"}),
        ("FL-103", {"budget": "preemption"}),
        ("FL-109", {"old slice reused": True}),
        ("FL-112", {"error": "NOT_FOUND"}),
        ("FL-112", {"endpoint": "inserted"}),
        ("FL-113", {"last_attempt_state": "KILLED"}),
    ],
)
def test_a_case_that_expects_something_else_does_not_pass(name: str, wrong: dict[str, Any]) -> None:
    case = named(name)
    try:
        mismatches = check({**case, "expect": {**case["expect"], **wrong}})
    except Skip:
        return
    assert mismatches != []


@pytest.mark.parametrize(
    "changed",
    [
        {"when": "sing and dance"},
        {"when": "exit 1, then sing"},
        {"when": ["exit 1", "sing"]},
        {"when": 5},
        {"when": [5]},
        {"when": "exit 300"},
        {"when": "killed by SIGNONE"},
        {"given": {"program": 5}, "when": "run to end"},
        {"given": {"max_retries_failure": 1 << 40}},
        {"given": {"user_env": 5}, "when": "job starts"},
        {"expect": {"state": 5}},
        {"given": {"max_retries_failure": 1, "weather": "fine"}},
        {"given": {"max_retries_failure": "some"}},
        {"given": {"retry": [{"weather": "fine"}]}},
        {"expect": {"weather": "fine"}},
        {"expect": {"state": "FAILED", "weather": "fine"}},
        {"expect": {}},
    ],
)
def test_a_case_of_which_anything_is_not_understood_does_not_pass(changed: dict[str, Any]) -> None:
    case = {"id": "X", "given": {}, "when": "exit 1", "expect": {"state": "FAILED"}}
    assert check(case) == []
    with pytest.raises(Skip, match="not understood"):
        check({**case, **changed})


def test_what_has_ended_does_not_run_again_because_a_case_says_so() -> None:
    for more in ("exit 1", "worker dies", "exit 0"):
        case = {"id": "X", "given": {}, "when": ["exit 1", more], "expect": {"state": "FAILED"}}
        assert "runs no more" in str(check(case))


def test_the_page_of_the_cases_lists_all_that_a_job_can_be_given() -> None:
    assert {*told()} == {*READERS}


def test_no_phrase_of_the_page_is_hidden_by_one_before_it() -> None:
    for phrase in PHRASES:
        for written in re.split(r", (?![^(]*\))", phrase.says):
            said = written.replace("[", "").replace("]", "")
            for word, value in VALUES.items():
                said = said.replace(word, value)
            assert read_phrase(said)[0][1] is phrase.act, written


VALUES = {"WORKER_FAILED": "WORKER_FAILED", "from WORKER": "from w1", "worker WORKER": "worker w1"}
VALUES |= {"(WORKER": "(w1", "dispatch WORKER": "dispatch w1", "MS": "500", "CODE": "3", "NUMBER": "2"}


def test_what_is_different_in_one_thing_has_to_be_as_the_case_says_in_all_others() -> None:
    case = named("FL-075")
    assert check({**case, "expect": {**case["expect"], "f_visible": True}}) != []
