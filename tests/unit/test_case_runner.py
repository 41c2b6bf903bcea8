"""The case runner: what it prints, counts and returns, and that a wrong expectation never passes."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tools.cases.__main__ import main

ROOT = Path(__file__).resolve().parents[2]
POLICY = {
    "name": "test",
    "retryLimit": 3,
    "defaultAction": "Fail",
    "rules": [{"action": "Retry", "onConditions": ["Evicted"]}],
}
EVICTED = {"containers": [], "conditions": ["Evicted"], "category": "", "subcategory": ""}


def armada(
    kind: str, policy: object, failure: object, history: object, expect: dict[str, Any], **more: object
) -> dict[str, Any]:
    return {
        "id": f"an-{kind}-case", "kind": kind, "status": "design", "policy": policy, "failure": failure,
        "history": history, "expect": expect, **more,
    }  # fmt: skip


def engine(history: dict[str, Any], expect: dict[str, Any], **scheduler: object) -> dict[str, Any]:
    policy = {"scheduler": {"globalMaxRetries": 10, **scheduler}, "policies": [POLICY]}
    return armada("engine", policy, EVICTED, history, expect)


CATEGORIES = {"categories": [{"name": "gone", "rules": [{"onConditions": ["Evicted"], "subcategory": "node"}]}]}
RIGHT: list[dict[str, Any]] = [
    engine(
        {"failures": 1}, {"action": "Retry", "decision": "retry", "matchedRule": 0, "reason": "matched rule: Retry"}
    ),
    engine({"failures": 4}, {"action": "Fail", "reason": "policy retry limit exceeded (3/3)"}),
    engine({"retriesUsed": 0, "totalRuns": 11}, {"action": "Fail", "decision": "fail_global_limit"}),
    engine({"byRule": {"test/0": 2}, "total": 9}, {"action": "Retry", "matchedRule": "test/0", "effectiveLimit": 3}),
    engine({"failures": 1}, {"action": "Fail", "reason": "retries disabled"}, globalMaxRetries=0),
    armada("matcher", {"onConditions": ["Evicted"]}, EVICTED, None, {"matches": True}),
    armada("classifier", {"errorCategories": CATEGORIES}, EVICTED, None, {"category": "gone", "podAction": "Retain"}),
    armada("counter", None, None, {"runs": ["failed", "failed+preempted"]}, {"failures": 1}),
    armada(
        "mutation", {"mutations": {"memoryFactor": 2}}, {"containers": [["a", "1Gi"]]}, None, {"memory": {"a": "2Gi"}}
    ),
    armada("validation", {"action": "RETRY"}, None, None, {"action": "Accept", "value": "Retry"}),
    armada("validation", {"policies": [{"name": "A"}]}, None, None, {"action": "Reject", "reason": "is invalid"}),
    armada(
        "validation", {"errorCategories": {"categories": [{}]}}, None, None, {"action": "Reject", "reason": "a name"}
    ),
    armada("design", {"scheduler": {"enabled": True}}, None, {"runIndex": 2}, {"podName": "armada-<jobId>-0-2"}),
    armada(
        "design",
        {"queue": {"retryPolicies": ["a"]}, "job": {"annotations": {"armadaproject.io/retry-policy": "b,a"}}},
        None,
        None,
        {"effectivePolicies": ["a", "b"]},
    ),
    armada(
        "design",
        None,
        None,
        {"job": {"retryAfter": "now+5s"}},
        {"scheduling": "the loop skips the job until retryAfter <= now"},
    ),
]
WRONG: list[dict[str, Any]] = [
    engine({"failures": 4}, {"action": "Retry"}),
    engine({"failures": 1}, {"action": "Retry", "reason": "no rule matched"}),
    engine({"failures": 1}, {"action": "Retry", "delaySeconds": 5}),
    armada("matcher", {"onConditions": ["Evicted"]}, EVICTED, None, {"matches": False}),
    armada("classifier", {"errorCategories": CATEGORIES}, EVICTED, None, {"category": "other"}),
    armada("counter", None, None, {"runs": ["failed", "failed"]}, {"failures": 1}),
    armada(
        "mutation", {"mutations": {"memoryFactor": 2}}, {"containers": [["a", "1Gi"]]}, None, {"memory": {"a": "3Gi"}}
    ),
    armada("validation", {"action": "RETRY"}, None, None, {"action": "Reject"}),
    armada("validation", {"policies": [POLICY]}, None, None, {"action": "Reject", "reason": ""}),
    armada("validation", {"policies": [{"name": "A"}]}, None, None, {"action": "Reject", "reason": "too loud"}),
    armada("engine", {"policies": [{}]}, EVICTED, {"failures": 1}, {"action": "Fail"}),
    armada("design", {"scheduler": {"enabled": True}}, None, {"runIndex": 2}, {"podName": "armada-<jobId>-0"}),
]
SKIPPED: list[dict[str, Any]] = [
    armada("scheduler", {}, None, None, {"colour": "green"}),
    armada("storage", {"steps": ["frobnicate a"]}, None, None, {"action": "Accept"}),
    armada("cache", {"steps": ["refresh twice"]}, None, None, {"served": []}),
    armada("no-such-kind", {}, None, None, {}),
    engine({"failures": 1}, {"action": "Retry", "colour": "green"}),
    {"id": "FL-901", "given": {"retry": "absent"}, "when": ["dispatch"], "expect": {"state": "RUNNING"}},
    {"id": "EP99", "kind": "placement", "jobset": {}, "event": [], "expect": {}},
    {"question": "what is this"},
]


class Done(NamedTuple):
    """How a run of the cases ended."""

    returncode: int
    stdout: str
    stderr: str


def run(folder: Path, *arguments: str) -> Done:
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        code = main([str(folder), *arguments])
    return Done(code, out.getvalue(), err.getvalue())


def last_line(done: Done) -> str:
    return done.stdout.splitlines()[-1]


def test_right_expectations_pass_and_the_exit_code_is_0(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(RIGHT))
    done = run(tmp_path)
    assert done.stdout == f"{len(RIGHT)} passed, 0 failed, 0 different, 0 skipped\n"
    assert done.returncode == 0


def test_every_wrong_expectation_fails_with_what_was_expected_and_got(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text("\n".join(map(json.dumps, WRONG)))
    done = run(tmp_path)
    assert last_line(done) == f"0 passed, {len(WRONG)} failed, 0 different, 0 skipped"
    assert done.returncode == 1
    failures = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    assert len(failures) == len(WRONG)
    assert all("expected" in line and "got" in line for line in failures)


def test_what_cannot_be_checked_is_skipped_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps(SKIPPED))
    done = run(tmp_path)
    assert last_line(done) == f"0 passed, 0 failed, 0 different, {len(SKIPPED)} skipped"
    assert done.returncode == 0
    assert "skipped 2 cases (FL-901 ... ?): no checker knows cases of this form" in done.stdout
    assert "no engine here has a leader pod" in done.stdout
    assert "no checker knows the kind 'no-such-kind'" in done.stdout


def test_equal_reasons_are_grouped_unless_every_line_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([*SKIPPED[3:4] * 5, RIGHT[0]]))
    assert len(run(tmp_path).stdout.splitlines()) == 2
    assert len(run(tmp_path, "-v").stdout.splitlines()) == 7


def test_all_files_of_a_folder_count_and_so_does_a_single_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(RIGHT[:2]))
    (tmp_path / "b.json").write_text(json.dumps(WRONG[:1]))
    (tmp_path / "notes.txt").write_text("not a case file")
    assert last_line(run(tmp_path)) == "2 passed, 1 failed, 0 different, 0 skipped"
    assert last_line(run(tmp_path / "a.json")) == "2 passed, 0 failed, 0 different, 0 skipped"


@pytest.mark.parametrize("text", ["[1, 2]", "{", "not json"])
def test_a_file_that_holds_no_cases_is_an_error_of_its_own(tmp_path: Path, text: str) -> None:
    (tmp_path / "cases.json").write_text(text)
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("cases: ")


def test_a_missing_folder_is_an_error_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.cases", str(tmp_path / "nowhere")]
    assert subprocess.run(command, cwd=ROOT, check=False, timeout=60).returncode == 2
