"""How sessions wait, start, are ended and preempted; cases of BEP-1033 and BEP-1055 are named by their ids."""

from __future__ import annotations

from itertools import groupby, pairwise

import pytest

from holdfast.domain.job import JobState, Queue, Resources
from holdfast.domain.lifecycle import EntityKind, Outcome, RunStatus
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import RetryState, SessionResult, SessionStatus
from holdfast.domain.sessions.policy import SessionRetryPolicy
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import Container, NodeInfo, RunOrder
from holdfast.ports.requests import RequestKind
from tests.reading import steps_of
from tests.unit.conftest import Lab, exits
from tests.unit.test_session_chains import chain, enqueue, statuses, told

WHOLE, HUGE = Resources(4000), Resources(64_000)
ONCE = SessionRetryPolicy()
S = SessionStatus
FOREVER = SimulatedRun(duration_s=None)


def waits(lab: Lab, job: str) -> str:
    """Return why a session waits, as the one row of its history says."""
    [row] = steps_of(lab.store, EntityKind.SESSION, f"{job}/0")
    assert (row.outcome, row.to_status) == (Outcome.SKIPPED, S.PENDING)
    return row.message


def plain(order: RunOrder) -> Container:
    """Return a kernel's program without the ids that its environment names."""
    ids = {"BACKENDAI_SESSION_ID", "BACKENDAI_KERNEL_ID"}
    return evolve(order.main, env={name: value for name, value in order.main.env.items() if name not in ids})


def status(lab: Lab, job: str) -> SessionStatus:
    return chain(lab, job)[-1].status


def test_a_session_that_finds_no_place_has_not_failed_and_says_what_is_short(lab: Lab) -> None:
    """SL-002."""
    first = enqueue(lab, "first", ONCE, FOREVER, resources=WHOLE)
    second = enqueue(lab, "second", ONCE, FOREVER, resources=WHOLE)
    lab.pass_s(5)
    assert status(lab, first) is S.RUNNING
    assert waits(lab, second) == "needs 4 cpu, the largest free node has 0"


def test_without_any_node_all_sessions_wait(lab: Lab) -> None:
    """SL-005."""
    lab.use()
    jobs = [enqueue(lab, f"session{cpu}", ONCE, FOREVER, resources=Resources(cpu)) for cpu in (1000, 2000)]
    lab.pass_s(5)
    assert [waits(lab, job) for job in jobs] == ["no executor has reported a node yet"] * 2


@pytest.mark.parametrize(
    ("limit_s", "expected"),
    [
        pytest.param(60.0, (S.CANCELLED, SessionResult.FAILURE, "scheduler_timeout", RetryState.NONE), id="SL-008"),
        pytest.param(None, (S.PENDING, SessionResult.UNDEFINED, None, RetryState.NONE), id="SL-009"),
    ],
)
def test_a_session_waits_for_a_place_as_long_as_its_limit_says(
    lab: Lab, limit_s: float | None, expected: tuple[object, ...]
) -> None:
    job = enqueue(lab, "big", ONCE, FOREVER, resources=HUGE, scheduling_timeout_s=limit_s)
    lab.pass_s(61)
    assert told(chain(lab, job)[0]) == expected


def test_a_session_is_terminating_until_its_last_kernel_is_reported_gone(lab: Lab) -> None:
    """SL-010."""
    job = enqueue(lab, "pair", ONCE, SimulatedRun(duration_s=None, term_delay_s=20.0), gang=2, grace_s=60.0)
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(10)
    assert status(lab, job) is S.TERMINATING
    assert {run.status for run in lab.runs(job)} == {RunStatus.TERMINATING}
    lab.pass_s(15)
    assert status(lab, job) is S.TERMINATED


def test_a_kernel_that_no_node_has_got_ends_with_its_session(lab: Lab) -> None:
    """SL-011."""
    job = enqueue(lab, "waiting", ONCE, FOREVER, resources=HUGE)
    lab.pass_s(3)
    lab.ask(RequestKind.CANCEL, job)
    lab.pass_s(3)
    [session] = chain(lab, job)
    [kernel] = lab.store.kernels_of([session.id])[session.id]
    assert (session.status, kernel.status) == (S.CANCELLED, RunStatus.CANCELLED)


def test_a_session_that_does_not_start_keeps_no_other_from_starting_and_gives_up_in_time(lab: Lab) -> None:
    """SL-015."""
    hangs = enqueue(lab, "hangs", ONCE, SimulatedRun(start_delay_s=10_000.0), resources=Resources(1000))
    other = enqueue(lab, "other", ONCE, FOREVER, resources=Resources(1000))
    lab.pass_s(10)
    assert (status(lab, hangs), status(lab, other)) == (S.CREATING, S.RUNNING)
    lab.pass_s(620, every_s=10.0)
    assert told(chain(lab, hangs)[0])[:3] == (S.CANCELLED, SessionResult.FAILURE, "scheduler_timeout")
    assert status(lab, other) is S.RUNNING


