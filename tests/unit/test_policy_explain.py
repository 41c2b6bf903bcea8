"""The story told of a decision."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.domain.failure import Cause, ContainerResult, Failure
from holdfast.domain.policy.compiled import PolicySet
from holdfast.domain.policy.decide import decide
from holdfast.domain.policy.explain import explain
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    MemoryGrowth,
    Mutation,
    RetryHistory,
    RetryPolicy,
    RetrySettings,
    Rule,
)

GIB = 1 << 30
OOM = Failure(
    Cause.OOM_KILLED,
    frozenset({"OOMKilled"}),
    (ContainerResult(137, reason="OOMKilled"),),
    category="memory",
    subcategory="cgroup",
    hint="ask for more",
    node="n1",
    ran_s=12.0,
)
BUG = Rule(Action.FAIL, "bug", categories=frozenset({"bug"}))
GROW = Rule(
    Action.RETRY,
    "oom",
    conditions=frozenset({"OOMKilled"}),
    retry_limit=2,
    mutate=Mutation(MemoryGrowth(factor=1.5)),
    anti_affinity=AntiAffinity.NODE,
)
SETTINGS = RetrySettings(global_max_retries=20)


def story(
    *rules: Rule,
    failure: Failure | None = OOM,
    counted: int = 0,
    settings: RetrySettings = SETTINGS,
    now: RetrySettings | None = None,
) -> list[str]:
    history = RetryHistory("job", counted + 1, (("train/oom", counted),), counted, 2 * GIB)
    policies = PolicySet.compile([RetryPolicy("train", rules, revision=7)])
    decision = decide(policies, failure, history, settings, explain=True)
    return explain(decision, failure, history, now or settings)


def test_a_retry_is_told_from_what_happened_to_what_follows() -> None:
    assert story(BUG, GROW, counted=1) == [
        "Attempt 2 failed on node n1 after 12s: OOMKilled.",
        "It is charged to oom_killed, conditions OOMKilled, category memory/cgroup.",
        "Hint: ask for more",
        "Rule bug of policy train did not match: category memory is not one of bug.",
        "Rule oom of policy train matched: condition OOMKilled holds.",
        "It is retried by rule oom of policy train (revision 7): matched rule: Retry.",
        "globalMaxRetries: 1 retry was granted before this failure; the limit is 20.",
        "train/oom: 1 retry was granted before this failure; the limit is 2.",
        "Attempt 3 waits 2s (1s x 2^1, at most 10m, is 2s).",
        "It avoids node n1, unless no other node could ever take it.",
        "It asks for 3Gi of memory instead of 2Gi.",
    ]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            story(GROW, counted=2),
            "It is not retried by rule oom of policy train (revision 7): policy retry limit exceeded (2/2).",
        ),
        (
            story(),
            (
                "It is not retried by the default action of policy train (revision 7): "
                "no rule matched, using default action."
            ),
        ),
        (
            story(GROW, settings=RetrySettings(0)),
            "It is not retried, whatever the rules say: global max retries is 0, retries disabled.",
        ),
        (story(failure=None), "Attempt 1 ended without saying how."),
        (
            story(failure=None),
            "Nothing is known of what went wrong, so no rule could be looked at and it is not retried.",
        ),
        (
            story(failure=replace(OOM, cause=Cause.USER_CANCELLED)),
            "No policy can retry this cause, so no rule was looked at.",
        ),
        (
            story(Rule(Action.HOLD, hold_reason="look at the disk")),
            "It waits for a person to release it: look at the disk.",
        ),
        (
            story(Rule(Action.IGNORE)),
            "It runs again without being counted by rule rule0 of policy train (revision 7): matched rule: Ignore.",
        ),
        (
            story(GROW, settings=RetrySettings()),
            "globalMaxRetries: 0 retries were granted before this failure; there is no limit.",
        ),
        (
            story(GROW, now=RetrySettings(3)),
            "globalMaxRetries: 0 retries were granted before this failure; the limit is 20 (it is 3 now).",
        ),
        (
            story(GROW, now=RetrySettings()),
            "globalMaxRetries: 0 retries were granted before this failure; the limit is 20 (it is unlimited now).",
        ),
        (
            story(failure=Failure(Cause.AGENT_TRANSIENT, frozenset({"LaunchFailed"}), started=False)),
            "Its program never started.",
        ),
        (story(failure=Failure(Cause.UNKNOWN, frozenset(), message="gone")), "It is charged to unknown."),
    ],
)
def test_each_outcome_has_its_sentence(told: list[str], sentence: str) -> None:
    assert sentence in told


def test_a_decision_that_was_not_explained_is_still_told() -> None:
    history = RetryHistory("job")
    policies = PolicySet.compile([])
    decision = decide(policies, OOM, history, SETTINGS)
    assert "It is not retried: no retry policy applies." in explain(decision, OOM, history, SETTINGS)
    granted = decide(PolicySet.compile([RetryPolicy("p", (), None, Action.RETRY)]), OOM, history, SETTINGS)
    assert "Attempt 2 waits 1s." in explain(granted, OOM, history, SETTINGS)
    at_once = explain(replace(granted, delay_s=0.0), OOM, history, SETTINGS)
    assert "Attempt 2 does not wait." in at_once
