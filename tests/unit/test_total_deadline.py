"""A total deadline: who keeps it, what is said of it, and that no retry is granted past it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.controller.publisher import sooner
from holdfast.domain.classify import NO_CATEGORIES
from holdfast.domain.failure import Cause, EndedBy, Failure
from holdfast.domain.job import Attempt, Job, JobState, Resources
from holdfast.domain.lifecycle import Outcome, Step
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.model import Action, RetrySettings
from holdfast.domain.workloads.gang.conclude import Over, fail
from holdfast.domain.workloads.judge import Judgement, Ruleset
from holdfast.engines.simulated.life import SimulatedRun
from tests.unit.conftest import NOW, exits, job_named, retrying

if TYPE_CHECKING:
    from holdfast.ports.engine import RunOrder
    from tests.unit.conftest import Lab

FOREVER = SimulatedRun(duration_s=None)
TOTAL_S = 100.0


def judged(
    *, now: float, delay_s: float = 0.0, ended_by: EndedBy = EndedBy.ITSELF, deadline_s: float | None = None
) -> tuple[Job, Attempt]:
    """Judge a failure of a job that may be retried for ever, within its total deadline."""
    spec = job_named("job", retrying(None, delay_s=delay_s), deadline_s=deadline_s, total_deadline_s=TOTAL_S)
    ruleset = Ruleset(PolicySet.compile(spec.inline_policies), NO_CATEGORIES, RetrySettings())
    job = Job("job", "job", "default", 0, submitted_at=NOW, spec="", state=JobState.RUNNING, attempt=1)
    cause = Cause.EXECUTION_TIMEOUT if ended_by is EndedBy.DEADLINE else Cause.KERNEL_NONZERO_EXIT
    failure = Failure(cause, frozenset(), failed_at=now, ended_by=ended_by, message="ran longer than 3 s")
    judged = Judgement(ruleset)
    over = Over(Attempt("job", 1), Step("PromoteToTerminated", Outcome.SUCCESS, now), (), lambda *_: judged)
    result = fail(spec, job, over, judged, failure, now)
    return result.state, result.decisions[0].attempt


@pytest.mark.parametrize(
    ("at_s", "delay_s", "granted"),
    [
        (TOTAL_S - 0.001, 0.0, True),
        (TOTAL_S, 0.0, False),
        (TOTAL_S + 0.001, 0.0, False),
        (TOTAL_S - 10, 9.999, True),
        (TOTAL_S - 10, 10.0, False),
        (TOTAL_S - 10, 3600.0, False),
        (0.0, TOTAL_S - 0.001, True),
        (0.0, TOTAL_S, False),
    ],
)
def test_no_retry_is_granted_that_could_only_start_past_the_total_deadline(
    at_s: float, delay_s: float, *, granted: bool
) -> None:
    job, attempt = judged(now=NOW + at_s, delay_s=delay_s)
    decision = attempt.decision
    assert decision is not None
    assert decision.grants_retry is granted
    assert (job.retries, attempt.retry_at is not None) == (int(granted), granted)
    if not granted:
        assert (job.state, decision.code) == (JobState.FAILED, DecisionCode.TOTAL_DEADLINE)
        assert decision.reason == "total deadline of 1m40s leaves no time for a retry"


@pytest.mark.parametrize(
    ("at_s", "deadline_s", "total"),
    [(3.0, None, True), (TOTAL_S, 3.0, True), (TOTAL_S - 0.5, 3.0, True), (50.0, 3.0, False)],
)
def test_what_was_ended_by_a_deadline_says_by_which(at_s: float, deadline_s: float | None, *, total: bool) -> None:
    _, attempt = judged(now=NOW + at_s, ended_by=EndedBy.DEADLINE, deadline_s=deadline_s)
    decision, failure = attempt.decision, attempt.failure
    assert decision is not None
    assert failure is not None
    assert failure.cause is Cause.EXECUTION_TIMEOUT
    assert failure.message == ("total deadline of 1m40s is over" if total else "ran longer than 3 s")
    expected = (Action.FAIL, DecisionCode.TOTAL_DEADLINE) if total else (Action.RETRY, DecisionCode.RETRY)
    assert (decision.action, decision.code) == expected


def test_a_program_gets_the_less_of_its_deadline_and_of_what_is_left_of_the_jobs() -> None:
    assert sooner(None, None, since=NOW, now=NOW) is None
    assert sooner(5.0, None, since=NOW, now=NOW + 50) == 5.0
    assert sooner(None, 60.0, since=NOW, now=NOW + 50) == 10.0
    assert sooner(5.0, 60.0, since=NOW, now=NOW + 50) == 5.0
    assert sooner(20.0, 60.0, since=NOW, now=NOW + 50) == 10.0
    late = sooner(20.0, 60.0, since=NOW, now=NOW + 70)
    assert late is not None
    assert 0 < late < 0.1


def test_each_attempt_is_ordered_with_what_is_left(lab: Lab) -> None:
    def plan(order: RunOrder) -> SimulatedRun:
        return exits(1, after_s=3.0) if order.attempt < 3 else FOREVER

    job = lab.submit(job_named("job", retrying(99), deadline_s=6.0, total_deadline_s=10.0), plan)
    lab.pass_s(8)
    assert lab.job(job).state is JobState.RUNNING
    assert [order.deadline_s for order in lab.orders] == pytest.approx([6.0, 6.0, 4.0], abs=1.0)


def test_a_program_ends_at_its_total_deadline_though_no_controller_runs(lab: Lab) -> None:
    job = lab.submit(job_named("job", retrying(99), total_deadline_s=10.0), FOREVER)
    lab.pass_s(2)
    lab.clock.time += 3600.0
    (ended,) = lab.engine.observe().values()
    assert ended.outcome is not None
    assert ended.outcome.ended_by is EndedBy.DEADLINE
    assert ended.outcome.ended_at - NOW == pytest.approx(10.0, abs=0.1)
    lab.restart_controller()
    lab.step(3)
    (attempt,) = lab.attempts(job)
    assert (lab.job(job).state, attempt.failure and attempt.failure.cause) == (JobState.FAILED, Cause.EXECUTION_TIMEOUT)
    assert lab.job(job).reason == "DeadlineExceeded; total deadline of 10s is over"


def test_a_job_that_waits_for_a_place_ends_at_its_total_deadline(lab: Lab) -> None:
    job = lab.submit(job_named("job", retrying(99), total_deadline_s=10.0, resources=Resources(64_000)))
    lab.pass_s(9)
    assert lab.job(job).state is JobState.QUEUED
    lab.pass_s(2)
    assert lab.job(job).state is JobState.FAILED
    assert lab.job(job).reason == f"total deadline of 10s is over ({DecisionCode.TOTAL_DEADLINE})"
