"""The table of moves of attempts whose runs are pods, and that the controller makes no other."""

from __future__ import annotations

import pytest

from holdfast.domain.job import Attempt, JobState
from holdfast.domain.lifecycle import ATTEMPT_TERMINAL, AttemptStatus
from holdfast.domain.workloads.kubejob.job_status import END_PODS, PODS, PodsStatus, attempt_steps
from tests.unit.conftest import exits
from tests.unit.jobset_lab import SetLab, fails_first, group, manifest

A = AttemptStatus
RUNNING, STOPPING = PodsStatus.RUNNING, PodsStatus.STOPPING


@pytest.mark.parametrize(
    ("status", "pods", "to"),
    [
        (A.PENDING, set(), []),
        (A.PENDING, {RUNNING}, [A.RUNNING]),
        (A.PENDING, {STOPPING}, [A.TERMINATING]),
        (A.PENDING, {RUNNING, STOPPING}, [A.RUNNING, A.TERMINATING]),
        (A.RUNNING, {RUNNING}, []),
        (A.RUNNING, {RUNNING, STOPPING}, [A.TERMINATING]),
        (A.TERMINATING, {RUNNING, STOPPING}, []),
    ],
)
def test_an_attempt_moves_with_its_pods(status: AttemptStatus, pods: set[PodsStatus], to: list[AttemptStatus]) -> None:
    steps = attempt_steps(Attempt("j", 1, status), frozenset(pods), 5.0)
    assert [attempt.status for _, attempt in steps] == to
    assert all(attempt.status_since == step.now == 5.0 for step, attempt in steps)


def test_a_job_whose_parallelism_is_0_says_that_it_starts_no_pods_until_it_may() -> None:
    lab = SetLab()
    document = manifest(replicatedJobs=[group("w", 1, parallelism=0, completions=1)])
    lab.submit_set(document, lambda _: exits(0, after_s=5.0))
    lab.pass_s(5)
    job = lab.store.job("train-w-0")
    assert (job.state, job.reason, lab.orders) == (JobState.QUEUED, "its parallelism is 0, so it starts no pods", [])
    lab.restart_controller()
    lab.pass_s(5)
    assert lab.store.job("train-w-0") == job


def test_no_move_leads_out_of_an_attempt_that_is_over() -> None:
    assert not {status for move in PODS.promotions for status in move.targets} & ATTEMPT_TERMINAL
    assert not END_PODS.moves.keys() & ATTEMPT_TERMINAL


def test_every_move_is_reached() -> None:
    reached = {
        step.phase for status in A for step, _ in attempt_steps(Attempt("j", 1, status), frozenset(PodsStatus), 5.0)
    }
    assert reached == {move.name for move in PODS.promotions}


def test_every_step_in_the_history_of_pods_is_one_of_the_printed_table_from_a_status_it_names() -> None:
    lab = SetLab()
    printed = {row.name: row.targets for row in PODS.promotions} | {END_PODS.name: frozenset(END_PODS.moves)}
    document = manifest(replicatedJobs=[group("w", 2, backoffLimit=0)], failurePolicy={"maxRestarts": 1})
    lab.submit_set(document, fails_first("train-w-0", times=2))
    lab.pass_s(120)
    steps = [row for index in range(2) for row in lab.store.history(f"id-train-w-{index}")]
    assert {row.phase for row in steps} == set(printed)
    assert all(row.from_status in printed[row.phase] for row in steps), steps
    assert {row.to_status for row in steps if row.phase == END_PODS.name} == {"ERROR", "TERMINATED"}
