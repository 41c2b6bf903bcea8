"""The case runner on job sets and Jobs: right expectations pass, wrong ones fail, what it cannot know is skipped."""

from __future__ import annotations

from typing import Any

import pytest

from tools.cases.checkers import check
from tools.cases.results import Skip


def jobset(events: list[Any], expect: dict[str, Any], kind: str = "failure-policy", **spec: object) -> dict[str, Any]:
    groups = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 2}]
    case = {"name": "js", "spec": {"replicatedJobs": groups, **spec}}
    return {"id": "X", "kind": kind, "jobset": case, "event": events, "expect": expect}


def job(event: dict[str, Any], expect: dict[str, Any], **spec: object) -> dict[str, Any]:
    return {"id": "J", "kind": "job", "jobset": {"job": {"parallelism": 1, **spec}}, "event": [event], "expect": expect}


def backoff(event: dict[str, Any], expect: dict[str, Any]) -> dict[str, Any]:
    case = {"job": {"backoff": {"baseSeconds": 10, "maxSeconds": 600}}}
    return {"id": "B", "kind": "backoff", "jobset": case, "event": [event], "expect": expect}


FAIL_A = {"do": "jobFailed", "job": "js-a-0", "reason": "BackoffLimitExceeded"}
ONCE = {"maxRestarts": 1}
FAILED_POD = {"do": "podsObserved", "pods": [{"phase": "Failed"}]}
CASES: list[tuple[dict[str, Any], bool]] = [
    (jobset([FAIL_A], {"restarts": 1, "recreated": "all"}, failurePolicy=ONCE), True),
    (jobset([FAIL_A], {"restarts": 0}, failurePolicy=ONCE), False),
    (jobset([FAIL_A], {"recreated": ["js-a-0"]}, failurePolicy=ONCE), False),
    (jobset([FAIL_A], {"terminalState": "Failed", "conditions": [{"type": "Failed", "reason": "FailedJobs"}]}), True),
    (jobset([FAIL_A], {"conditions": [{"type": "Failed", "reason": "ReachedMaxRestarts"}]}), False),
    (jobset([{"do": "observe"}], {"jobCount": 3}, kind="startup"), True),
    (jobset([{"do": "observe"}], {"after": [{"jobCount": 2}]}, kind="startup"), False),
    (jobset([{"do": "submit"}], {"rejected": False}, kind="validation"), True),
    (jobset([{"do": "submit"}], {"rejected": True, "error": "x"}, kind="validation"), False),
    (jobset([], {"rejected": True, "error": "Unsupported"}, "validation", successPolicy={"operator": "No"}), True),
    (job(FAILED_POD, {"failed": 1, "active": 1, "conditions": []}, backoffLimit=1), True),
    (job(FAILED_POD, {"failed": 1, "conditions": []}, backoffLimit=0), False),
    (job(FAILED_POD, {"active": 0}, backoffLimit=1), False),
    (backoff({"do": "consecutiveFailures", "count": 3}, {"remainingSeconds": 40}), True),
    (backoff({"do": "consecutiveFailures", "count": 3}, {"remainingSeconds": 20}), False),
]  # fmt: skip
SKIPPED = [
    jobset([{"do": "fly"}], {"restarts": 0}),
    jobset([{"do": "observe"}], {"colour": "green"}),
    jobset([], {}, kind="placement"),
    job({"do": "fly"}, {"failed": 1}),
    backoff({"do": "fly"}, {"remainingSeconds": 1}),
]


@pytest.mark.parametrize(("case", "right"), CASES)
def test_only_what_is_so_passes(case: dict[str, Any], right: bool) -> None:  # noqa: FBT001 - pytest passes it by position
    assert (not check(case)) is right


@pytest.mark.parametrize("case", SKIPPED)
def test_what_no_checker_knows_is_skipped_with_a_reason(case: dict[str, Any]) -> None:
    with pytest.raises(Skip, match=r"\w{3,}"):
        check(case)
