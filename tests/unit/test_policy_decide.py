"""What is decided, in which order the checks come, and what a decision carries."""

from __future__ import annotations

import pytest

from holdfast.domain.failure import Cause, ContainerResult, Failure, FailureCondition
from holdfast.domain.policy.builtin import INFRASTRUCTURE
from holdfast.domain.policy.codes import DecisionCode
from holdfast.domain.policy.compiled import PolicySet, effective_policies
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    Decision,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    LimitUse,
    MemoryGrowth,
    Mutation,
    RetryHistory,
    RetryPolicy,
    RetrySettings,
    Rule,
)
from holdfast.domain.policy.patterns import PatternSet
from holdfast.domain.record import evolve
from holdfast.errors import InvalidPolicy
from tools.cases.armada_pods import RunEnding, count_failures

FAILURE = Failure(
    Cause.KERNEL_NONZERO_EXIT, frozenset({FailureCondition.APP_ERROR}), (ContainerResult(1),), node="n1", category="x"
)
X = frozenset({"x"})
SETTINGS = RetrySettings(default_backoff=Backoff(initial_s=1.0))
GIB = 1 << 30


def judged(  # noqa: PLR0913 - a table's columns
    *policies: RetryPolicy,
    failure: Failure | None = FAILURE,
    total: int = 0,
    cap: int | None = 10,
    counters: dict[str, int] | None = None,
    attempt: int = 1,
    memory: int = 0,
    infrastructure: RetryPolicy | None = None,
    job_id: str = "job",
) -> Decision:
    history = RetryHistory(job_id, attempt, tuple((counters or {}).items()), total, memory)
    settings = evolve(SETTINGS, global_max_retries=cap)
    return decide(PolicySet.compile(policies, infrastructure=infrastructure), failure, history, settings, explain=True)


def policy(*rules: Rule, default: Action = Action.FAIL, limit: int | None = None, name: str = "p") -> RetryPolicy:
    return RetryPolicy(name, rules, limit, default)


RETRY_X, FAIL_X, IGNORE_X = (Rule(action, categories=X) for action in (Action.RETRY, Action.FAIL, Action.IGNORE))
RETRY_ALL = policy(default=Action.RETRY)

ORDER: list[tuple[str, Decision, Action, str, str]] = [
    (
        "no failure",
        judged(RETRY_ALL, failure=None, cap=0),
        Action.FAIL,
        "no_error",
        "no error information available",
    ),
    (
        "never retried before the kill switch",
        judged(RETRY_ALL, failure=evolve(FAILURE, cause=Cause.USER_CANCELLED), cap=0),
        Action.FAIL,
        "fail_never_retried",
        "cause user_cancelled is never retried",
    ),
    (
        "kill switch",
        judged(RETRY_ALL, cap=0),
        Action.FAIL,
        "fail_global_limit",
        "global max retries is 0, retries disabled",
    ),
    (
        "global cap before a Fail rule",
        judged(policy(FAIL_X, limit=0), total=5, cap=5),
        Action.FAIL,
        "fail_global_limit",
        "global max retries exceeded (5/5)",
    ),
    (
        "lowered cap",
        judged(RETRY_ALL, total=4, cap=3),
        Action.FAIL,
        "fail_global_limit",
        "global max retries exceeded (4/3)",
    ),
    ("Fail rule", judged(policy(FAIL_X, limit=0)), Action.FAIL, "fail_rule", "matched rule: Fail"),
    (
        "Fail by default",
        judged(policy()),
        Action.FAIL,
        "fail_default",
        "no rule matched, using default action",
    ),
    (
        "policy limit",
        judged(policy(default=Action.RETRY, limit=3), counters={"p/default": 3}, total=3),
        Action.FAIL,
        "fail_policy_limit",
        "policy retry limit exceeded (3/3)",
    ),
    (
        "rule limit of zero means never",
        judged(policy(evolve(RETRY_X, retry_limit=0), limit=5)),
        Action.FAIL,
        "fail_policy_limit",
        "policy retry limit exceeded (0/0)",
    ),
    ("retry", judged(policy(RETRY_X)), Action.RETRY, "retry", "matched rule: Retry"),
    (
        "retry by default",
        judged(RETRY_ALL, cap=None, total=99),
        Action.RETRY,
        "retry",
        "no rule matched, using default action",
    ),
    ("hold", judged(policy(Rule(Action.HOLD))), Action.HOLD, "hold", "matched rule: Hold"),
    (
        "hold with a reason",
        judged(policy(Rule(Action.HOLD, hold_reason="look at the disk"))),
        Action.HOLD,
        "hold",
        "look at the disk",
    ),
    ("ignore", judged(policy(IGNORE_X)), Action.IGNORE, "ignore", "matched rule: Ignore"),
    (
        "ignore passes the global cap",
        judged(policy(IGNORE_X), total=10),
        Action.IGNORE,
        "ignore",
        "matched rule: Ignore",
    ),
    (
        "ignore does not pass the kill switch",
        judged(policy(IGNORE_X), cap=0),
        Action.FAIL,
        "fail_global_limit",
        "global max retries is 0, retries disabled",
    ),
    (
        "another rule of a policy that can ignore does not pass the cap",
        judged(policy(RETRY_X, IGNORE_X), total=10),
        Action.FAIL,
        "fail_global_limit",
        "global max retries exceeded (10/10)",
    ),
    ("no policy", judged(), Action.FAIL, "fail_default", "no retry policy applies"),
]


