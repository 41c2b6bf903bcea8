"""The table of Armada's document on real programs: budgets of their own, and one cap over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.armada_stage import DoorServer, door
from tests.e2e.test_armada_preemption import RUNS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["door"]
CONFIGURATION = """
scheduling:
  retryPolicy:
    enabled: true
    globalMaxRetries: 20
    defaultBackoff: {initialDelay: 0s, maxDelay: 10m, multiplier: 2.0}
"""
POLICIES = """
apiVersion: armadaproject.io/v1
kind: RetryPolicy
metadata: {name: infra}
spec:
  retryLimit: 10
  defaultAction: Fail
  rules:
    - {action: Retry, onConditions: [Preempted]}
    - {action: Retry, onConditions: [Evicted]}
---
apiVersion: armadaproject.io/v1
kind: RetryPolicy
metadata: {name: ml-training}
spec:
  retryLimit: 5
  defaultAction: Fail
  rules:
    - {action: Retry, onConditions: [OOMKilled], retryLimit: 3}
    - {action: Retry, onExitCodes: {operator: In, values: [7]}, retryLimit: 100}
"""
SUBMITTED = """
TOO_MUCH = "import time; held = b'x' * (256 << 20); time.sleep(1000)"
PROGRAM = f'test "$HOLDFAST_ATTEMPT" -le {preempted} && exec sleep 1000; exec {python} -c "{TOO_MUCH}"'
[job] = submitted("ml", "s", item("sh", "-c", PROGRAM))
def runs():
    return client.get_job_details([job]).job_details[job].job_runs
for number in range(1, preempted + 1):
    while not (len(found := runs()) == number and found[0].state == job_pb2.RUN_STATE_RUNNING):
        time.sleep(0.02)
    client.preempt_jobs("ml", "s", job)
while states([job])[job] != "FAILED":
    time.sleep(0.05)
done([job, client.get_job_errors([job]).job_errors[job], [job_pb2.JobRunState.Name(run.state) for run in runs()]])
"""


@pytest.fixture
def set_up(door: DoorServer, tmp_path: Path) -> DoorServer:
    file = tmp_path / "armada.yaml"
    file.write_text(CONFIGURATION)
    door.environ = {**door.environ, "HOLDFAST_ARMADA_CONFIG": str(file)}
    client = door.start()
    with client:
        client.put_settings(
            {**client.settings().model_dump(by_alias=True, mode="json"), "access": {"admin": ["user:ann"]}}
        )
    assert door.run("create", "-f", "-", text=POLICIES).returncode == 0
    made = door.run("create", "queue", "ml", "--retry-policy", "infra,ml-training")
    assert made.returncode == 0, made.stderr
    return door


def counters(door: DoorServer, job: str) -> dict[str, int]:
    """What was counted, by policies and what their rules are about."""
    with door.client() as client:
        return {name.rpartition("-")[0]: count for name, count in client.job(job).counters.items()}


@pytest.mark.slow
def test_a_job_is_preempted_ten_times_and_out_of_memory_three_times_and_the_fourth_fails_it(
    set_up: DoorServer,
) -> None:
    import sys  # noqa: PLC0415 - the Python that the program is

    given = f"python, preempted = {sys.executable!r}, 10\n"
    job, error, runs = set_up.stock(RUNS + given + SUBMITTED)
    assert "policy retry limit exceeded (3/3)" in error
    assert runs == ["RUN_STATE_FAILED"] * 4 + ["RUN_STATE_PREEMPTED"] * 10
    assert counters(set_up, job) == {"infra/preempted": 10, "ml-training/oomkilled": 3}


def test_the_twenty_first_retry_is_stopped_by_the_cap_over_all_rules(set_up: DoorServer) -> None:
    found: Any = set_up.stock(
        RUNS
        + """
[job] = submitted("ml", "s", item("sh", "-c", "exit 7"))
while states([job])[job] != "FAILED":
    time.sleep(0.05)
done([job, client.get_job_errors([job]).job_errors[job]])
"""
    )
    assert "global max retries exceeded (20/20)" in found[1]
    assert counters(set_up, found[0]) == {"ml-training/exit-7": 20}
