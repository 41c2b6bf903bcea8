"""A job's status as Fluster tells it: counts and ids from its attempts, previous ones listed, ends by whose failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.api.connect.calls import Rpc
from holdfast.api.fluster._generated import cluster
from holdfast.api.fluster.workers import list_workers
from holdfast.app.time import SortableIds
from holdfast.compiled.codec import load_spec
from holdfast.dialects.fluster.resources import read_resources
from holdfast.dialects.fluster.retry import read_retry
from holdfast.dialects.fluster.status import FINISHED, FlusterState, status_of
from holdfast.domain.access import Principal, Role
from holdfast.domain.audit import Caller
from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import Resources
from holdfast.domain.placement.cordon import Cordon
from holdfast.domain.policy.model import BuiltIn, RetryDefaults, RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.fluster import rpc_client
from holdfast.ports.engine import NodeInfo
from holdfast.ports.requests import RequestKind
from holdfast.service.manifests.fluster import told_status
from holdfast.service.operations.backend import Backend
from holdfast.service.operations.jobs import JobOperations
from tests.integration.conftest import NoLogs
from tests.unit.conftest import NOW, ends_with, exits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.errors import Problem
    from tests.unit.conftest import Lab

LOST = ends_with(FailureCondition.NODE_LOST, EndedBy.LOST)
NEVER = ends_with(FailureCondition.LAUNCH_FAILED, EndedBy.ITSELF, started=False)
SHORT = evolve(NEVER, outcome=evolve(NEVER.outcome, containers=(ContainerResult(None, reason="OutOfFiles"),)))
FOREVER = SimulatedRun(duration_s=None)
BOOM = SimulatedRun(duration_s=1.0, outcome=RunOutcome((ContainerResult(7, reason="Error", message="boom"),)))


def submitted(
    lab: Lab,
    runs: Sequence[SimulatedRun],
    *,
    timeout_s: float | None = None,
    gang: int = 1,
    cpu: float = 1.0,
    **retry: object,
) -> str:
    """Submit a job whose attempts do these in turn, those of a gang in its first rank; the other ranks run on."""
    problems: list[Problem] = []
    policy = read_retry(retry, RetryDefaults(), problems)
    resources = read_resources({"cpu": cpu}, problems).resources
    assert policy is not None, problems
    spec = JobSpec(
        "j",
        ("true",),
        inline_policies=(policy,),
        builtin=BuiltIn.NONE,
        resources=resources,
        gang=gang,
        scheduling_timeout_s=timeout_s,
        grace_s=1.0,
    )
    return lab.submit(spec, lambda order: FOREVER if order.rank else runs[order.attempt - 1])


def status(lab: Lab, job_id: str, settings: RetrySettings = RetrySettings()) -> dict[str, Any]:  # noqa: B008 - it is frozen
    job, attempts = lab.job(job_id), lab.attempts(job_id)
    runs = [run for run in lab.runs(job_id) if attempts and run.attempt == attempts[-1].number]
    return status_of(job, load_spec(job.spec), attempts, runs, lab.clock.now(), settings)


def seen(told: dict[str, Any], *names: str) -> tuple[object, ...]:
    return tuple(told.get(name) for name in names)


OWNER = Principal("ann", roles=(Role.ADMIN,))
COUNTS = ("state", "failure_count", "preemption_count", "current_attempt_id")


def test_a_job_waits_with_its_due_time_and_then_runs_again(lab: Lab) -> None:
    job = submitted(lab, [BOOM, FOREVER], max_retries_failure=1)
    assert seen(status(lab, job), *COUNTS) == (FlusterState.PENDING, 0, 0, 0)
    lab.pass_s(0.5)
    first = status(lab, job)
    assert seen(first, *COUNTS, "worker_id", "started_at_ms") == (FlusterState.RUNNING, 0, 0, 0, "n0", NOW * 1000)
    lab.pass_s(0.6, every_s=0.1)
    waits = status(lab, job)
    assert seen(waits, *COUNTS) == (FlusterState.PENDING, 1, 0, 1)
    assert seen(waits, "worker_id", "started_at_ms", "error", "exit_code") == (None,) * 4
    assert waits["retry_available_at_ms"] == (NOW + 2) * 1000
    (attempt,) = waits["attempts"]
    assert attempt == {
        "attempt_id": 0,
        "worker_id": "n0",
        "state": FlusterState.FAILED,
        "exit_code": 7,
        "error": "boom",
        "started_at_ms": NOW * 1000,
        "finished_at_ms": (NOW + 1) * 1000,
        "is_worker_failure": False,
    }
    lab.pass_s(2.0)
    again = status(lab, job)
    assert seen(again, *COUNTS, "retry_available_at_ms") == (FlusterState.RUNNING, 1, 0, 1, 0)
    assert again["attempts"] == [attempt]


def test_a_retry_that_is_due_is_ready_before_anybody_has_looked(lab: Lab) -> None:
    job = submitted(lab, [BOOM, FOREVER], max_retries_failure=1)
    lab.pass_s(1.0)
    lab.clock.time += 60
    assert seen(status(lab, job), "state", "retry_available_at_ms") == (FlusterState.PENDING, 0)


def test_the_last_of_too_many_failures_ends_it_as_its_own(lab: Lab) -> None:
    job = submitted(lab, [exits(3), LOST, exits(3), exits(4)], max_retries_failure=2)
    lab.pass_s(60)
    told = status(lab, job)
    assert seen(told, *COUNTS, "exit_code") == (FlusterState.FAILED, 3, 1, 3, 4)
    assert [one["attempt_id"] for one in told["attempts"]] == [0, 1, 2]
    assert [one["is_worker_failure"] for one in told["attempts"]] == [False, True, False]
    assert [one["state"] for one in told["attempts"]] == [
        FlusterState.FAILED,
        FlusterState.WORKER_FAILED,
        FlusterState.FAILED,
    ]
    assert "exit_code" not in told["attempts"][1] or told["attempts"][1]["exit_code"] == 137
    assert seen(told, "max_retries_failure", "max_retries_preemption") == (2, 100)
    assert told["finished_at_ms"] > told["started_at_ms"] > 0


def test_the_last_of_too_many_losses_ends_it_as_its_workers(lab: Lab) -> None:
    job = submitted(lab, [LOST, exits(1), LOST], max_retries_failure=5, max_retries_preemption=1)
    lab.pass_s(60)
    told = status(lab, job)
    assert seen(told, *COUNTS, "worker_id") == (FlusterState.WORKER_FAILED, 1, 2, 2, "n0")
    assert told["error"].startswith("Worker n0 timed out or was lost")


@pytest.mark.parametrize(
    ("runs", "retry", "after_s", "expected"),
    [
        pytest.param(
            [exits(0)],
            {},
            1.5,
            {"state": FlusterState.SUCCEEDED, "exit_code": 0, "error": None, "finished_at_ms": (NOW + 1) * 1000},
            id="a success has its time and exit code 0",
        ),
        pytest.param(
            [exits(3), BOOM],
            {"max_retries_failure": 1},
            4.0,
            {"state": FlusterState.FAILED, "exit_code": 7, "error": "boom", "finished_at_ms": (NOW + 3) * 1000},
            id="a failed job has the error, code and time of its last failure",
        ),
        pytest.param(
            [exits(1), exits(1), exits(0)],
            {"max_retries_failure": 5},
            10.0,
            {"state": FlusterState.SUCCEEDED, "exit_code": 0, "failure_count": 2, "current_attempt_id": 2},
            id="two failures before a success are counted",
        ),
        pytest.param(
            [LOST],
            {"max_retries_failure": 0, "max_retries_preemption": 1},
            1.5,
            {"state": FlusterState.PENDING, "failure_count": 0, "preemption_count": 1, "worker_id": None},
            id="a loss within its budget is no failure",
        ),
        pytest.param(
            [LOST, exits(1), exits(1)],
            {"max_retries_failure": 1, "max_retries_preemption": 1},
            30.0,
            {"state": FlusterState.FAILED, "failure_count": 2, "preemption_count": 1},
            id="a failure too many ends a job that had a loss as failed",
        ),
        pytest.param(
            [exits(1), LOST, LOST],
            {"max_retries_failure": 1, "max_retries_preemption": 1},
            30.0,
            {"state": FlusterState.WORKER_FAILED, "failure_count": 1, "preemption_count": 2},
            id="a loss too many ends a job that had a failure as lost",
        ),
        pytest.param(
            [NEVER],
            {},
            0.5,
            {"state": FlusterState.PENDING, "failure_count": 0, "preemption_count": 0, "worker_id": None},
            id="a launch that failed leaves no worker and costs nothing",
        ),
        pytest.param(
            [LOST],
            {"max_retries_preemption": 2, "gang": 2},
            1.5,
            {"state": FlusterState.PENDING, "failure_count": 0, "preemption_count": 1},
            id="a gang that loses a worker is charged once",
        ),
        pytest.param(
            [BOOM],
            {"max_retries_failure": 2, "gang": 2},
            1.5,
            {"state": FlusterState.PENDING, "failure_count": 1, "preemption_count": 0},
            id="a gang of which a program fails is charged once",
        ),
    ],
)
def test_a_status_says_how_attempts_ended_and_what_they_cost(
    lab: Lab, runs: Sequence[SimulatedRun], retry: dict[str, Any], after_s: float, expected: dict[str, object]
) -> None:
    job = submitted(lab, runs, **retry)
    lab.pass_s(after_s, every_s=0.5)
    told = status(lab, job)
    assert {name: told.get(name) for name in expected} == expected


def test_a_job_that_never_had_a_place_is_killed_at_once_and_has_no_attempt(lab: Lab) -> None:
    job = submitted(lab, [], cpu=64.0)
    lab.pass_s(2.0)
    lab.ask(RequestKind.CANCEL, job, "Terminated by user")
    lab.pass_s(1.0)
    told = status(lab, job)
    assert seen(told, *COUNTS, "attempts") == (FlusterState.KILLED, 0, 0, 0, [])
    assert told["finished_at_ms"] >= (NOW + 2) * 1000
    assert lab.orders == []


def test_what_could_not_be_started_is_charged_to_nobody(lab: Lab) -> None:
    job = submitted(lab, [NEVER, NEVER, NEVER], max_retries_preemption=0)
    lab.pass_s(60)
    told = status(lab, job)
    assert seen(told, *COUNTS, "exit_code") == (FlusterState.WORKER_FAILED, 0, 0, 2, None)
    assert [(one["is_worker_failure"], one.get("exit_code")) for one in told["attempts"]] == [(True, None)] * 2


def test_a_node_that_is_short_of_something_is_no_failure_at_all(lab: Lab) -> None:
    job = submitted(lab, [SHORT] * 6 + [exits(0)], max_retries_preemption=0)
    lab.pass_s(200)
    assert seen(status(lab, job), *COUNTS, "exit_code") == (FlusterState.SUCCEEDED, 0, 0, 6, 0)


def test_a_job_that_finds_no_place_in_time_is_unschedulable_for_good(lab: Lab) -> None:
    lab.use(NodeInfo("n0", Resources(500, 0, 0)))
    job = submitted(lab, [exits(0)], timeout_s=300.0, max_retries_failure=5)
    lab.pass_s(310, every_s=10)
    told = status(lab, job)
    assert seen(told, *COUNTS, "attempts") == (FlusterState.UNSCHEDULABLE, 0, 0, 0, [])
    assert told["error"].startswith("Scheduling timeout exceeded (300s)")


@pytest.mark.parametrize(("wait_s", "attempts", "failures"), [(0.5, 0, 0), (1.2, 1, 1)])
def test_a_user_who_ends_it_while_it_runs_or_waits_is_final(
    lab: Lab, wait_s: float, attempts: int, failures: int
) -> None:
    job = submitted(lab, [BOOM, FOREVER], max_retries_failure=5)
    lab.pass_s(wait_s, every_s=0.1)
    lab.ask(RequestKind.CANCEL, job, "Terminated by user")
    lab.pass_s(30)
    told = status(lab, job)
    assert seen(told, *COUNTS, "error") == (FlusterState.KILLED, failures, 0, attempts, "Terminated by user")
    assert [one["state"] for one in told["attempts"]] == [FlusterState.FAILED] * attempts
    assert told["retry_available_at_ms"] == 0


def test_while_what_is_killed_still_stops_it_is_not_said_to_be_over(lab: Lab) -> None:
    job = submitted(lab, [evolve(FOREVER, term_delay_s=5.0)])
    lab.pass_s(1.0)
    lab.ask(RequestKind.CANCEL, job, "Terminated by user")
    lab.step(2)
    assert seen(status(lab, job), "state", "status_message") == (FlusterState.RUNNING, "being terminated")
    lab.pass_s(5.0)
    assert status(lab, job)["state"] == FlusterState.KILLED


def test_what_is_prepared_is_building(lab: Lab) -> None:
    job = submitted(lab, [evolve(FOREVER, prepare_s=10.0)])
    lab.pass_s(5.0)
    assert seen(status(lab, job), "state", "worker_id", "started_at_ms") == (FlusterState.BUILDING, "n0", None)
    lab.pass_s(10.0)
    assert status(lab, job)["state"] == FlusterState.RUNNING


def test_out_of_memory_is_its_own_failure_and_says_so(lab: Lab) -> None:
    job = submitted(lab, [ends_with(FailureCondition.OOM_KILLED, EndedBy.MEMORY)])
    lab.pass_s(10.0)
    told = status(lab, job)
    assert seen(told, "state", "failure_count", "exit_code") == (FlusterState.FAILED, 1, 137)
    assert "OOM" in told["error"]


def test_a_lower_cap_for_everyone_is_said(lab: Lab) -> None:
    job = submitted(lab, [BOOM, FOREVER], max_retries_failure=5)
    lab.pass_s(1.2)
    assert "globalMaxRetries" not in status(lab, job)["status_message"]
    told = status(lab, job, RetrySettings(global_max_retries=3))
    assert told["status_message"].endswith("globalMaxRetries lets a job have 3 retries in all")
    assert told["max_retries_failure"] == 5


def test_a_held_job_is_pending_and_says_why(lab: Lab) -> None:
    job = submitted(lab, [exits(0)])
    lab.ask(RequestKind.HOLD, job, "not now")
    lab.pass_s(2.0)
    assert seen(status(lab, job), "state", "status_message") == (FlusterState.PENDING, "held: not now")


def test_one_that_was_stopped_to_be_held_counts_nowhere_and_is_a_previous_attempt(lab: Lab) -> None:
    job = submitted(lab, [FOREVER, exits(0)])
    lab.pass_s(2.0)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(2.0)
    told = status(lab, job)
    assert seen(told, *COUNTS) == (FlusterState.PENDING, 0, 0, 1)
    assert [seen(one, "attempt_id", "state", "is_worker_failure") for one in told["attempts"]] == [
        (0, FlusterState.KILLED, False)
    ]
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(5.0)
    assert seen(status(lab, job), *COUNTS) == (FlusterState.SUCCEEDED, 0, 0, 1)


def test_each_final_state_is_one_that_clients_wait_for() -> None:
    assert {state for state in FlusterState if state > FlusterState.RUNNING} == FINISHED
    assert {*map(int, rpc_client.FINISHED)} == {*map(int, FINISHED)}


def test_a_look_at_a_job_decides_about_none_of_its_attempts_again(lab: Lab) -> None:
    job = submitted(lab, [exits(1)] * 3 + [FOREVER], max_retries_failure=3, initial_retry_delay_ms=0)
    lab.pass_s(10)
    backend = Backend(lab.store, lab.clock, SortableIds(), NoLogs(), OWNER)
    [detail] = JobOperations(backend).details(Caller(OWNER, 0.0), [lab.job(job)])
    assert told_status(detail, lab.clock.now(), RetrySettings())["failure_count"] == 3
    assert "explainer" not in vars(backend), "which decides again to say what was considered"


def test_a_cordoned_node_is_a_worker_that_is_not_healthy(lab: Lab) -> None:
    lab.use(*(NodeInfo(name, Resources(1000)) for name in ("n0", "n1")))
    lab.step(2)
    lab.store.put_cordon(Cordon("n1", NOW))
    backend = Backend(lab.store, lab.clock, SortableIds(), NoLogs(), OWNER)
    answer = list_workers(Rpc(backend, Caller(OWNER, 0.0)), cluster.Controller.ListWorkersRequest())
    assert {worker.worker_id: worker.healthy for worker in answer.workers} == {"n0": True, "n1": False}
