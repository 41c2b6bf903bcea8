"""The main job, end to end on real processes: each way a job can fail and what becomes of it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from holdfast.cli.render.describe import job_sections
from holdfast.cli.render.jobs import job_table
from tests.e2e.server import wait_until

if TYPE_CHECKING:
    from tests.e2e.conftest import Holdfast

FAIL_UNTIL = """
import os, sys
attempt = int(os.environ["HOLDFAST_ATTEMPT"])
print("attempt", attempt, flush=True)
sys.exit(0 if attempt >= int(sys.argv[1]) else int(sys.argv[2]))
"""
HOG = """
held = [bytearray(b"x" * (1 << 20)) for _ in range(120)]
print(len(held))
"""
WAIT = "import signal, sys; print('up', flush=True); signal.pause()"
GANG = """
import os, sys, time, pathlib
rank, attempt = int(os.environ["HOLDFAST_RANK"]), int(os.environ["HOLDFAST_ATTEMPT"])
print("rank", rank, "of", os.environ["HOLDFAST_SIZE"], flush=True)
if attempt == 1:
    ledger = pathlib.Path(sys.argv[1])
    (ledger / f"up-{rank}").touch()
    while len(list(ledger.glob("up-*"))) < 4:
        time.sleep(0.01)
    if rank == 2:
        sys.exit(7)
    time.sleep(60)
