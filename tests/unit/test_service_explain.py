"""Explanations are rebuilt from stored facts alone, also after policies and settings have changed."""

from __future__ import annotations

import pytest

from holdfast.compiled.codec import dump_spec
from holdfast.domain.failure import Cause, ContainerResult, EndedBy, Failure
from holdfast.domain.job import Attempt, Job, JobState, Queue
from holdfast.domain.lifecycle import AttemptStatus, Ending
from holdfast.domain.policy.builtin import INFRASTRUCTURE
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import (
    Action,
    Backoff,
    Decision,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    RetryHistory,
    RetryPolicy,
    RetrySettings,
    Rule,
)
from holdfast.domain.record import evolve
from holdfast.domain.workloads.spec import JobSpec
from holdfast.errors import NotFound
from holdfast.ports.entries import POLICY
from holdfast.ports.store import Changes, Submission
from holdfast.service.explain import Explainer, history_before, settings_then
from tools.memory_store import MemoryStore

JOB = "job000001"
FLAKY = Rule(Action.RETRY, "flaky", exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({1})), retry_limit=2)
BUG = Rule(Action.FAIL, "bug", exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({2})))
INFRA = RetryPolicy("infra", (BUG, FLAKY))
INLINE = RetryPolicy("inline", (Rule(Action.RETRY, "any"),), retry_limit=5)


def _failure(code: int = 1) -> Failure:
    return Failure(
        Cause.KERNEL_NONZERO_EXIT,
        frozenset({"AppError"}),
        (ContainerResult(code),),
        node="n1",
        ran_s=3.0,
        failed_at=9.0,
    )


class World:
    """A store in which a controller's decisions are made by hand, as the controller makes them."""

    def __init__(self, spec: JobSpec) -> None:
        self.store = MemoryStore()
        self.store.put_entry(INFRA)
        self.store.put_entry(Queue("default", retry_policies=("infra",)))
        self.spec = spec
        self.store.submit(Submission([Job(JOB, "train", "default", 0, 1.0, dump_spec(spec))]))
        self.explainer = Explainer(self.store)

    def fail(self, number: int, failure: Failure, *, cap: int | None = None, draw: float = 0.0) -> Decision:
        catalogue = self.store.catalogue()
        named = [catalogue.policies[name] for name in catalogue.queues["default"].retry_policies]
        policies = PolicySet.compile([*named, *self.spec.inline_policies], infrastructure=INFRASTRUCTURE)
        attempts = self.store.attempts(JOB)
        attempt = Attempt(JOB, number, AttemptStatus.ERROR, ending=Ending.FAILED, failure=failure)
        history = history_before(self.store.job(JOB), attempts, attempt)
        decision = decide(policies, failure, history, RetrySettings(global_max_retries=cap), draw=draw)
        job = evolve(self.store.job(JOB), attempt=number)
        self.store.commit(Changes(jobs={JOB: job}, attempts={(JOB, number): evolve(attempt, decision=decision)}))
        return decision

    def explained(self, number: int) -> Decision:
        attempts = self.explainer.explained(self.store.job(JOB), self.store.attempts(JOB))
        decision = attempts[number - 1].decision
        assert decision is not None
        return decision

    def considered(self, number: int) -> list[tuple[str, str, bool]]:
        return [(one.policy, one.rule, one.matched) for one in self.explained(number).considered]


@pytest.fixture
def world() -> World:
    return World(JobSpec("train", ("true",), inline_policies=(INLINE,)))


LOOKED_AT = [("infra", "bug", False), ("infra", "flaky", True)]


def test_the_rules_looked_at_are_rebuilt_with_reasons(world: World) -> None:
    world.fail(1, _failure())
    assert world.considered(1) == LOOKED_AT
    assert all(one.because for one in world.explained(1).considered)


def test_the_rest_of_a_decision_stays_as_it_was_stored(world: World) -> None:
    stored = world.fail(1, _failure())
    assert evolve(world.explained(1), considered=(), delay_because="") == stored


def test_inline_policies_of_the_job_are_looked_at_too(world: World) -> None:
    world.fail(1, _failure(7))
    assert world.considered(1) == [("infra", "bug", False), ("infra", "flaky", False), ("inline", "any", True)]


def test_counters_before_come_from_the_decisions_of_earlier_attempts(world: World) -> None:
    for number in (1, 2, 3):
        world.fail(number, _failure())
    third = world.explained(3)
    assert (third.action, [(use.name, use.used) for use in third.limits][-1]) == (Action.FAIL, ("infra/flaky", 2))
    assert world.considered(3) == LOOKED_AT


def test_a_changed_policy_does_not_change_what_an_old_decision_was_made_of(world: World) -> None:
    world.fail(1, _failure())
    world.store.put_entry(evolve(INFRA, rules=(evolve(FLAKY, action=Action.FAIL, name="strict"),)))
    assert world.considered(1) == LOOKED_AT


def test_a_policy_that_is_gone_is_found_by_its_revision(world: World) -> None:
    world.fail(1, _failure())
    world.store.put_entry(Queue("default"))
    world.store.delete_entry(POLICY, "infra")
    assert world.considered(1) == LOOKED_AT