@pytest.mark.parametrize(("decision", "action", "code", "reason"), [pytest.param(*row[1:], id=row[0]) for row in ORDER])
def test_the_first_check_that_says_no_gives_the_reason(
    decision: Decision, action: Action, code: str, reason: str
) -> None:
    assert (decision.action, decision.code, decision.reason) == (action, code, reason)


def test_the_first_matching_rule_of_several_policies_decides_with_its_own_policys_limit() -> None:
    high = policy(RETRY_X, limit=1, name="high")
    low = policy(FAIL_X, limit=3, name="low", default=Action.RETRY)
    decision = judged(high, low)
    assert (decision.policy, decision.rule_index, decision.counter) == ("high", 0, "high/rule0")
    assert decision.limits == (LimitUse("globalMaxRetries", 0, 10), LimitUse("high/rule0", 0, 1))
    unmatched = judged(high, low, failure=evolve(FAILURE, category="y"))
    assert (unmatched.policy, unmatched.rule, unmatched.rule_index) == ("high", "default", None)


def test_a_limit_that_nobody_sets_is_the_global_one_or_none() -> None:
    assert judged(RETRY_ALL).limits[1] == LimitUse("p/default", 0, 10)
    assert judged(RETRY_ALL, cap=None).limits[1] == LimitUse("p/default", 0, None)


def test_each_rule_counts_for_itself() -> None:
    two = policy(Rule(Action.RETRY, "a", categories=X, retry_limit=1), Rule(Action.RETRY, "b", retry_limit=1))
    assert judged(two, counters={"p/b": 1}, total=1).counter == "p/a"
    assert judged(two, counters={"p/b": 0, "p/a": 1}, total=1).code is DecisionCode.POLICY_LIMIT


def test_infrastructure_is_consulted_after_the_users_rules_and_before_the_default_action() -> None:
    preempted = Failure(Cause.AGENT_TRANSIENT, frozenset({FailureCondition.PREEMPTED}), node="n1")
    by_default = judged(policy(default=Action.RETRY, limit=0), failure=preempted, infrastructure=INFRASTRUCTURE)
    assert (by_default.policy, by_default.rule, by_default.delay_s) == ("infrastructure", "preempted", 0.0)
    assert by_default.limits[1] == LimitUse("infrastructure/preempted", 0, 100)
    by_user = judged(policy(Rule(Action.FAIL)), failure=preempted, infrastructure=INFRASTRUCTURE)
    assert by_user.policy == "p"
    own_fault = judged(policy(), infrastructure=INFRASTRUCTURE)
    assert (own_fault.policy, own_fault.rule) == ("p", "default")
    stopped = judged(failure=preempted, cap=0, infrastructure=INFRASTRUCTURE)
    assert stopped.action is Action.FAIL


@pytest.mark.parametrize(
    ("condition", "rule", "delay_s", "avoids"),
    [
        (FailureCondition.PREEMPTED, "preempted", 0.0, None),
        (FailureCondition.EVICTED, "evicted", 1.0, "n1"),
        (FailureCondition.NODE_LOST, "node-lost", 1.0, "n1"),
        (FailureCondition.EXECUTOR_LOST, "executor-lost", 1.0, "n1"),
        (FailureCondition.LAUNCH_FAILED, "launch-failed", 0.1, "n1"),
    ],
)
def test_infrastructure_retries_without_any_policy_of_the_user(
    condition: FailureCondition, rule: str, delay_s: float, avoids: str | None
) -> None:
    failure = Failure(Cause.AGENT_TRANSIENT, frozenset({condition}), node="n1", started=False)
    decision = judged(failure=failure, infrastructure=INFRASTRUCTURE)
    assert (decision.rule, decision.avoid_node) == (rule, avoids)
    assert delay_s <= decision.delay_s <= 2 * delay_s


