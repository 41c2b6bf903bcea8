"""What a look at a gang decides, as tables; and that a second look with nothing new asks for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.classify import NO_CATEGORIES
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, RunOutcome
from holdfast.domain.job import Attempt, Job, JobState, Resources, Run
from holdfast.domain.lifecycle import (
    CANCEL_JOB,
    DRAIN_NODE,
    HOLD_JOB,
    TOTAL_DEADLINE,
    AttemptStatus,
    Ending,
    Interruption,
    Outcome,
    RunStatus,
    Step,
)
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import Action, RetrySettings, Rule
from holdfast.domain.record import evolve
from holdfast.domain.workloads.gang.conclude import Over, conclude
from holdfast.domain.workloads.gang.reconcile import (
    HELD_BY_USER,
    ExpireAttempt,
    Intervention,
    Observed,
    Settled,
    StopAttempt,
    settle,
)
from holdfast.domain.workloads.judge import Judgement, Ruleset
from tests.unit.conftest import job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.spec import JobSpec

SUBMITTED, NOW = 1000.0, 1100.0
PLAIN = job_named("job")
RUNNING = Attempt("job", 1, AttemptStatus.RUNNING, NOW - 50, dispatch=1)
STOPPING = evolve(RUNNING, status=AttemptStatus.TERMINATING, status_since=NOW - 5)
WAITING = Attempt("job", 2, AttemptStatus.PENDING, NOW - 50, dispatch=1)
ENDED = Step("PromoteToTerminated", Outcome.SUCCESS, NOW)
GOOD = RunOutcome(containers=(ContainerResult(0),), ended_at=NOW - 1)
BAD = RunOutcome(containers=(ContainerResult(3, reason="Error"),), ended_at=NOW - 1)
STOPPED = RunOutcome(containers=(ContainerResult(143, signal=15),), ended_by=EndedBy.CASCADE, ended_at=NOW)


def job_in(state: JobState, **fields: object) -> Job:
    """Make a job in a state where only what matters is named."""
    values: dict[str, object] = {"state": state, "attempt": 1, "queued_at": NOW - 60, **fields}
    return evolve(Job("job", "job", "default", 0, SUBMITTED, spec=""), **values)  # type: ignore[arg-type]


def over(*outcomes: RunOutcome | None, policy: RetryPolicy | None = None, attempt: Attempt = STOPPING) -> Over:
    """Make an attempt of which each run has ended so; ``None`` did not say how."""
    runs: Sequence[Run] = [
        Run(f"job-1-{rank}-1", "job", 1, rank, RunStatus.TERMINATED, NOW, started_at=NOW - 50, outcome=outcome)
        for rank, outcome in enumerate(outcomes)
    ]
    policies = () if policy is None else (policy,)
    ruleset = Ruleset(PolicySet.compile(policies), NO_CATEGORIES, RetrySettings())
    return Over(attempt, ENDED, runs, lambda *_: Judgement(ruleset))


HOLD = retrying(rules=(Rule(Action.HOLD, name="ask"),))


@pytest.mark.parametrize(
    ("outcomes", "policy", "state", "ending"),
    [
        ((GOOD,), None, JobState.SUCCEEDED, Ending.SUCCEEDED),
        ((GOOD, GOOD), None, JobState.SUCCEEDED, Ending.SUCCEEDED),
        ((GOOD, BAD), None, JobState.FAILED, Ending.FAILED),
        ((GOOD, None), None, JobState.FAILED, Ending.NEVER_STARTED),
        ((BAD, STOPPED), retrying(1), JobState.QUEUED, Ending.FAILED),
        ((BAD,), retrying(1, delay_s=10.0), JobState.BACKOFF, Ending.FAILED),
        ((BAD,), retrying(0), JobState.FAILED, Ending.FAILED),
        ((BAD,), HOLD, JobState.HELD, Ending.FAILED),
    ],
)
def test_an_attempt_that_is_over_is_judged_and_its_whole_decision_kept(
    outcomes: tuple[RunOutcome | None, ...], policy: RetryPolicy | None, state: JobState, ending: Ending
) -> None:
    attempt = evolve(STOPPING, started_at=None if ending is Ending.NEVER_STARTED else NOW - 50)
    result = conclude(PLAIN, job_in(JobState.RUNNING), over(*outcomes, policy=policy, attempt=attempt), NOW)
    ((ended, step),) = result.decisions
    assert (result.state.state, step, result.orders) == (state, ENDED, ())
    if ending is Ending.SUCCEEDED:
        assert (ended.ending, ended.failure, ended.decision) == (ending, None, None)
        return
    assert ended.decision is not None
    assert ended.failure is not None
    granted = state in {JobState.QUEUED, JobState.BACKOFF}
    assert (ended.decision.grants_retry, result.state.retries) == (granted, int(granted))
    assert result.state.retry_at == (ended.retry_at if state is JobState.BACKOFF else None)


@pytest.mark.parametrize(("outcome", "state"), [(GOOD, JobState.SUCCEEDED), (BAD, JobState.FAILED)])
def test_what_ended_unnoticed_has_ended_with_the_last_of_its_programs(outcome: RunOutcome, state: JobState) -> None:
    ended = over(outcome, outcome)
    runs = [evolve(run, ended_at=NOW - 3000.0 * (1 + run.rank)) for run in ended.runs]
    result = conclude(PLAIN, job_in(JobState.RUNNING), ended._replace(runs=runs), NOW)
    ((attempt, _),) = result.decisions
    assert (result.state.state, result.state.updated_at) == (state, NOW)
    assert result.state.ended_at == attempt.ended_at == NOW - 3000.0


def test_the_back_off_counts_from_the_failure_and_not_from_the_judgement() -> None:
    ended = over(BAD, policy=retrying(1, delay_s=10.0))
    assert conclude(PLAIN, job_in(JobState.RUNNING), ended, NOW).state.retry_at == BAD.ended_at + 10.0


@pytest.mark.parametrize(("outcome", "ending"), [(BAD, Ending.CANCELLED), (GOOD, Ending.SUCCEEDED)])
def test_a_cancellation_hides_a_failure_and_no_success(outcome: RunOutcome, ending: Ending) -> None:
    job = job_in(JobState.RUNNING, cancel_requested=True, reason="cancelled by ann")
    result = conclude(PLAIN, job, over(outcome, policy=retrying(9)), NOW)
    ((ended, _),) = result.decisions
    expected = JobState.CANCELLED if ending is Ending.CANCELLED else JobState.SUCCEEDED
    assert (result.state.state, ended.ending, ended.decision) == (expected, ending, None)


def test_an_attempt_that_found_no_place_has_failed_for_what_its_lifecycle_says() -> None:
    step = Step("ScheduleAttempts", Outcome.EXPIRED, NOW, message="found no place within 5s")
    result = conclude(PLAIN, job_in(JobState.QUEUED), over(attempt=WAITING)._replace(step=step), NOW)
    ((ended, _),) = result.decisions
    assert (result.state.state, result.state.attempt) == (JobState.FAILED, WAITING.number)
    assert ended.failure is not None
    assert (ended.failure.cause, ended.failure.message) == (Cause.SCHEDULER_TIMEOUT, step.message)


TOTAL, PATIENT = job_named("job", total_deadline_s=100.0), job_named("job", scheduling_timeout_s=60.0)
LATE = f"total deadline of 1m40s is over ({DecisionCode.TOTAL_DEADLINE})"


@pytest.mark.parametrize(
    ("spec", "job", "seen", "state", "orders"),
    [
        (PLAIN, job_in(JobState.QUEUED), Observed(), JobState.QUEUED, ()),
        (PLAIN, job_in(JobState.RUNNING), Observed(RUNNING), JobState.RUNNING, ()),
        (PLAIN, job_in(JobState.BACKOFF, retry_at=NOW + 1), Observed(), JobState.BACKOFF, ()),
        (PLAIN, job_in(JobState.BACKOFF, retry_at=NOW), Observed(), JobState.QUEUED, ()),
        (TOTAL, job_in(JobState.QUEUED), Observed(), JobState.FAILED, ()),
        (TOTAL, job_in(JobState.HELD), Observed(), JobState.FAILED, ()),
        (TOTAL, job_in(JobState.BACKOFF, retry_at=NOW), Observed(), JobState.FAILED, ()),
        (TOTAL, job_in(JobState.RUNNING), Observed(RUNNING), JobState.RUNNING, (StopAttempt(TOTAL_DEADLINE),)),
        (TOTAL, job_in(JobState.RUNNING), Observed(STOPPING), JobState.RUNNING, (StopAttempt(TOTAL_DEADLINE),)),
        (TOTAL, job_in(JobState.RUNNING, submitted_at=SUBMITTED + 1), Observed(RUNNING), JobState.RUNNING, ()),
        (PATIENT, job_in(JobState.QUEUED, queued_at=NOW - 59.9), Observed(), JobState.QUEUED, ()),
        (PATIENT, job_in(JobState.HELD), Observed(), JobState.HELD, ()),
        (
            PATIENT,
            job_in(JobState.QUEUED, reason="no node has room"),
            Observed(),
            JobState.QUEUED,
            (ExpireAttempt("found no place within 1m: no node has room"),),
        ),
    ],
)
def test_time_moves_a_job_on(
    spec: JobSpec, job: Job, seen: Observed, state: JobState, orders: tuple[StopAttempt | ExpireAttempt, ...]
) -> None:
    result = settle(spec, job, seen, NOW)
    assert (result.state.state, result.orders) == (state, orders)
    assert (result.state.reason == LATE) is (state is JobState.FAILED)


@pytest.mark.parametrize(
    ("spec", "job", "expected"),
    [
        (PLAIN, job_in(JobState.QUEUED), None),
        (PLAIN, job_in(JobState.BACKOFF, retry_at=NOW + 7), NOW + 7),
        (TOTAL, job_in(JobState.BACKOFF, submitted_at=NOW, retry_at=NOW + 7), NOW + 7),
        (TOTAL, job_in(JobState.BACKOFF, submitted_at=NOW, retry_at=NOW + 700), NOW + 100),
        (TOTAL, job_in(JobState.RUNNING, submitted_at=NOW), NOW + 100),
        (PATIENT, job_in(JobState.QUEUED, queued_at=NOW), NOW + 60),
        (PATIENT, job_in(JobState.RUNNING, queued_at=NOW), None),
    ],
)
def test_a_job_is_looked_at_again_when_time_changes_something(spec: JobSpec, job: Job, expected: float | None) -> None:
    assert settle(spec, job, Observed(), NOW).wake_at == expected


@pytest.mark.parametrize(
    ("job", "seen", "state", "orders", "closed"),
    [
        (job_in(JobState.QUEUED), Observed(intervention=Intervention.CANCEL), JobState.CANCELLED, (), 2),
        (
            job_in(JobState.QUEUED),
            Observed(waiting=WAITING, intervention=Intervention.CANCEL),
            JobState.CANCELLED,
            (),
            2,
        ),
        (job_in(JobState.HELD), Observed(waiting=WAITING, intervention=Intervention.CANCEL), JobState.CANCELLED, (), 2),
        (job_in(JobState.HELD), Observed(intervention=Intervention.CANCEL), JobState.CANCELLED, (), None),
        (
            job_in(JobState.BACKOFF, retry_at=NOW + 9),
            Observed(intervention=Intervention.CANCEL),
            JobState.CANCELLED,
            (),
            None,
        ),
        (
            job_in(JobState.RUNNING),
            Observed(RUNNING, intervention=Intervention.CANCEL),
            JobState.RUNNING,
            (StopAttempt(CANCEL_JOB),),
            None,
        ),
        (
            job_in(JobState.RUNNING, cancel_requested=True),
            Observed(RUNNING, intervention=Intervention.CANCEL),
            JobState.RUNNING,
            (),
            None,
        ),
        (job_in(JobState.QUEUED), Observed(intervention=Intervention.HOLD), JobState.HELD, (), None),
        (job_in(JobState.BACKOFF, retry_at=NOW + 9), Observed(intervention=Intervention.HOLD), JobState.HELD, (), None),
        (
            job_in(JobState.RUNNING),
            Observed(RUNNING, intervention=Intervention.HOLD),
            JobState.RUNNING,
            (StopAttempt(HOLD_JOB, Interruption.HOLD),),
            None,
        ),
        (
            job_in(JobState.RUNNING),
            Observed(RUNNING, intervention=Intervention.HOLD, interrupted=Interruption.HOLD),
            JobState.RUNNING,
            (),
            None,
        ),
        (
            job_in(JobState.RUNNING),
            Observed(RUNNING, intervention=Intervention.RELEASE, interrupted=Interruption.HOLD),
            JobState.RUNNING,
            (StopAttempt(HOLD_JOB, Interruption.RELEASE),),
            None,
        ),
        (
            job_in(JobState.RUNNING),
            Observed(RUNNING, intervention=Intervention.DRAIN, reason="node n is drained"),
            JobState.RUNNING,
            (StopAttempt(DRAIN_NODE, Interruption.DRAIN),),
            None,
        ),
        (job_in(JobState.HELD), Observed(intervention=Intervention.RELEASE), JobState.QUEUED, (), None),
        (job_in(JobState.RUNNING), Observed(RUNNING, intervention=Intervention.RELEASE), JobState.RUNNING, (), None),
    ],
)
def test_what_a_user_asks_is_done_where_it_applies(
    job: Job, seen: Observed, state: JobState, orders: tuple[StopAttempt, ...], closed: int | None
) -> None:
    result = settle(PLAIN, job, seen._replace(reason="ann said so"), NOW)
    assert (result.state.state, result.orders) == (state, orders)
    assert [(ended.number, ended.ending) for ended, _ in result.decisions] == (
        [] if closed is None else [(closed, Ending.NEVER_STARTED)]
    )
    assert [step.message for _, step in result.decisions] == ["ann said so"] * len(result.decisions)
    assert result.state.cancel_requested is (seen.intervention is Intervention.CANCEL)


STARTED = NOW - 55


@pytest.mark.parametrize(
    ("job", "seen", "cancelled"),
    [
        (job_in(JobState.QUEUED), Observed(), True),
        (job_in(JobState.QUEUED), Observed(waiting=WAITING), True),
        (job_in(JobState.WAITING), Observed(), True),
        (job_in(JobState.HELD), Observed(), True),
        (job_in(JobState.BACKOFF, retry_at=NOW + 9, reason="found no place within 1m"), Observed(), True),
        (job_in(JobState.RUNNING, started_at=NOW), Observed(RUNNING), False),
        (job_in(JobState.RUNNING, started_at=STARTED), Observed(STOPPING), False),
        (job_in(JobState.BACKOFF, retry_at=NOW + 9, started_at=STARTED), Observed(), False),
        (job_in(JobState.QUEUED, started_at=STARTED), Observed(waiting=WAITING), False),
        (job_in(JobState.HELD, started_at=STARTED), Observed(), False),
    ],
)
def test_a_job_is_cancelled_unless_it_has_started_only_before_its_first_attempt(
    job: Job, seen: Observed, *, cancelled: bool
) -> None:
    result = settle(
        PLAIN, job, seen._replace(intervention=Intervention.CANCEL_UNLESS_STARTED, reason="not needed"), NOW
    )
    if cancelled:
        assert (result.state.state, result.state.reason) == (JobState.CANCELLED, "not needed")
    else:
        assert (result.state, result.orders, result.decisions) == (job, (), ())


JOBS = st.builds(
    job_in,
    st.sampled_from([JobState.QUEUED, JobState.BACKOFF, JobState.HELD, JobState.RUNNING]),
    submitted_at=st.floats(SUBMITTED, NOW),
    queued_at=st.floats(SUBMITTED, NOW),
    reason=st.sampled_from(["", "no node has room"]),
    request=st.just(Resources(1000, 1 << 20)),
)
LIMITS = st.none() | st.floats(0.5, 200.0)
SPECS = st.builds(
    lambda total, waits: job_named("job", total_deadline_s=total, scheduling_timeout_s=waits), LIMITS, LIMITS
)
ASKED = st.none() | st.sampled_from(Intervention)
POLICIES = st.none() | st.just(HOLD) | st.builds(retrying, st.integers(0, 2), delay_s=st.sampled_from([0.0, 10.0]))
OUTCOMES = st.lists(st.sampled_from([GOOD, BAD, STOPPED]), max_size=3)


def carried_out(seen: Observed, result: Settled) -> Observed:
    """Return what there is to see once a result is stored and carried out, and nothing else has happened."""
    attempt = seen.attempt
    if attempt is not None and result.orders and attempt.status is not AttemptStatus.TERMINATING:
        attempt = attempt.entered(AttemptStatus.TERMINATING, NOW)
    return Observed(attempt)


@given(JOBS, SPECS, POLICIES, OUTCOMES, st.booleans())
def test_whatever_changes_a_job_says_when_and_only_what_backs_off_has_a_time_for_its_retry(
    job: Job, spec: JobSpec, policy: RetryPolicy | None, outcomes: list[RunOutcome], flag: object
) -> None:
    attempt = None
    if job.state is JobState.BACKOFF:
        job = evolve(job, retry_at=NOW - 1 if flag else NOW + 7)
    if job.state is JobState.RUNNING:
        job, attempt = evolve(job, cancel_requested=bool(flag)), RUNNING
    ended = over(*outcomes, policy=policy) if attempt and outcomes else None
    for asked in (None, *Intervention):
        after = (
            settle(spec, job, Observed(attempt, intervention=asked), NOW)
            if ended is None
            else conclude(spec, job, ended, NOW)
        ).state
        assert after.updated_at == (job.updated_at if after == job else NOW)
        assert (after.retry_at is not None) is (after.state is JobState.BACKOFF)
        assert (after.ended_at is not None) is after.terminal


@pytest.mark.parametrize(
    ("asked", "state", "words"),
    [
        (Intervention.CANCEL, JobState.QUEUED, "cancelled"),
        (Intervention.HOLD, JobState.BACKOFF, HELD_BY_USER),
        (Intervention.RETRY, JobState.FAILED, "retried by hand"),
        (Intervention.HOLD, JobState.RUNNING, HELD_BY_USER),
        (Intervention.RELEASE, JobState.RUNNING, "released by a user"),
    ],
)
def test_a_job_says_why_in_the_words_of_whoever_asks_or_else_in_its_own(
    asked: Intervention, state: JobState, words: str
) -> None:
    job, attempt = job_in(state, reason="as before"), RUNNING if state is JobState.RUNNING else None
    for said in ("ann needs the node", ""):
        seen = Observed(attempt, intervention=asked, reason=said, interrupted=Interruption.HOLD)
        if asked is Intervention.HOLD:
            seen = seen._replace(interrupted=None)
        assert settle(PLAIN, job, seen, NOW).state.reason == (said or words)


@given(JOBS, SPECS, ASKED, POLICIES, OUTCOMES, st.floats(SUBMITTED, 2 * NOW))
def test_a_second_look_with_nothing_new_changes_and_orders_nothing(
    job: Job,
    spec: JobSpec,
    asked: Intervention | None,
    policy: RetryPolicy | None,
    outcomes: list[RunOutcome],
    due: float,
) -> None:
    seen = Observed(intervention=asked)
    if job.state is JobState.BACKOFF:
        job = evolve(job, retry_at=due)
    if job.state is JobState.RUNNING:
        if outcomes:
            job = conclude(spec, job, over(*outcomes, policy=policy), NOW).state
        else:
            seen = Observed(RUNNING, intervention=asked)
    before, result = job, settle(spec, job, seen, NOW)
    for _ in ("what was due besides", "nothing new"):
        if result.state.terminal or any(isinstance(order, ExpireAttempt) for order in result.orders):
            return  # nobody looks at it any more; or its lifecycle says first what the attempt failed for
        before, seen = result.state, carried_out(seen, result)
        result = settle(spec, before, seen, NOW)
    assert result.state is before
    assert (result.orders, result.decisions) == ((), ())
