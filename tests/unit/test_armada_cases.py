"""Armada's cases: each passes, or is listed as different or as not understood, with the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.cases.checkers import check
from tools.cases.deviations import DEVIATIONS
from tools.cases.results import Deviates, Skip

ROOT = Path(__file__).resolve().parents[2]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/data/cases/armada.json").read_text())
MORE: list[dict[str, Any]] = json.loads((ROOT / "tests/data/cases/armada-more.json").read_text())
DIFFERENT = {
    "design-pod-name-flag-off",
    "head-delete-action-failed-pod",
    "head-delete-action-legacy-check-also-matches",
    "head-delete-action-running-pod",
    "head-sched-flag-off-lease-expiry",
    "head-sched-memory-other-kind-skipped",
}
NOT_UNDERSTOOD = {
    "e2e-limit-exceeded",
    "e2e-oom-memory-bump",
    "e2e-fail-fast",
    "head-cli-get-output-is-valid-create-input",  # e2e/test_armada_command
}


def named(name: str) -> dict[str, Any]:
    return next(case for case in CASES if case["id"] == name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_every_case_passes_or_is_listed(case: dict[str, Any]) -> None:
    if case["id"] in DIFFERENT:
        with pytest.raises(Deviates):
            check(case)
    elif case["id"] in NOT_UNDERSTOOD:
        with pytest.raises(Skip):
            check(case)
    else:
        assert check(case) == []


@pytest.mark.parametrize("case", MORE, ids=lambda case: case["id"])
def test_cases_of_the_same_kinds_with_other_numbers_orders_and_phrases_pass(case: dict[str, Any]) -> None:
    assert check(case) == []


def test_every_case_is_there_once() -> None:
    names = [case["id"] for case in CASES]
    assert len(names) == len(set(names)) == 156
    assert set(names) >= DIFFERENT | NOT_UNDERSTOOD


def test_the_page_for_armada_users_lists_every_deviation_with_its_reason() -> None:
    page = (ROOT / "docs/armada.md").read_text()
    for deviation in DEVIATIONS:
        assert f"- {deviation.reason[0].upper()}{deviation.reason[1:]}.\n" in page


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("head-sched-retry-events", {"action": "Fail"}),
        ("head-sched-retry-events", {"events": ["JobErrors(terminal=true)"]}),
        ("head-sched-retry-events", {"events": ["JobErrors(terminal=false, retryPolicyName=other)"]}),
        ("head-sched-retry-events", {"publicEvent": "JobFailedEvent(retryable=false)"}),
        ("head-sched-memory-static", {"memory": "2Gi"}),
        ("head-sched-missing-policy-is-legacy", {"action": "Retry"}),
        ("head-sched-lease-expiry-no-match-fails", {"messagePrefix": "Retry policy:"}),
        ("head-store-list-sorted-by-name", {"names": ["b", "a"]}),
        ("head-store-delete-is-idempotent-and-detaches", {"detached": []}),
        ("head-queue-unknown-policy-rejected-by-name", {"reason": "no such policy"}),
        ("head-queue-cordon-keeps-attachments", {"retryPolicies": []}),
        ("head-cache-failed-refresh-keeps-old", {"served": []}),
    ],
)
def test_a_case_that_expects_something_else_fails(name: str, wrong: dict[str, Any]) -> None:
    case = named(name)
    assert check({**case, "expect": {**case["expect"], **wrong}}) != []