@pytest.mark.parametrize(
    "condition",
    [
        FailureCondition.EVICTED,
        FailureCondition.NODE_LOST,
        FailureCondition.EXECUTOR_LOST,
        FailureCondition.LAUNCH_FAILED,
    ],
)
@pytest.mark.parametrize("earlier", [0, 1, 50])
def test_what_was_lost_together_does_not_come_back_together(condition: FailureCondition, earlier: int) -> None:
    failure = Failure(Cause.AGENT_TRANSIENT, frozenset({condition}), node="n1")
    rule = next(rule for rule in INFRASTRUCTURE.rules if condition in (rule.conditions or ()))
    counters = {f"{INFRASTRUCTURE.name}/{rule.name}": min(earlier, (rule.retry_limit or 100) - 1)}
    delays = [
        judged(failure=failure, infrastructure=INFRASTRUCTURE, counters=counters, cap=None, job_id=f"job-{i}").delay_s
        for i in range(100)
    ]
    assert len(set(delays)) > 50
    assert max(delays) > 1.5 * min(delays)


def test_the_most_specific_backoff_wins() -> None:
    ten, thirty = Backoff(initial_s=10.0), Backoff(initial_s=30.0, max_s=600.0, multiplier=3.0)
    levels = RetryPolicy("p", (evolve(RETRY_X, backoff=thirty), Rule(Action.RETRY)), None, Action.RETRY, ten)
    assert [judged(levels, counters={"p/rule0": n}).delay_s for n in range(4)] == [30.0, 90.0, 270.0, 600.0]
    assert judged(levels, failure=evolve(FAILURE, category="y"), counters={"p/rule1": 2}).delay_s == 40.0
    assert judged(RETRY_ALL, counters={"p/default": 2}).delay_s == 4.0


def test_an_ignored_failure_is_not_counted_and_waits_longer_each_time() -> None:
    decision = judged(policy(IGNORE_X), attempt=4)
    assert (decision.counter, decision.delay_s, decision.grants_retry) == (None, 8.0, True)
    assert decision.delay_because == "1s x 2^3"


@pytest.mark.parametrize(
    ("rule", "of_policy", "avoided"),
    [
        (RETRY_X, AntiAffinity.NONE, None),
        (RETRY_X, AntiAffinity.NODE, "n1"),
        (evolve(RETRY_X, anti_affinity=AntiAffinity.NODE), AntiAffinity.NONE, "n1"),
        (evolve(RETRY_X, anti_affinity=AntiAffinity.NONE), AntiAffinity.NODE, None),
        (evolve(RETRY_X, mutate=Mutation(avoid_same_node=True)), AntiAffinity.NONE, None),
        (evolve(RETRY_X, mutate=Mutation(avoid_same_node=True)), AntiAffinity.NODE, "n1"),
    ],
)
def test_the_node_is_avoided_when_the_rule_or_else_its_policy_says_so(
    rule: Rule, of_policy: AntiAffinity, avoided: str | None
) -> None:
    assert judged(RetryPolicy("p", (rule,), anti_affinity=of_policy)).avoid_node == avoided


DEVICE = AntiAffinity.DEVICE
NEITHER = (None, ())
BOTH_GPUS = ("GPU-a@n1", "gpu-1@n1")


@pytest.mark.parametrize(
    ("rule", "of_policy", "devices", "avoided"),
    [
        (RETRY_X, DEVICE, ("GPU-a", "gpu-1"), (None, BOTH_GPUS)),
        (RETRY_X, DEVICE, (), NEITHER),
        (RETRY_X, AntiAffinity.NONE, ("GPU-a", "gpu-1"), NEITHER),
        (RETRY_X, AntiAffinity.NODE, ("GPU-a", "gpu-1"), ("n1", ())),
        (evolve(RETRY_X, anti_affinity=DEVICE), AntiAffinity.NODE, ("GPU-a", "gpu-1"), (None, BOTH_GPUS)),
        (evolve(RETRY_X, anti_affinity=AntiAffinity.NODE), DEVICE, ("GPU-a", "gpu-1"), ("n1", ())),
        (evolve(RETRY_X, mutate=Mutation(avoid_same_node=True)), DEVICE, ("GPU-a", "gpu-1"), (None, BOTH_GPUS)),
        (Rule(Action.FAIL), DEVICE, ("GPU-a", "gpu-1"), NEITHER),
        (Rule(Action.RETRY, categories=frozenset({"other"})), DEVICE, ("GPU-a", "gpu-1"), (None, BOTH_GPUS)),
    ],
)
def test_the_gpus_of_the_failed_run_are_avoided_when_the_rule_or_else_its_policy_says_so(
    rule: Rule, of_policy: AntiAffinity, devices: tuple[str, ...], avoided: tuple[str | None, tuple[str, ...]]
) -> None:
    policy = RetryPolicy("p", (rule,), default_action=Action.RETRY, anti_affinity=of_policy)
    decision = judged(policy, failure=evolve(FAILURE, devices=devices))
    assert (decision.avoid_node, decision.avoid_devices) == avoided


