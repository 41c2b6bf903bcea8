"""A chain of sessions follows its job: each counted retry is a session of its own, with its kernels and its history."""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING

import pytest

from holdfast.compiled.codec import load_spec
from holdfast.domain.failure import EndedBy, FailureCondition
from holdfast.domain.job import JobState, Queue
from holdfast.domain.lifecycle import EntityKind, RunStatus
from holdfast.domain.policy.model import Action, RetryPolicy
from holdfast.domain.record import evolve
from holdfast.domain.sessions.model import (
    RetryState,
    Session,
    SessionResult,
    SessionSpec,
    SessionStatus,
    SessionType,
    creation_id,
    kernel_id,
    session_id,
)
from holdfast.domain.sessions.policy import BackoffStrategy, RetryEligibleCause, SessionRetryPolicy
from holdfast.domain.sessions.records import first_session
from holdfast.domain.units import format_instant
from holdfast.domain.workloads.gang.conclude import until_start
from holdfast.ports.requests import RequestKind
from holdfast.service.explain import Explainer
from tests.reading import steps_of
from tests.unit.conftest import Lab, ends_with, exits, job_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from holdfast.engines.simulated.life import SimulatedRun
    from holdfast.ports.engine import RunOrder
    from holdfast.ports.store import Submission

S, R = SessionStatus, RetryState
AT_ONCE = SessionRetryPolicy(max_retries=2, retry_delay=0.001)
SOON = SessionRetryPolicy(max_retries=2, retry_delay=10.0)


def enqueue(
    lab: Lab,
    name: str,
    policy: SessionRetryPolicy,
    plan: Callable[[RunOrder], SimulatedRun] | SimulatedRun,
    **fields: object,
) -> str:
    """Submit a job that is a session."""
    kind = fields.pop("type", SessionType.BATCH)
    assert isinstance(kind, SessionType)
    session = SessionSpec(kind, policy, retries_enabled=bool(fields.pop("retries_enabled", True)))
    spec = job_named(name, session=session, **fields)
    submit = lab.store.submit

    def with_session(submission: Submission) -> tuple[str, ...]:
        first = [first_session(job, session, name=name, tag="mine") for job in submission.jobs]
        jobs = [until_start(spec, job, lab.clock.now()) for job in submission.jobs]
        return submit(evolve(submission, jobs=jobs, sessions=first))

    lab.store.submit = with_session  # type: ignore[method-assign] # the lab submits jobs alone
    try:
        return lab.submit(spec, plan)
    finally:
        lab.store.submit = submit  # type: ignore[method-assign] # as above


def chain(lab: Lab, job: str) -> Sequence[Session]:
    return lab.store.chains([job]).get(job, ())


def told(session: Session) -> tuple[SessionStatus, SessionResult, str | None, RetryState]:
    return session.status, session.result, session.retry_cause, session.retry_state


def statuses(lab: Lab, kind: EntityKind, name: str) -> list[str]:
    """Return every status that an entity passed through."""
    rows = steps_of(lab.store, kind, name)
    return [rows[0].from_status, *(row.to_status for row in rows)] if rows else []


def test_a_failing_batch_session_is_followed_by_as_many_as_its_policy_allows(lab: Lab) -> None:
    """RV-012, RX-001, RM-010."""
    job = enqueue(lab, "fails", AT_ONCE, exits(1))
    lab.pass_s(30)
    sessions = chain(lab, job)
    failed = (S.TERMINATED, SessionResult.FAILURE, "kernel_nonzero_exit")
    assert [told(session) for session in sessions] == [
        (*failed, R.RETRIED),
        (*failed, R.RETRIED),
        (*failed, R.EXHAUSTED),
    ]
    assert [session.id for session in sessions] == [session_id(job, count) for count in range(3)]
    assert [session.parent_id for session in sessions] == [None, sessions[0].id, sessions[1].id]
    assert [session.creation_id for session in sessions] == [creation_id(job, count) for count in range(3)]
    assert sessions[2].creation_id == f"{sessions[0].creation_id}:retry:2"
    assert {session.policy for session in sessions} == {AT_ONCE}
    assert {(session.name, session.tag) for session in sessions} == {("fails", "mine")}
    assert [session.first_attempt for session in sessions] == [1, 2, 3]
    assert lab.job(job).state is JobState.FAILED


