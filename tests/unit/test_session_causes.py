"""Which failures of a session its policy retries, from the facts of how its run ended; cases are named by their ids."""

from __future__ import annotations

import pytest

from holdfast.domain.classify import classify
from holdfast.domain.failure import NEVER_RETRIED, Cause, ContainerResult, EndedBy, Failure, RunOutcome
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import Decision, RetryHistory, RetrySettings
from holdfast.domain.sessions.policy import RetryEligibleCause, compiled, effective, eligible_cause


def failed(code: int | None = None, *conditions: str, ended_by: EndedBy = EndedBy.ITSELF) -> RunOutcome:
    return RunOutcome((ContainerResult(code, reason="Error"),), frozenset(conditions), ended_by)


def decided(failure: Failure, causes: list[str] | None = None, used: int = 0) -> Decision:
    fields = {"max_retries": 3} if causes is None else {"max_retries": 3, "eligible_causes": causes}
    history = RetryHistory("session", used + 1, (("session/eligible", used),), used)
    return decide(PolicySet.compile([compiled(effective(fields))]), failure, history, RetrySettings(), explain=True)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        pytest.param(failed(1), "kernel_nonzero_exit", id="RC-001"),
        pytest.param(failed(None, "ImagePullFailed"), "image_pull_failure", id="RC-003"),
        pytest.param(failed(None, "Unschedulable"), "scheduler_timeout", id="RC-005"),
        pytest.param(RunOutcome(), "unknown", id="RC-006"),
        pytest.param(failed(137), "kernel_nonzero_exit", id="RC-012"),
        pytest.param(failed(137, ended_by=EndedBy.PREEMPTION), "agent_transient", id="RC-015"),
        pytest.param(failed(137, "OOMKilled"), "oom_killed", id="out-of-memory"),
        pytest.param(failed(None, "NodeLost"), "agent_transient", id="node-lost"),
        pytest.param(RunOutcome(ended_by=EndedBy.LOST), "agent_transient", id="end-unknown"),
        pytest.param(RunOutcome(started=False), "agent_transient", id="not-started"),
        pytest.param(failed(143, ended_by=EndedBy.DEADLINE), "unknown", id="time-limit"),
        pytest.param(failed(143, ended_by=EndedBy.STALL), "unknown", id="stalled"),
    ],
)
def test_a_failure_is_retried_as_the_cause_that_its_facts_show(outcome: RunOutcome, cause: str) -> None:
    failure = classify(outcome)
    assert eligible_cause(failure.cause) == cause
    assert decided(failure).grants_retry
    assert decided(failure, [cause]).grants_retry
    others = [other.value for other in RetryEligibleCause if other != cause]
    assert decided(failure, others).code is DecisionCode.FAIL_DEFAULT


@pytest.mark.parametrize(
    "outcome",
    [
        pytest.param(failed(143, ended_by=EndedBy.USER), id="RC-007"),
        pytest.param(RunOutcome((ContainerResult(None, reason="CommandNotFound"),), started=False), id="RC-008"),
    ],
)
def test_what_a_user_ended_or_cannot_be_is_never_retried(outcome: RunOutcome) -> None:
    failure = classify(outcome)
    assert eligible_cause(failure.cause) is None
    assert decided(failure).code is DecisionCode.NEVER_RETRIED


@pytest.mark.parametrize("cause", [pytest.param(Cause.QUOTA_EXCEEDED, id="RC-009"), *sorted(NEVER_RETRIED)])
def test_no_policy_retries_a_cause_that_is_never_retried(cause: Cause) -> None:
    (rule,) = compiled(effective()).rules
    assert cause.value not in (rule.causes or ())
    assert not decided(Failure(cause, frozenset())).grants_retry


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause not in NEVER_RETRIED])
def test_an_empty_list_of_causes_retries_nothing_and_the_default_everything_else(cause: Cause) -> None:
    failure = Failure(cause, frozenset())
    assert not decided(failure, []).grants_retry
    assert decided(failure).grants_retry


def test_a_cause_that_is_not_eligible_is_no_spent_retry() -> None:
    """RC-010."""
    decision = decided(classify(failed(1)), ["agent_transient"], used=3)
    assert decision.code is DecisionCode.FAIL_DEFAULT
    assert [rule.because for rule in decision.considered] == ["cause kernel_nonzero_exit is not one of agent_transient"]


def test_retries_are_counted_by_the_one_rule_of_the_policy() -> None:
    """RV-012."""
    decisions = [decided(classify(failed(1)), used=used) for used in range(4)]
    assert [decision.counter for decision in decisions] == ["session/eligible"] * 3 + [None]
    assert [decision.code for decision in decisions] == [DecisionCode.RETRY] * 3 + [DecisionCode.POLICY_LIMIT]