@pytest.mark.parametrize("name", ["SL-017", "SL-018"])
def test_a_kernel_is_given_up_once_its_node_says_that_it_has_it_no_longer(lab: Lab, name: str) -> None:
    job = enqueue(lab, "stale", ONCE, FOREVER)
    lab.pass_s(3)
    if name == "SL-018":
        lab.pass_s(30)
    else:
        lab.transport.broken = True
        lab.clock.time += 30
        lab.tick()
    assert status(lab, job) is S.RUNNING
    if name == "SL-017":
        lab.transport.broken = False
        lab.use(NodeInfo("n0", Resources(4000, 8 << 30)))
        lab.pass_s(10)
        assert told(chain(lab, job)[0])[1:3] == (SessionResult.FAILURE, "agent_transient")


def test_sessions_that_find_a_place_together_are_stored_together(lab: Lab) -> None:
    """SQ-013."""
    lab.step()
    jobs = [enqueue(lab, f"session{number}", ONCE, FOREVER, resources=Resources(1000)) for number in range(3)]
    written = lab.tick().written
    assert written.jobs.keys() == {*jobs}
    assert {job.state for job in written.jobs.values()} == {JobState.RUNNING}


def test_a_program_starts_once_with_its_time_limit_on_the_main_kernel(lab: Lab) -> None:
    """SP-020."""
    limited = enqueue(lab, "limited", ONCE, exits(0), deadline_s=30.0)
    unlimited = enqueue(lab, "unlimited", ONCE, exits(0))
    lab.pass_s(10)
    assert [(order.job_id, order.rank, order.deadline_s) for order in lab.orders] == [
        (limited, 0, 30.0),
        (unlimited, 0, None),
    ]


def test_nothing_is_preempted_because_something_more_important_waits(lab: Lab) -> None:
    """PR-001."""
    job = enqueue(lab, "modest", ONCE, FOREVER, resources=WHOLE)
    lab.pass_s(3)
    other = enqueue(lab, "important", ONCE, FOREVER, resources=WHOLE, priority=100)
    lab.pass_s(120, every_s=10.0)
    assert (status(lab, job), status(lab, other)) == (S.RUNNING, S.PENDING)


def test_a_preempted_session_waits_again_with_its_id_and_runs_later(lab: Lab) -> None:
    """PR-005."""
    job = enqueue(lab, "victim", ONCE, exits(0, after_s=20.0), priority=3)
    lab.pass_s(3)
    [before] = chain(lab, job)
    lab.ask(RequestKind.PREEMPT, job, payload="n0")
    lab.pass_s(60)
    [after] = chain(lab, job)
    assert (after.id, after.priority, after.policy) == (before.id, before.priority, before.policy)
    assert (after.status, after.result) == (S.TERMINATED, SessionResult.SUCCESS)
    way = [step for step, _ in groupby(statuses(lab, EntityKind.SESSION, f"{job}/0"))]
    assert way[way.index("RUNNING") :][:4] == ["RUNNING", "TERMINATING", "PENDING", "SCHEDULED"]


def test_a_retry_is_the_same_session_again_but_for_its_ids_and_times(lab: Lab) -> None:
    """RD-003."""
    policy = SessionRetryPolicy(max_retries=1, retry_delay=0.001)
    job = enqueue(lab, "again", policy, exits(1), gang=2, env={"A": "b"}, resources=Resources(500))
    lab.pass_s(30)
    parent, child = chain(lab, job)
    theirs = {name for name in parent.__struct_fields__ if getattr(parent, name) != getattr(child, name)}
    assert theirs <= {
        "id", "retry_count", "creation_id", "first_attempt", "created_at", "started_at", "terminated_at",
        "status_since", "status_info", "retry_state", "retry_at",
    }  # fmt: skip
    kernels = lab.store.kernels_of([parent.id, child.id])
    assert len({kernel.id for of in kernels.values() for kernel in of}) == 4
    orders = [[order for order in lab.orders if order.attempt == number] for number in (1, 2)]
    first, second = ([(order.rank, order.size, order.resources, plain(order)) for order in part] for part in orders)
    assert first == second


@pytest.mark.parametrize("name", ["RD-006", "RD-007"])
def test_a_chain_goes_on_over_restarts_once_for_each_retry(lab: Lab, name: str) -> None:
    policy = SessionRetryPolicy(max_retries=2, retry_delay=20.0)
    job = enqueue(lab, "chain", policy, exits(1))
    for _ in range(80):
        lab.pass_s(1)
        if name == "RD-007":
            lab.restart_controller()
    sessions = chain(lab, job)
    root = sessions[0].creation_id
    assert [session.creation_id for session in sessions] == [root, f"{root}:retry:1", f"{root}:retry:2"]
    for parent, child in pairwise(sessions):
        assert parent.terminated_at is not None
        assert 20.0 <= child.created_at - parent.terminated_at <= 26.0


def test_a_retry_is_under_the_limit_of_its_project_and_its_parent_is_not(lab: Lab) -> None:
    """RD-011."""
    lab.store.put_entry(Queue("default", max_running_jobs=1))
    policy = SessionRetryPolicy(max_retries=1, retry_delay=5.0)
    job = enqueue(lab, "fails", policy, exits(1))
    lab.pass_s(3)
    other = enqueue(lab, "other", ONCE, exits(0, after_s=20.0))
    lab.pass_s(12)
    assert (status(lab, job), status(lab, other)) == (S.PENDING, S.RUNNING)
    assert "limit of 1 running jobs" in lab.job(job).reason
    lab.pass_s(30)
    assert (status(lab, job), status(lab, other)) == (S.TERMINATED, S.TERMINATED)