def test_each_session_is_judged_by_its_own_policy(lab: Lab) -> None:
    policies = [AT_ONCE, evolve(AT_ONCE, max_retries=1), SessionRetryPolicy(), AT_ONCE]
    kinds = [SessionType.BATCH, SessionType.BATCH, SessionType.BATCH, SessionType.INTERACTIVE]
    jobs = [
        enqueue(lab, f"s{place}", policy, exits(1), type=kind)
        for place, (policy, kind) in enumerate(zip(policies, kinds, strict=True))
    ]
    lab.pass_s(60)
    assert [len(chain(lab, job)) for job in jobs] == [3, 2, 1, 1]


def test_a_session_that_succeeds_in_its_retry_ends_the_chain(lab: Lab) -> None:
    job = enqueue(lab, "flaky", AT_ONCE, lambda order: exits(1 if order.attempt == 1 else 0))
    lab.pass_s(30)
    assert [told(session) for session in chain(lab, job)] == [
        (S.TERMINATED, SessionResult.FAILURE, "kernel_nonzero_exit", R.RETRIED),
        (S.TERMINATED, SessionResult.SUCCESS, None, R.NONE),
    ]


def test_until_its_retry_is_due_a_session_says_when_and_has_no_child(lab: Lab) -> None:
    """RA-008."""
    job = enqueue(lab, "waits", SOON, exits(1))
    lab.pass_s(4)
    [parent] = chain(lab, job)
    assert (parent.retry_state, parent.retry_at) == (R.PENDING, lab.job(job).retry_at)
    lab.restart_controller()
    lab.pass_s(90)
    assert [session.retry_count for session in chain(lab, job)] == [0, 1, 2]


@pytest.mark.parametrize("after_s", [0.0, 4.0])
def test_ending_a_chain_ends_the_retry_that_is_pending(lab: Lab, after_s: float) -> None:
    """RD-009, RC-007."""
    job = enqueue(lab, "ended", SOON, exits(1, after_s=1.0 if after_s else 100.0))
    lab.pass_s(after_s)
    lab.ask(RequestKind.CANCEL, job, "enough")
    lab.pass_s(60)
    [session] = chain(lab, job)
    expected = (S.TERMINATED, SessionResult.FAILURE, "kernel_nonzero_exit", R.CANCELLED)
    if not after_s:
        expected = (S.TERMINATED, SessionResult.CANCELLED, "user_cancelled", R.NONE)
    assert told(session) == expected
    assert session.retry_at is None


def test_a_session_that_is_ended_while_it_waits_was_never_scheduled(lab: Lab) -> None:
    job = enqueue(lab, "waiting", SOON, exits(0), scheduling_timeout_s=None)
    lab.ask(RequestKind.HOLD, job)
    lab.tick()
    lab.ask(RequestKind.CANCEL, job)
    lab.tick()
    [session] = chain(lab, job)
    assert told(session) == (S.CANCELLED, SessionResult.CANCELLED, "user_cancelled", R.NONE)
    [kernel] = lab.store.kernels_of([session.id])[session.id]
    assert kernel.status is RunStatus.CANCELLED


@pytest.mark.parametrize(
    ("policy", "fields", "state"),
    [
        (SessionRetryPolicy(max_retries=0), {}, R.NONE),
        (evolve(AT_ONCE, eligible_causes=frozenset({RetryEligibleCause.OOM_KILLED})), {}, R.NOT_ELIGIBLE),
        (AT_ONCE, {"type": SessionType.INTERACTIVE}, R.NONE),
        (AT_ONCE, {"retries_enabled": False}, R.DISABLED),
    ],
    ids=["RM-001", "RC-010", "RD-002", "switched off"],
)
def test_a_failure_that_is_not_retried_keeps_its_cause(
    lab: Lab, policy: SessionRetryPolicy, fields: dict[str, object], state: RetryState
) -> None:
    job = enqueue(lab, "once", policy, exits(1), **fields)
    lab.pass_s(30)
    [session] = chain(lab, job)
    assert told(session) == (S.TERMINATED, SessionResult.FAILURE, "kernel_nonzero_exit", state)


