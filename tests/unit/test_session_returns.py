"""How often a session may lose its place before it starts, and how long its phases may take."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.domain.containers import Capability
from holdfast.domain.job import Queue, Resources
from holdfast.domain.lifecycle import EntityKind
from holdfast.domain.policy.model import RetrySettings
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import RetryState, SessionResult, SessionStatus
from holdfast.domain.sessions.policy import RetryEligibleCause, SessionRetryPolicy
from holdfast.domain.workloads.gang.flight import MOST_RETURNS
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.ports.engine import NodeInfo
from tests.unit.conftest import Lab, job_named
from tests.unit.test_session_chains import AT_ONCE, chain, enqueue, statuses, told

if TYPE_CHECKING:
    from collections.abc import Callable

S, R = SessionStatus, RetryState
ONCE = SessionRetryPolicy()
NEVER_PULLED, NEVER_PREPARED = SimulatedRun(pull_s=10_000.0), SimulatedRun(prepare_s=10_000.0)
IMPATIENT = {"PrepareAttempts": {"timeout_s": 10.0}}


@pytest.fixture
def preparing(lab: Lab) -> Lab:
    """A controller whose engine prepares runs, which may take ten seconds."""
    lab.use(NodeInfo("n0", Resources(4000, 8 << 30, 0)), also=[Capability.PREPARING])
    lab.store.put_settings(RetrySettings(handler_limits=IMPATIENT), None)
    return lab


def returns(lab: Lab, name: str) -> int:
    """Count how often a session came back to PENDING."""
    moves = pairwise(statuses(lab, EntityKind.SESSION, name))
    return sum(after == "PENDING" != before for before, after in moves)


def wait(lab: Lab) -> None:
    lab.pass_s(60)


def fall_silent(lab: Lab) -> None:
    """Let the executor not answer for longer than its lease, again and again."""
    for _ in range(MOST_RETURNS + 1):
        lab.pass_s(2)
        lab.transport.broken = True
        for _ in range(75):
            lab.clock.time += 1.0
            lab.tick()
        lab.transport.broken = False
    lab.pass_s(2)


@pytest.mark.parametrize(
    ("plan", "pass_time", "limit_s", "cause"),
    [
        (NEVER_PREPARED, wait, 10.0, "scheduler_timeout"),
        (NEVER_PULLED, wait, 10.0, "image_pull_failure"),
        (NEVER_PULLED, fall_silent, None, "agent_transient"),
    ],
)
def test_a_session_that_lost_its_place_three_times_fails_of_what_its_last_phase_failed_of(
    preparing: Lab, plan: SimulatedRun, pass_time: Callable[[Lab], None], limit_s: float | None, cause: str
) -> None:
    limits = {"PrepareAttempts": {"timeout_s": limit_s}}
    preparing.store.put_settings(RetrySettings(handler_limits=limits), None)
    job = enqueue(preparing, "stuck", ONCE, plan)
    pass_time(preparing)
    [session] = chain(preparing, job)
    assert told(session) == (S.CANCELLED, SessionResult.FAILURE, cause, R.NONE)
    assert session.status_info.startswith(f"it lost its place {MOST_RETURNS} times before it could start: ")
    assert returns(preparing, f"{job}/0") == MOST_RETURNS
    assert session.started_at is None


@pytest.mark.parametrize("cause", [RetryEligibleCause.IMAGE_PULL_FAILURE, RetryEligibleCause.SCHEDULER_TIMEOUT])
def test_its_policy_decides_what_follows(preparing: Lab, cause: RetryEligibleCause) -> None:
    policy = evolve(AT_ONCE, max_retries=1, eligible_causes=frozenset({cause}))
    job = enqueue(preparing, "stuck", policy, NEVER_PULLED)
    preparing.pass_s(150)
    retried = cause is RetryEligibleCause.IMAGE_PULL_FAILURE
    assert [(session.retry_cause, session.retry_state) for session in chain(preparing, job)] == (
        [("image_pull_failure", R.RETRIED), ("image_pull_failure", R.EXHAUSTED)]
        if retried
        else [("image_pull_failure", R.NOT_ELIGIBLE)]
    )
    if retried:
        assert [returns(preparing, f"{job}/{count}") for count in range(2)] == [MOST_RETURNS] * 2


def test_a_job_that_is_no_session_returns_as_often_as_it_takes(preparing: Lab) -> None:
    job = preparing.submit(job_named("native"), NEVER_PULLED)
    preparing.pass_s(120)
    assert len([step for step in preparing.phases(job) if step[2] == "PENDING" and step[1] == "EXPIRED"]) > MOST_RETURNS


@pytest.mark.parametrize(
    ("cluster_s", "project_s", "expected"),
    [
        (10.0, None, S.CANCELLED),
        (10.0, 3600.0, S.PREPARING),
        (3600.0, 10.0, S.CANCELLED),
        (3600.0, None, S.PREPARING),
    ],
)
def test_a_projects_limit_of_a_phase_overrides_the_clusters(
    preparing: Lab, cluster_s: float, project_s: float | None, expected: SessionStatus
) -> None:
    limits = {"PrepareAttempts": {"timeout_s": cluster_s}}
    preparing.store.put_settings(RetrySettings(handler_limits=limits), None)
    own = {} if project_s is None else {"PrepareAttempts": {"timeout_s": project_s}}
    preparing.store.put_entry(Queue("ml", handler_limits=own))
    job = enqueue(preparing, "stuck", ONCE, NEVER_PREPARED, queue="ml")
    preparing.pass_s(90)
    assert chain(preparing, job)[0].status is expected


def test_a_session_that_does_not_run_in_its_projects_time_ends(lab: Lab) -> None:
    lab.store.put_entry(Queue("ml", handler_limits={"PromoteToRunning": {"timeout_s": 20.0}}))
    job = enqueue(lab, "slow", ONCE, SimulatedRun(start_delay_s=10_000.0), queue="ml")
    lab.pass_s(18)
    assert chain(lab, job)[0].status is S.CREATING
    lab.pass_s(10)
    assert told(chain(lab, job)[0]) == (S.CANCELLED, SessionResult.FAILURE, "scheduler_timeout", R.NONE)