def test_memory_grows_and_a_request_that_does_not_change_is_not_mentioned() -> None:
    grows = policy(evolve(RETRY_X, mutate=Mutation(MemoryGrowth(factor=1.5, max=2 * GIB))))
    assert judged(grows, memory=GIB).memory == 3 * GIB // 2
    assert judged(grows, memory=2 * GIB).memory is None
    assert judged(grows, memory=0).memory is None


def test_rules_looked_at_are_listed_up_to_the_one_that_decides() -> None:
    three = policy(
        Rule(Action.RETRY, "a", categories=frozenset({"y"})), Rule(Action.RETRY, "b"), Rule(Action.FAIL, "c")
    )
    assert [(each.rule, each.matched) for each in judged(three).considered] == [("a", False), ("b", True)]
    assert judged(three, cap=0).considered == ()


def test_random_jitter_uses_the_draw() -> None:
    spread = RetryPolicy("p", (), None, Action.RETRY, Backoff(10.0, jitter=JitterMode.RANDOM, jitter_ratio=0.5))
    compiled = PolicySet.compile([spread])
    assert decide(compiled, FAILURE, RetryHistory("j"), SETTINGS, draw=0.5).delay_s == 12.5


@pytest.mark.parametrize(
    ("queue", "job", "default", "expected"),
    [
        (["infra", "ml"], ["extra"], "default", ("infra", "ml", "extra")),
        ([], [], "default", ("default",)),
        (["infra"], [""], "default", ("infra",)),
        (["a", "b"], ["a", "c", "c"], None, ("a", "b", "c")),
        ([], ["own"], "default", ("own",)),
        ([], [], None, ()),
    ],
)
def test_policies_compose(queue: list[str], job: list[str], default: str | None, expected: tuple[str, ...]) -> None:
    assert effective_policies(queue, job, default) == expected


def test_only_genuine_failures_are_counted() -> None:
    runs = [
        RunEnding(failed=True),
        RunEnding(failed=True, preempted=True),
        RunEnding(failed=True, returned=True),
        RunEnding(),
        RunEnding(failed=True),
    ]
    assert count_failures(runs) == 2


def test_a_pattern_that_is_not_re2_is_refused() -> None:
    with pytest.raises(InvalidPolicy, match="not RE2"):
        PolicySet.compile([policy(Rule(Action.RETRY, termination_message="(?=x)"))])


def test_patterns_too_large_to_search_together_are_left_to_the_rules() -> None:
    large = [rf"x{i}\pL{{90}}" for i in range(45)]
    assert PatternSet(large).matching("x") is None
    rules = [Rule(Action.RETRY, termination_message=pattern) for pattern in [*large, "found"]]
    found = evolve(FAILURE, containers=(ContainerResult(1, message="found"),))
    assert judged(policy(*rules), failure=found).rule == "rule45"
    assert judged(policy(*rules)).rule == "default"


@pytest.mark.parametrize(("text", "found"), [("", ()), ("nothing", ()), ("a1", [0]), ("b a", [0, 1]), ("a\udcff", [0])])
def test_patterns_are_searched_together(text: str, found: object) -> None:
    matching = PatternSet(["a", "(?i)B"]).matching(text)
    assert matching is not None
    assert sorted(matching) == list(found)  # type: ignore[call-overload]


def test_exit_codes_signals_and_messages_reject_rules_together() -> None:
    rules = (
        Rule(Action.FAIL, exit_codes=ExitCodes(ExitCodeOperator.NOT_IN, frozenset({1}))),
        Rule(Action.FAIL, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({2}))),
        Rule(Action.FAIL, signals=frozenset({9})),
        Rule(Action.FAIL, termination_message="never said"),
        Rule(Action.RETRY, exit_codes=ExitCodes(ExitCodeOperator.IN, frozenset({1}))),
    )
    assert judged(policy(*rules)).rule_index == 4
    said = evolve(FAILURE, containers=(ContainerResult(1, message="a thing never said"),))
    assert judged(policy(*rules), failure=said).rule_index == 3
    killed = evolve(FAILURE, containers=(ContainerResult(1, signal=9),))
    assert judged(policy(*rules), failure=killed).rule_index == 2