@pytest.mark.parametrize("kind", [RequestKind.PREEMPT])
def test_a_preempted_session_goes_on_with_the_same_id_and_kernels(lab: Lab, kind: RequestKind) -> None:
    """RC-015, C20: a preemption is no failure of the session."""
    job = enqueue(lab, "moved", AT_ONCE, exits(0, after_s=20.0))
    lab.pass_s(3)
    lab.ask(kind, job, payload="n0")
    lab.pass_s(60)
    [session] = chain(lab, job)
    assert told(session) == (S.TERMINATED, SessionResult.SUCCESS, None, R.NONE)
    assert len(lab.attempts(job)) == 2
    [kernel] = lab.store.kernels_of([session.id])[session.id]
    assert (kernel.id, kernel.run) == (kernel_id(session.id, 0), lab.runs(job)[-1].uid)


def test_the_place_of_a_program_that_fails_is_not_the_programs_failure(lab: Lab) -> None:
    job = enqueue(lab, "lost", AT_ONCE, ends_with(FailureCondition.NODE_LOST, EndedBy.LOST))
    lab.pass_s(60)
    assert told(chain(lab, job)[0]) == (S.CANCELLED, SessionResult.FAILURE, "agent_transient", R.RETRIED)


def test_every_status_that_a_session_and_its_kernel_pass_through_is_in_their_history(lab: Lab) -> None:
    job = enqueue(lab, "seen", AT_ONCE, exits(0))
    lab.pass_s(10)
    way = ["PENDING", "SCHEDULED", "PREPARING", "PREPARED", "CREATING", "RUNNING"]
    assert statuses(lab, EntityKind.SESSION, f"{job}/0") == [*way, "TERMINATING", "TERMINATED"]
    assert statuses(lab, EntityKind.KERNEL, f"{job}/0/0") == [*way, "TERMINATED"]


@pytest.mark.parametrize("failing", [False, True])
def test_the_main_kernel_or_the_failure_of_any_ends_a_session(lab: Lab, *, failing: bool) -> None:
    """C9: rank 2 ends well first, which ends nothing; then the main kernel ends, or rank 1 fails."""

    def plan(order: RunOrder) -> SimulatedRun:
        if order.rank == 2:
            return exits(0, after_s=1.0)
        if order.rank == 1:
            return exits(3, after_s=5.0) if failing else exits(0, after_s=500.0)
        return exits(0, after_s=9.0)

    job = enqueue(lab, "cluster", SessionRetryPolicy(), plan, gang=3)
    lab.pass_s(60)
    [session] = chain(lab, job)
    result = SessionResult.FAILURE if failing else SessionResult.SUCCESS
    assert (session.status, session.result) == (S.TERMINATED, result)
    assert lab.job(job).state is (JobState.FAILED if failing else JobState.SUCCEEDED)
    assert [kernel.rank for kernel in lab.store.kernels_of([session.id])[session.id]] == [0, 1, 2]


def test_a_time_limit_counts_as_an_unknown_cause_and_says_what_it_was(lab: Lab) -> None:
    job = enqueue(lab, "slow", AT_ONCE, exits(0, after_s=100.0), deadline_s=5.0)
    lab.pass_s(10)
    first = chain(lab, job)[0]
    assert told(first) == (S.TERMINATED, SessionResult.FAILURE, "unknown", R.RETRIED)


