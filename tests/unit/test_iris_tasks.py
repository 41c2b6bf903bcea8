"""Tasks by Iris' door: how they are and were, and what becomes of those that an operator kicks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.api.iris._generated import job
from tests.unit.conftest import exits
from tests.unit.iris_lab import FOREVER, C, IrisLab

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TWO, AGAIN, OVER, WAITS, ENDING = "/ann/two", "/ann/again", "/ann/over", "/ann/waits", "/ann/ending"
PREEMPTED, FAILED = job.TASK_STATE_PREEMPTED, job.TASK_STATE_FAILED


@pytest.fixture
def iris() -> Iterator[IrisLab]:
    """One of two tasks, one at its second attempt, one that is over, one that ends, and one that has no place yet."""
    iris = IrisLab()
    iris.launch(TWO, replicas=2, max_retries_preemption=5)
    once = {"max_task_failures": 1, "max_retries_failure": 1}
    iris.launch(AGAIN, lambda order: exits(1) if order.attempt == 1 else FOREVER, **once)
    iris.launch(OVER, exits(0))
    iris.launch(ENDING)
    iris.pass_s(5.0)
    iris("TerminateJob", C.TerminateJobRequest(job_id=ENDING))
    iris.tick()
    iris.launch(WAITS)
    yield iris
    iris.close()


def kicked(iris: IrisLab, targets: Sequence[str], state: job.TaskState = PREEMPTED) -> list[tuple[str, bool, str]]:
    found = iris("KickTasks", C.KickTasksRequest(targets=targets, desired_state=state)).results
    return [(one.task_id, one.queued, one.detail) for one in found]


@pytest.mark.parametrize(
    ("target", "becomes"),
    [
        (TWO, [(f"{TWO}/0", True, ""), (f"{TWO}/1", True, "")]),
        (f"{TWO}/1", [(f"{TWO}/1", True, "")]),
        (f"{TWO}/1:0", [(f"{TWO}/1", True, "")]),
        (f"{TWO}/2", [("", False, "task not found")]),
        (f"{AGAIN}/0:0", [(f"{AGAIN}/0", False, "attempt 0 is not current (current is 1)")]),
        (f"{AGAIN}/0:1", [(f"{AGAIN}/0", True, "")]),
        (f"{AGAIN}/0:2", [(f"{AGAIN}/0", False, "attempt 2 is not current (current is 1)")]),
        (f"{OVER}/0", [(f"{OVER}/0", False, "task is succeeded, not running on a worker")]),
        (OVER, [(OVER, False, "job has no tasks running on a worker")]),
        (WAITS, [(WAITS, False, "job has no tasks running on a worker")]),
        (f"{WAITS}/0:0", [(f"{WAITS}/0", False, "task is pending, not running on a worker")]),
        (ENDING, [(ENDING, False, "job has no tasks running on a worker")]),
        ("/ann/nobody", [("", False, "job not found")]),
        ("/ann/nobody/0", [("", False, "task not found")]),
        ("/ann/two:3", [("", False, "a job target cannot carry an ':attempt' suffix")]),
    ],
)
def test_a_target_is_a_job_a_task_or_the_current_attempt_of_one(
    iris: IrisLab, target: str, becomes: list[tuple[str, bool, str]]
) -> None:
    assert kicked(iris, [target]) == becomes
    iris.pass_s(5.0)
    assert iris.status(TWO).preemption_count == int(target.startswith(TWO) and becomes[0][1])


def test_one_target_that_is_wrong_keeps_no_other_from_being_kicked(iris: IrisLab) -> None:
    asked = C.KickTasksRequest(targets=["bad", f"{TWO}/0", TWO], desired_state=PREEMPTED)
    results = iris("KickTasks", asked).results
    assert [(one.target, one.queued) for one in results] == [
        ("bad", False), (f"{TWO}/0", True), (TWO, True), (TWO, True),
    ]  # fmt: skip
    iris.pass_s(5.0)
    assert iris.status(TWO).preemption_count == 1


def test_what_is_kicked_to_be_preempted_runs_again_and_what_is_failed_does_not(iris: IrisLab) -> None:
    kicked(iris, [TWO])
    iris("KickTasks", C.KickTasksRequest(targets=[AGAIN], desired_state=FAILED, reason="broken"))
    iris.pass_s(5.0)
    again, ended = iris.status(TWO), iris.status(AGAIN)
    assert (iris.state(TWO), again.preemption_count, again.failure_count) == ("RUNNING", 1, 0)
    assert (iris.state(AGAIN), ended.preemption_count, ended.failure_count, ended.error) == ("FAILED", 0, 2, "broken")
    [task] = iris.tasks(AGAIN)
    assert (task.state, task.error, task.current_attempt_id) == (FAILED, "broken", 1)
    first = iris.tasks(TWO)[0].attempts[0]
    assert (first.state, first.is_worker_failure) == (PREEMPTED, True)


def test_who_says_no_reason_has_one_said(iris: IrisLab) -> None:
    kicked(iris, [TWO], FAILED)
    iris.pass_s(5.0)
    assert iris.status(TWO).error == "Kicked to failed by operator"


@pytest.mark.parametrize(
    ("targets", "state"),
    [([], PREEMPTED), ([TWO], job.TASK_STATE_RUNNING), ([f"{TWO}/0"] * 1_001, PREEMPTED)],
)
def test_a_kick_of_nothing_of_very_many_or_to_another_state_is_refused(
    iris: IrisLab, targets: list[str], state: job.TaskState
) -> None:
    asked = C.KickTasksRequest(targets=targets, desired_state=state)
    assert iris.refused("KickTasks", asked) == "INVALID_ARGUMENT"
    assert len(kicked(iris, [f"{TWO}/0"] * 1_000)) == 1_000


def test_tasks_are_listed_by_rank_with_their_attempts_and_one_is_described_alike(iris: IrisLab) -> None:
    first, second = iris.tasks(TWO)
    assert [one.task_id for one in (first, second)] == [f"{TWO}/0", f"{TWO}/1"]
    found = iris("GetTaskStatus", C.GetTaskStatusRequest(task_id=f"{TWO}/1"))
    assert found.task == second
    assert found.job_resources.cpu_millicores == 10
    assert (second.state, second.worker_id, second.can_be_scheduled) == (job.TASK_STATE_RUNNING, "n0", True)
    assert (second.backend_id, second.cluster) == ("default", "local")
    [again] = iris.tasks(AGAIN)
    assert again.current_attempt_id == 1
    assert [(one.attempt_id, one.state, one.exit_code) for one in again.attempts] == [
        (0, FAILED, 1), (1, job.TASK_STATE_RUNNING, 0),
    ]  # fmt: skip
    failed, runs = again.attempts
    assert failed.error.startswith("Exit code: 1")
    assert not failed.is_worker_failure
    assert failed.started_at.epoch_ms < failed.finished_at.epoch_ms <= runs.started_at.epoch_ms
    assert not runs.HasField("finished_at")
    assert "" not in {failed.attempt_uid, runs.attempt_uid}
    [over] = iris.tasks(OVER)
    assert (over.state, over.can_be_scheduled) == (job.TASK_STATE_SUCCEEDED, False)
    [waits] = iris.tasks(WAITS)
    assert (waits.state, [*waits.attempts], waits.can_be_scheduled) == (job.TASK_STATE_PENDING, [], True)


def test_a_task_that_is_not_there_is_not_described(iris: IrisLab) -> None:
    for name, code in ((f"{TWO}/2", "NOT_FOUND"), ("/ann/nobody/0", "NOT_FOUND"), (TWO, "INVALID_ARGUMENT")):
        assert iris.refused("GetTaskStatus", C.GetTaskStatusRequest(task_id=name)) == code
    assert iris.tasks("/ann/nobody") == []
    for name in ("", "bad"):
        assert iris.refused("ListTasks", C.ListTasksRequest(job_id=name)) == "INVALID_ARGUMENT"