"""
NO_DELAY = {"initialDelay": "0s"}


def test_a_job_that_fails_twice_succeeds_on_its_third_attempt(holdfast: Holdfast) -> None:
    job = holdfast.run(FAIL_UNTIL, "3", "9", retry={"retryLimit": 3, "defaultAction": "Retry", "backoff": NO_DELAY})
    assert job.state == "Succeeded"
    assert [(attempt.number, attempt.exit_code) for attempt in job.attempts] == [(1, 9), (2, 9), (3, 0)]
    assert [attempt.decision.action for attempt in job.attempts if attempt.decision] == ["Retry", "Retry"]


def test_a_job_whose_limit_is_exhausted_fails_and_says_so(holdfast: Holdfast) -> None:
    job = holdfast.run(FAIL_UNTIL, "9", "4", retry={"retryLimit": 2, "defaultAction": "Retry", "backoff": NO_DELAY})
    assert (job.state, len(job.attempts)) == ("Failed", 3)
    assert "exit code 4: attempt 3; 2 of 2 retries are used" in job.reason


@pytest.mark.parametrize(("code", "state", "attempts"), [(5, "Failed", 1), (6, "Succeeded", 2)])
def test_an_exit_code_rule_decides_who_is_retried(holdfast: Holdfast, code: int, state: str, attempts: int) -> None:
    rules = [{"name": "transient", "action": "Retry", "onExitCodes": {"operator": "In", "values": [6]}}]
    job = holdfast.run(FAIL_UNTIL, "2", str(code), retry={"retryLimit": 3, "rules": rules, "backoff": NO_DELAY})
    assert (job.state, len(job.attempts)) == (state, attempts)


def test_a_job_killed_for_memory_comes_back_with_more(holdfast: Holdfast) -> None:
    grow = {"name": "oom", "action": "Retry", "onConditions": ["OOMKilled"], "retryLimit": 2, "backoff": NO_DELAY}
    grow["mutate"] = {"resources": {"memory": {"factor": 4, "max": "1Gi"}}}
    job = holdfast.run(HOG, resources={"cpu": 1, "memory": "64Mi"}, retry={"rules": [grow]})
    assert job.state == "Succeeded"
    assert [attempt.resources.memory for attempt in job.attempts] == ["64Mi", "256Mi"]
    assert job.attempts[0].cause == "oom_killed"
    assert "OOMKilled" in job.attempts[0].conditions


def test_a_gang_restarts_as_a_whole_and_counts_once(holdfast: Holdfast) -> None:
    job = holdfast.run(
        GANG,
        str(holdfast.folder),
        gang=4,
        resources={"cpu": 0.5},
        retry={"retryLimit": 1, "defaultAction": "Retry", "backoff": NO_DELAY},
    )
    assert (job.state, job.retries, len(job.attempts)) == ("Succeeded", 1, 2)
    first = job.attempts[0]
    assert first.exit_code == 7
    assert [run.ended_by for run in first.runs if run.rank != 2] == ["cascade"] * 3
    assert len({run.uid for attempt in job.attempts for run in attempt.runs}) == 8


def test_a_job_over_its_deadline_is_stopped_and_judged(holdfast: Holdfast) -> None:
    job = holdfast.run(WAIT, deadline="300ms")
    assert (job.state, job.attempts[0].cause) == ("Failed", "execution_timeout")
    assert "DeadlineExceeded" in job.reason


def test_a_job_over_its_total_deadline_is_not_retried(holdfast: Holdfast) -> None:
    job = holdfast.run(
        WAIT, totalDeadline="400ms", retry={"retryLimit": 9, "defaultAction": "Retry", "backoff": NO_DELAY}
    )
    assert (job.state, len(job.attempts)) == ("Failed", 1)
    assert "total deadline" in job.reason


def test_a_held_job_waits_for_a_person_and_goes_on_when_released(holdfast: Holdfast) -> None:
    hold = {"name": "ask", "action": "Hold", "onExitCodes": {"operator": "In", "values": [3]}, "reason": "look first"}
    job = holdfast.run(FAIL_UNTIL, "2", "3", retry={"rules": [hold]})
    assert (job.state, len(job.attempts)) == ("Held", 1)
    assert "look first" in job.reason
    holdfast.client.release(job.id)
    assert holdfast.wait(job.id, lambda view: view.state == "Succeeded").attempt == 2


def test_progress_is_shown_while_a_program_runs(holdfast: Holdfast) -> None:
    program = 'echo "step 1" > "$HOLDFAST_PROGRESS_FILE"; sleep 1000'
    job = holdfast.client.submit({"name": "slow", "shell": program}).id
    wait_until(lambda: holdfast.client.attempts(job), "an attempt")
    wait_until(lambda: holdfast.client.job(job).attempts[0].runs[0].progress == "step 1", "its progress")
    view = holdfast.client.job(job)
    assert view.state == "Running"
    columns, rows = job_table([view], now_s=0.0, wide=True)
    assert dict(zip(columns, rows[0], strict=True))["PROGRESS"] == "step 1"
    assert "step 1" in dict(job_sections(view, now_s=0.0))["Runs of attempt 1"][1][0]
    holdfast.client.cancel(job)


def test_a_cancelled_job_never_retries(holdfast: Holdfast) -> None:
    job = holdfast.submit(WAIT, retry={"retryLimit": 9, "defaultAction": "Retry"})
    holdfast.wait(job, lambda view: view.state == "Running" and bool(view.attempts[0].runs[0].started_at))
    holdfast.client.cancel(job, reason="not needed")
    view = holdfast.ended(job)
    assert (view.state, view.reason, len(view.attempts)) == ("Cancelled", "not needed", 1)
    assert view.attempts[0].cause == "user_cancelled"


@pytest.mark.parametrize("retry", [None, {"retryLimit": 9, "defaultAction": "Retry"}])
def test_a_program_that_does_not_exist_fails_at_once(holdfast: Holdfast, retry: dict[str, object] | None) -> None:
    asked = {"name": "ghost", "command": ["/no/such/program"], **({"retry": retry} if retry else {})}
    view = holdfast.ended(holdfast.client.submit(asked).id)
    assert (view.state, [attempt.cause for attempt in view.attempts]) == ("Failed", ["validation_error"])
    assert {condition for attempt in view.attempts for condition in attempt.conditions} == {"LaunchFailed"}
    assert "/no/such/program" in view.reason


def test_lowering_one_number_stops_a_running_storm(holdfast: Holdfast) -> None:
    storm = {"retryLimit": 100000, "defaultAction": "Retry", "backoff": NO_DELAY}
    jobs = [holdfast.submit("raise SystemExit(1)", name=f"storm-{i}", retry=storm) for i in range(4)]
    for job in jobs:
        holdfast.wait(job, lambda view: view.attempt >= 3)
    holdfast.settings({"globalMaxRetries": 0})
    views = [holdfast.ended(job) for job in jobs]
    assert {view.state for view in views} == {"Failed"}
    assert all("the retry limit is 0 (globalMaxRetries)" in view.reason for view in views)


def test_a_scheduling_timeout_is_a_failure_with_the_reason_it_waited_for(holdfast: Holdfast) -> None:
    job = holdfast.run(WAIT, resources={"cpu": 4096}, schedulingTimeout="200ms")
    assert (job.state, job.attempts[0].cause) == ("Failed", "scheduler_timeout")
    assert "needs 4096 cpu" in job.reason


def test_why_explains_every_rule_that_was_looked_at(holdfast: Holdfast) -> None:
    rules = [
        {"name": "oom", "action": "Retry", "onConditions": ["OOMKilled"]},
        {"name": "bug", "action": "Fail", "onExitCodes": {"operator": "In", "values": [2]}},
    ]
    job = holdfast.run(FAIL_UNTIL, "9", "2", retry={"rules": rules})
    decision = job.attempts[0].decision
    assert decision is not None
    assert [(rule.rule, rule.matched) for rule in decision.considered] == [("oom", False), ("bug", True)]
    assert all(rule.because for rule in decision.considered)
    assert (decision.action, decision.rule) == ("Fail", "bug")


def test_a_backoff_is_waited_for_and_shown_with_its_due_time(holdfast: Holdfast) -> None:
    wait = {"initialDelay": "1h"}
    job = holdfast.submit(FAIL_UNTIL, "2", "3", retry={"retryLimit": 1, "defaultAction": "Retry", "backoff": wait})
    view = holdfast.wait(job, lambda view: view.state == "BackOff")
    assert view.retry_at is not None
    assert view.attempts[0].decision is not None
    assert view.attempts[0].decision.delay_s == 3600.0
    holdfast.client.cancel(job)
    assert holdfast.ended(job).state == "Cancelled"


@pytest.mark.parametrize(("size", "state", "conditions"), [(200, "Succeeded", []), (400, "Failed", ["OOMKilled"])])
def test_requests_find_a_place_and_limits_end_a_program(
    holdfast: Holdfast, size: int, state: str, conditions: list[str]
) -> None:
    program = f"import time; x = bytearray(b'x') * ({size} << 20); time.sleep(0.5)"
    resources = {"requests": {"memory": "50Mi"}, "limits": {"memory": "300Mi"}}
    container = {"name": "main", "command": [sys.executable, "-c", program], "resources": resources}
    spec = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "large"}, "spec": spec}
    view = holdfast.ended(holdfast.client.submit(manifest).id)
    assert (view.state, view.attempts[-1].runs[0].conditions) == (state, conditions)