def test_each_session_waits_by_its_own_id_and_count_and_why_says_so(lab: Lab) -> None:
    policy = SessionRetryPolicy(max_retries=2, retry_delay=10.0, backoff=BackoffStrategy.EXPONENTIAL)
    job = enqueue(lab, "spread", policy, exits(1))
    lab.pass_s(100)
    sessions = chain(lab, job)
    decisions = [attempt.decision for attempt in Explainer(lab.store).explained(lab.job(job), lab.attempts(job))]
    for session, decision, base_s in zip(sessions[:2], decisions[:2], (10.0, 20.0), strict=True):
        number = int(sha1(f"{session.id}{session.retry_count}".encode(), usedforsecurity=False).hexdigest(), 16)
        assert decision is not None
        assert decision.delay_s == pytest.approx(base_s + number % round(base_s * 250) / 1000)
        assert decision.delay_because.endswith(", plus deterministic jitter of up to 25%")


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"type": SessionType.INTERACTIVE}, "only batch sessions are retried"),
        ({"retries_enabled": False}, "retries of sessions were turned off when it was created"),
    ],
)
def test_why_says_what_keeps_a_session_from_being_retried(lab: Lab, fields: dict[str, object], why: str) -> None:
    job = enqueue(lab, "once", AT_ONCE, exits(1), **fields)
    lab.pass_s(10)
    assert f"It is not retried: {why}." in Explainer(lab.store).why(job).summary


def test_neither_the_built_in_nor_the_queues_policies_are_about_sessions(lab: Lab) -> None:
    lab.store.put_entry(RetryPolicy("eager", default_action=Action.RETRY))
    lab.store.put_entry(Queue("default", retry_policies=("eager",)))
    lost = ends_with(FailureCondition.NODE_LOST, EndedBy.LOST)
    jobs = [enqueue(lab, f"session-{i}", SessionRetryPolicy(), plan) for i, plan in enumerate((lost, exits(1)))]
    lab.pass_s(60)
    assert [len(lab.attempts(job)) for job in jobs] == [1, 1]


def test_what_a_session_is_survives_in_its_specification(lab: Lab) -> None:
    job = enqueue(lab, "kept", SOON, exits(0))
    session = load_spec(lab.job(job).spec).session
    assert session is not None
    assert session.policy == SOON


def test_a_session_with_a_start_time_waits_for_it_and_then_runs(lab: Lab) -> None:
    starts_at = lab.clock.now() + 100.0
    job = enqueue(lab, "later", SOON, exits(0), starts_at=starts_at, total_deadline_s=50.0)
    lab.pass_s(95.0)
    assert (lab.job(job).state, lab.job(job).reason) == (JobState.WAITING, f"waits until {format_instant(starts_at)}")
    assert chain(lab, job)[0].status is S.PENDING
    lab.restart_controller()
    lab.pass_s(20.0)
    [session] = chain(lab, job)
    assert session.result is SessionResult.SUCCESS
    assert session.started_at == pytest.approx(starts_at, abs=2.0)


def test_holding_and_releasing_a_session_does_not_start_it_before_its_time(lab: Lab) -> None:
    job = enqueue(lab, "held", SOON, exits(0), starts_at=lab.clock.now() + 100.0)
    lab.ask(RequestKind.HOLD, job)
    lab.pass_s(5.0)
    lab.ask(RequestKind.RELEASE, job)
    lab.pass_s(5.0)
    assert lab.job(job).state is JobState.WAITING
    lab.pass_s(100.0)
    assert lab.job(job).state is JobState.SUCCEEDED


def test_a_program_learns_which_kernel_it_is(lab: Lab) -> None:
    job = enqueue(lab, "known", AT_ONCE, lambda order: exits(1 if order.attempt == 1 else 0), gang=2)
    lab.pass_s(30.0)
    for session in chain(lab, job):
        orders = [order for order in lab.orders if order.attempt == session.first_attempt]
        for order in orders:
            env = order.main.env
            role, host = ("main", "main1") if order.rank == 0 else ("sub", "sub1")
            assert env["BACKENDAI_SESSION_ID"] == session.id
            assert env["BACKENDAI_KERNEL_ID"] == kernel_id(session.id, order.rank)
            assert (env["BACKENDAI_CLUSTER_ROLE"], env["BACKENDAI_CLUSTER_HOST"]) == (role, host)
            assert (env["BACKENDAI_CLUSTER_IDX"], env["BACKENDAI_CLUSTER_LOCAL_RANK"]) == ("1", str(order.rank))
            assert env["BACKENDAI_CLUSTER_REPLICAS"] == "main:1,sub:1"
