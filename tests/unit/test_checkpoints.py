"""Runs that save what they have and want to be run again: what that costs, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.domain.failure import ContainerResult, EndedBy, FailureCondition, RunOutcome
from holdfast.domain.job import JobState
from holdfast.domain.policy.builtin import MOST_EARLY
from holdfast.domain.policy.model import Action
from holdfast.domain.workloads.watching import EarlyWarning
from holdfast.engines.simulated.life import SimulatedRun
from holdfast.service.explain import Explainer
from tests.unit.conftest import Lab, exits, job_named, retrying

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.domain.policy.model import RetryPolicy
    from holdfast.domain.workloads.spec import JobSpec
    from holdfast.ports.engine import RunOrder

SAVED = 85


def saving(*policies: RetryPolicy, **fields: object) -> JobSpec:
    return job_named("train", *policies, checkpointed_exit_code=SAVED, **fields)


def attempts_are(*plans: SimulatedRun) -> Callable[[RunOrder], SimulatedRun]:
    """Say what each attempt does, the last one also for those after it."""
    return lambda order: plans[min(order.attempt, len(plans)) - 1]


def test_what_was_saved_after_a_while_costs_no_retry_and_is_run_again_at_once(lab: Lab) -> None:
    job = lab.submit(saving(), attempts_are(exits(SAVED, after_s=61.0), exits(SAVED, after_s=61.0), exits(0)))
    lab.pass_s(130.0)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert (lab.job(job).retries, lab.job(job).attempt) == (0, 3)
    decisions = [one.decision for one in lab.attempts(job)[:2]]
    assert [(one.action, one.policy, one.rule) for one in decisions if one] == [
        (Action.IGNORE, "checkpointed", "saved")
    ] * 2
    told = " ".join(Explainer(lab.store).why(job, 1).summary)
    assert "Rule saved of policy checkpointed" in told


def test_it_comes_before_the_policies_of_the_job_and_other_codes_are_theirs(lab: Lab) -> None:
    job = lab.submit(saving(retrying(1)), attempts_are(exits(SAVED, after_s=61.0), exits(3)))
    lab.pass_s(100.0)
    assert lab.job(job).state is JobState.FAILED
    assert (lab.job(job).retries, lab.job(job).attempt) == (1, 3)


def test_a_job_that_saves_at_once_every_time_is_stopped_in_the_end(lab: Lab) -> None:
    job = lab.submit(saving(), exits(SAVED))
    lab.pass_s(2000.0)
    assert lab.job(job).state is JobState.FAILED
    assert lab.job(job).attempt == MOST_EARLY + 1
    assert "10 of 10 retries are used (checkpointed/early)" in lab.job(job).reason


def test_without_the_code_it_is_a_failure_like_others(lab: Lab) -> None:
    job = lab.submit(job_named("plain"), exits(SAVED, after_s=61.0))
    lab.pass_s(100.0)
    assert lab.job(job).state is JobState.FAILED


@pytest.mark.parametrize(
    ("by", "condition"),
    [
        (EndedBy.PREEMPTION, FailureCondition.PREEMPTED),
        (EndedBy.DEADLINE, FailureCondition.DEADLINE_EXCEEDED),
    ],
)
def test_who_was_told_to_stop_and_saved_is_run_again_however_short_it_ran(
    lab: Lab, by: EndedBy, condition: FailureCondition
) -> None:
    saved = RunOutcome((ContainerResult(SAVED, reason="Error"),), frozenset({condition}), by)
    job = lab.submit(saving(), attempts_are(*[SimulatedRun(0.0, 1.0, saved)] * 20, exits(0)))
    lab.pass_s(100.0)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert (lab.job(job).retries, lab.job(job).attempt) == (0, 21)


def test_a_warned_run_that_saves_before_a_short_deadline_is_worth_it(lab: Lab) -> None:
    spec = saving(deadline_s=10.0, warning=EarlyWarning(4.0))
    job = lab.submit(spec, attempts_are(*[SimulatedRun(0.0, None, saves_s=1.0)] * 30, exits(0)))
    lab.pass_s(300.0)
    assert lab.job(job).state is JobState.SUCCEEDED
    assert lab.job(job).retries == 0
    first = lab.runs(job)[0].outcome
    assert first is not None
    assert (first.ran_s, first.warned_at) == (7.0, (first.started_at or 0.0) + 6.0)


def test_a_total_deadline_grants_no_retry_that_would_be_warned_as_soon_as_it_began(lab: Lab) -> None:
    spec = saving(total_deadline_s=100.0, warning=EarlyWarning(30.0))
    job = lab.submit(spec, exits(SAVED, after_s=75.0))
    lab.pass_s(99.0)
    assert lab.job(job).state is JobState.FAILED
    assert "leaves no time for a retry" in lab.job(job).reason
