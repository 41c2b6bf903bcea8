"""The sentences about a decision."""

from __future__ import annotations

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
from holdfast.domain.record import evolve

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
        "Classified as oom_killed, condition OOMKilled, category memory/cgroup.",
        "Hint: ask for more",
        "Rule oom of policy train (revision 7) matched: condition OOMKilled holds.",
        "It is retried: retry 2 of 2 (train/oom), retry 2 of 20 (globalMaxRetries).",
        "Attempt 3 starts 2s later (1s x 2^1).",
        "It avoids node n1 unless no other node could ever run it.",
        "It asks for 3Gi of memory instead of 2Gi.",
    ]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (
            story(GROW, counted=2),
            "It is not retried: 2 of 2 retries are used (train/oom).",
        ),
        (
            story(),
            "No rule matched, so the default action of policy train (revision 7) applied: Fail.",
        ),
        (
            story(GROW, settings=RetrySettings(0)),
            "It is not retried: the retry limit is 0 (globalMaxRetries).",
        ),
        (
            story(evolve(GROW, anti_affinity=AntiAffinity.DEVICE), failure=evolve(OOM, devices=("GPU-1f00",))),
            "It avoids GPU-1f00@n1 unless no other could ever run it.",
        ),
        (
            story(evolve(GROW, anti_affinity=AntiAffinity.DEVICE), failure=evolve(OOM, devices=("gpu-0", "gpu-1"))),
            "It avoids gpu-0@n1, gpu-1@n1 unless no others could ever run it.",
        ),
        (story(failure=evolve(OOM, conditions=frozenset())), "Classified as oom_killed, category memory/cgroup."),
        (story(failure=None), "How attempt 1 ended is unknown."),
        (
            story(failure=None),
            "Nothing is known about what went wrong, so it is not retried.",
        ),
        (
            story(failure=evolve(OOM, cause=Cause.USER_CANCELLED)),
            "No policy can retry this cause.",
        ),
        (
            story(Rule(Action.HOLD, hold_reason="look at the disk")),
            "The job is held until someone releases it: look at the disk.",
        ),
        (
            story(Rule(Action.IGNORE)),
            "It is retried, and the retry is not counted.",
        ),
        (
            story(GROW, settings=RetrySettings()),
            "It is retried: retry 1 of 2 (train/oom).",
        ),
        (
            story(evolve(GROW, retry_limit=None), settings=RetrySettings()),
            "It is retried, without a limit.",
        ),
        (
            story(GROW, now=RetrySettings(3)),
            "It is retried: retry 1 of 2 (train/oom), retry 1 of 20 (globalMaxRetries, 3 now).",
        ),
        (
            story(GROW, now=RetrySettings()),
            "It is retried: retry 1 of 2 (train/oom), retry 1 of 20 (globalMaxRetries, unlimited now).",
        ),
        (
            story(failure=Failure(Cause.AGENT_TRANSIENT, frozenset({"LaunchFailed"}), started=False)),
            "Attempt 1 failed before its program started: LaunchFailed.",
        ),
        (story(failure=Failure(Cause.UNKNOWN, frozenset(), message="gone")), "Classified as unknown."),
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
    assert "Attempt 2 starts 1s later." in explain(granted, OOM, history, SETTINGS)
    at_once = explain(evolve(granted, delay_s=0.0), OOM, history, SETTINGS)
    assert "Attempt 2 starts at once." in at_once