def test_when_other_policies_would_decide_today_the_deciding_one_is_shown_alone(world: World) -> None:
    world.fail(1, _failure())
    world.store.put_entry(RetryPolicy("first", (Rule(Action.HOLD, "all"),)))
    world.store.put_entry(Queue("default", retry_policies=("first", "infra")))
    assert world.considered(1) == LOOKED_AT


def test_a_built_in_rule_is_explained_also_when_the_users_policies_would_decide_today() -> None:
    world = World(JobSpec("train", ("true",)))
    lost = Failure(Cause.AGENT_TRANSIENT, frozenset({"NodeLost"}), failed_at=9.0)
    assert world.fail(1, lost).rule == "node-lost"
    world.store.put_entry(evolve(INFRA, rules=(Rule(Action.HOLD, "all"),)))
    assert world.considered(1)[-1] == (INFRASTRUCTURE.name, "node-lost", True)


def test_an_inline_rule_is_explained_also_when_the_queues_policies_changed(world: World) -> None:
    world.fail(1, _failure(7))
    world.store.put_entry(RetryPolicy("first", (Rule(Action.HOLD, "all"),)))
    world.store.put_entry(Queue("default", retry_policies=("first",)))
    assert world.considered(1) == [("inline", "any", True)]


def test_a_stop_by_the_global_cap_is_explained_under_the_cap_of_then(world: World) -> None:
    decision = world.fail(1, _failure(), cap=0)
    world.store.put_settings(RetrySettings(global_max_retries=7), None)
    assert decision.code is DecisionCode.GLOBAL_LIMIT
    assert world.considered(1) == []
    assert settings_then(decision, RetrySettings(global_max_retries=7)).global_max_retries == 0


def test_how_a_delay_came_about_is_told_only_where_it_comes_out_the_same(world: World) -> None:
    jittery = Backoff(initial_s=10.0, jitter=JitterMode.RANDOM, jitter_ratio=0.5)
    world.store.put_entry(evolve(INFRA, rules=(evolve(FLAKY, backoff=jittery),)))
    world.fail(1, _failure(), draw=0.9)
    world.store.put_entry(evolve(INFRA, rules=(evolve(FLAKY, backoff=Backoff(initial_s=10.0)),)))
    world.fail(2, _failure())
    assert world.explained(1).delay_because == ""
    assert world.explained(2).delay_because != ""


def test_why_explains_the_last_attempt_that_was_judged(world: World) -> None:
    world.fail(1, _failure())
    world.fail(2, _failure(2))
    explanation = world.explainer.why("train")
    assert explanation.attempt is not None
    assert explanation.attempt.number == 2
    assert explanation.summary[0] == "Attempt 2 failed on node n1 after 3s: exit code 2."
    assert world.explainer.why("train", 1).summary[0].startswith("Attempt 1 failed")


def test_why_of_a_job_not_tried_yet_tells_its_reason(world: World) -> None:
    job = evolve(world.store.job(JOB), reason="needs 8 cpu, the largest free node has 6")
    world.store.commit(Changes(jobs={JOB: job}))
    explanation = world.explainer.why("train")
    assert (explanation.attempt, explanation.headline, list(explanation.summary)) == (
        None,
        "Job train is queued: needs 8 cpu, the largest free node has 6",
        [],
    )


def test_why_of_a_cancelled_attempt_says_that_no_policy_was_asked(world: World) -> None:
    failure = Failure(Cause.USER_CANCELLED, frozenset(), message="typo", ended_by=EndedBy.USER)
    attempt = Attempt(JOB, 1, AttemptStatus.TERMINATED, ending=Ending.CANCELLED, failure=failure)
    job = evolve(world.store.job(JOB), state=JobState.CANCELLED, attempt=1, reason="typo")
    world.store.commit(Changes(jobs={JOB: job}, attempts={(JOB, 1): attempt}))
    explanation = world.explainer.why("train", 1)
    assert list(explanation.summary) == [
        "Attempt 1 was ended by a user: typo. A cancelled job is retried only by hand."
    ]


def test_why_of_an_attempt_that_is_not_there_lists_those_that_are(world: World) -> None:
    world.fail(1, _failure())
    with pytest.raises(NotFound) as caught:
        world.explainer.why("train", 4)
    assert caught.value.hint == "its attempts: 1"


@pytest.mark.parametrize(
    ("state", "attempt", "headline"),
    [
        (JobState.RUNNING, 2, "Job train is running, attempt 2"),
        (JobState.SUCCEEDED, 3, "Job train succeeded on attempt 3"),
        (JobState.FAILED, 1, "Job train failed after 1 attempt"),
        (JobState.FAILED, 2, "Job train failed after 2 attempts"),
        (JobState.HELD, 1, "Job train is held until it is released"),
    ],
)
def test_the_headline_says_where_the_job_is(world: World, state: JobState, attempt: int, headline: str) -> None:
    job = evolve(world.store.job(JOB), state=state, attempt=attempt)
    world.store.commit(Changes(jobs={JOB: job}))
    assert world.explainer.why("train").headline == headline


def test_history_before_the_first_attempt_is_empty(world: World) -> None:
    assert history_before(world.store.job(JOB), [], Attempt(JOB, 1)) == RetryHistory(JOB, memory=0)
