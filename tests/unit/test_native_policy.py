"""Reading and writing native retry policies: every field, bounds, names, warnings."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import fields

from holdfast.dialects.manifests import manifest_warnings
from holdfast.dialects.native.policy import policy_warnings, read_policy
from holdfast.dialects.native.writing import write_policy
from holdfast.domain.policy.model import (
    Action,
    AntiAffinity,
    Backoff,
    ContainerScope,
    ExitCodeOperator,
    ExitCodes,
    JitterMode,
    MemoryGrowth,
    Mutation,
    RetryPolicy,
    Rule,
)
from holdfast.domain.terms.settings import UnknownEnd
from holdfast.errors import InvalidManifest, Problem
from tests.reading import read_manifests

FULL_RULE: dict[str, Any] = {
    "name": "everything",
    "action": "Retry",
    "onExitCodes": {"operator": "NotIn", "values": [1, 2]},
    "onConditions": ["OOMKilled", "NodeLost"],
    "onTerminationMessage": {"pattern": "(?i)cuda.*error"},
    "onLog": {"pattern": "NCCL|Xid"},
    "onCategory": ["gpu", "net"],
    "onSubcategory": "transient",
    "onCauses": ["agent_transient"],
    "onSignals": [9, "SIGTERM", "int"],
    "containerName": "main",
    "includeInitContainers": True,
    "ranShorterThan": "1h",
    "ranLongerThan": "250ms",
    "retryLimit": 0,
    "backoff": {"initialDelay": "30s", "maxDelay": "10m", "multiplier": 3, "jitter": "random", "jitterRatio": 0.1},
    "antiAffinity": {"mode": "node"},
    "mutate": {"resources": {"memory": {"static": "512Mi", "max": "8Gi"}}, "affinity": {"avoidSameNode": True}},
}


def read(spec: dict[str, Any]) -> tuple[RetryPolicy | None, list[Problem]]:
    problems: list[Problem] = []
    return read_policy(spec, path="spec", name="p", problems=problems), problems


def read_sound(spec: dict[str, Any]) -> RetryPolicy:
    policy, problems = read(spec)
    assert problems == []
    assert policy is not None
    return policy


def test_every_field_of_a_rule_reaches_the_model() -> None:
    assert read_sound({"rules": [FULL_RULE]}).rules[0] == Rule(
        action=Action.RETRY,
        name="everything",
        exit_codes=ExitCodes(ExitCodeOperator.NOT_IN, frozenset({1, 2}), ContainerScope.FIRST_FAILED),
        conditions=frozenset({"OOMKilled", "NodeLost"}),
        termination_message="(?i)cuda.*error",
        log="NCCL|Xid",
        categories=frozenset({"gpu", "net"}),
        subcategories=frozenset({"transient"}),
        causes=frozenset({"agent_transient"}),
        signals=frozenset({9, 15, 2}),
        container_name="main",
        include_init_containers=True,
        ran_shorter_than_s=3600.0,
        ran_longer_than_s=0.25,
        retry_limit=0,
        backoff=Backoff(30.0, 600.0, 3.0, JitterMode.RANDOM, 0.1),
        anti_affinity=AntiAffinity.NODE,
        mutate=Mutation(MemoryGrowth(static=512 * 1024**2, max=8 * 1024**3), avoid_same_node=True),
    )


def test_the_full_rule_sets_every_field_a_retry_can_have() -> None:
    rule = read_sound({"rules": [FULL_RULE]}).rules[0]
    left_out = {field.name for field in fields(Rule) if getattr(rule, field.name) == field.default}
    assert left_out == {"hold_reason"}, "add it to FULL_RULE, so that reading and writing it are tested"


def test_an_empty_policy_fails_everything_and_inherits_its_limit() -> None:
    policy = read_sound({})
    assert (policy.default_action, policy.retry_limit, policy.rules) == (Action.FAIL, None, ())


@pytest.mark.parametrize(("spec", "limit"), [({}, None), ({"retryLimit": None}, None), ({"retryLimit": 0}, 0)])
def test_an_absent_limit_inherits_and_an_explicit_zero_means_never(spec: dict[str, Any], limit: int | None) -> None:
    assert read_sound(spec).retry_limit == limit


def test_unnamed_rules_are_named_by_their_content() -> None:
    policy = read_sound({"rules": [{"action": "Retry"}, {"action": "Fail", "name": "bug"}, {"action": "Fail"}]})
    assert [rule.name for rule in policy.rules] == ["any-6a6e496f", "bug", "any-c2f0c72a"]


def test_a_hold_shows_its_reason() -> None:
    rule = read_sound({"rules": [{"action": "Hold", "reason": "check the data first"}]}).rules[0]
    assert (rule.action, rule.hold_reason) == (Action.HOLD, "check the data first")


@pytest.mark.parametrize(
    ("rule", "path", "message"),
    [
        ({"action": None}, "action", "is required"),
        ({"action": "Restart"}, "action", "not one of its values"),
        ({"onConditions": ["OOMkilled"]}, "onConditions[0]", "unknown condition"),
        ({"onConditions": []}, "onConditions", "at least one condition"),
        ({"onExitCodes": {"operator": "Is", "values": [1]}}, "onExitCodes.operator", "not one of its values"),
        ({"onExitCodes": {"operator": "In"}}, "onExitCodes.values", "at least one exit code"),
        ({"onExitCodes": {"operator": "In", "values": ["1"]}}, "onExitCodes.values[0]", "must be a whole number"),
        ({"onExitCodes": {"operator": "In", "values": [2**31]}}, "onExitCodes.values[0]", "not an exit code"),
        ({"onExitCodes": {"operator": "In", "values": list(range(10_001))}}, "onExitCodes.values", "at most 10000"),
        ({"onTerminationMessage": {"pattern": "[x"}}, "onTerminationMessage.pattern", "missing ]"),
        ({"onTerminationMessage": {"pattern": "(?=x)"}}, "onTerminationMessage.pattern", "invalid regex"),
        ({"onTerminationMessage": {"pattern": ""}}, "onTerminationMessage.pattern", "must not be empty"),
        ({"onTerminationMessage": "x"}, "onTerminationMessage", "must be a mapping"),
        ({"onCategory": "a", "onFailureCategory": ["b"]}, "onFailureCategory", "the same as onCategory"),
        ({"onFailureCategory": []}, "onFailureCategory", "at least one"),
        ({"onCauses": ["user_cancelled"]}, "onCauses", "never retried"),
        ({"onCauses": ["bad_luck"]}, "onCauses", "unknown cause"),
        ({"onSignals": ["SIGFOO"]}, "onSignals[0]", "is not a signal"),
        ({"onSignals": [0]}, "onSignals[0]", "is not a signal"),
        ({"ranShorterThan": "1m", "ranLongerThan": "1m"}, "ranLongerThan", "nothing can match"),
        ({"ranShorterThan": 0}, "ranShorterThan", "nothing runs shorter"),
        ({"retryLimit": -1}, "retryLimit", "out of range"),
        ({"retryLimit": "3"}, "retryLimit", "must be a whole number"),
        ({"backoff": {"initialDelay": "10m", "maxDelay": "1m"}}, "backoff.maxDelay", "shorter than initialDelay"),
        ({"backoff": {"multiplier": 0.5}}, "backoff.multiplier", "out of range"),
        ({"backoff": {"jitter": "some"}}, "backoff.jitter", "not one of its values"),
        ({"backoff": {"initialdelay": 1}}, "backoff.initialdelay", "unknown field"),
        ({"antiAffinity": {"mode": "rack"}}, "antiAffinity.mode", "not one of its values"),
        ({"mutate": {"resources": {"memory": {}}}}, "mutate.resources.memory", "exactly one of static and factor"),
        ({"mutate": {"resources": {"memory": {"factor": 1}}}}, "mutate.resources.memory.factor", "greater than 1.0"),
        ({"mutate": {"resources": {"memory": {"static": "-1Gi"}}}}, "mutate.resources.memory.static", "positive"),
        ({"mutate": {"resources": {"cpu": 2}}}, "mutate.resources.cpu", "unknown field"),
        ({"reason": "why"}, "reason", "Hold"),
        ({"name": "default"}, "name", "default action"),
        ({"name": "No"}, "name", "is invalid"),
        ({"onExitCode": [1]}, "onExitCode", "unknown field"),
    ],
)
def test_a_wrong_rule_is_named_with_its_index(rule: dict[str, Any], path: str, message: str) -> None:
    policy, problems = read({"rules": [{"action": "Fail"}, {"action": "Retry", **rule}]})
    assert policy is None
    assert any(found.path == f"spec.rules[1].{path}" and message in found.message for found in problems), problems


def test_two_rules_of_one_name_would_share_a_counter() -> None:
    _, problems = read({"rules": [{"name": "a", "action": "Fail"}, {"name": "a", "action": "Retry"}]})
    assert "is also the name of rules[0]" in problems[0].message


def test_an_unknown_condition_lists_the_known_ones_and_suggests_one() -> None:
    _, (problem,) = read({"rules": [{"action": "Retry", "onConditions": ["oomkilled"]}]})
    assert problem.hint == "did you mean OOMKilled?"
    assert "Preempted" in problem.allowed


def test_more_rules_than_the_limit_are_refused() -> None:
    _, problems = read({"rules": [{"action": "Fail"}] * 1001})
    assert "at most 1000" in problems[0].message


def test_dubious_but_legal_policies_are_warned_about() -> None:
    problems: list[Problem] = []
    spec = {
        "rules": [
            {"action": "Fail", "onExitCodes": {"operator": "In", "values": [2]}, "retryLimit": 3},
            {"action": "Retry", "name": "all"},
            {"action": "Fail", "onConditions": ["OOMKilled"]},
        ]
    }
    policy = read_policy(spec, path="spec", name="p", problems=problems)
    assert problems == []
    assert policy is not None
    warnings = policy_warnings(policy, "spec")
    assert [warning.path for warning in warnings] == ["spec.rules[0].retryLimit", "spec.rules[2]"]
    assert "'all' before it matches every failure" in warnings[1].message


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"retryLimit": 3}, ["spec.retryLimit"]),
        ({"retryLimit": 3, "rules": [{"action": "Fail", "onConditions": ["OOMKilled"]}]}, ["spec.retryLimit"]),
        ({"retryLimit": 3, "defaultAction": "Retry"}, []),
        ({"retryLimit": 3, "rules": [{"action": "Retry", "onConditions": ["OOMKilled"]}]}, []),
        ({"retryLimit": 0}, []),
    ],
)
def test_a_limit_of_a_policy_that_retries_nothing_is_warned_about(spec: dict[str, object], paths: list[str]) -> None:
    assert [warning.path for warning in policy_warnings(read_sound(spec), "spec")] == paths


def test_a_written_policy_reads_back_equal() -> None:
    spec = {
        "retryLimit": 5,
        "defaultAction": "Hold",
        "antiAffinity": {"mode": "node"},
        "onUnknownEnd": "Fail",
        "backoff": {"initialDelay": "250ms"},
        "rules": [FULL_RULE, {"action": "Hold", "reason": "look"}, {"action": "Ignore"}],
    }
    policy = read_sound(spec)
    assert policy.on_unknown_end is UnknownEnd.FAIL
    assert read_sound(write_policy(policy)) == policy


def test_a_policy_manifest_has_its_name_in_the_metadata() -> None:
    (policy,) = read_manifests(
        "apiVersion: holdfast.dev/v1\nkind: RetryPolicy\nmetadata: {name: p}\nspec: {retryLimit: 2}\n"
    )
    assert policy == RetryPolicy("p", retry_limit=2)
    with pytest.raises(InvalidManifest) as caught:
        read_manifests("apiVersion: holdfast.dev/v1\nkind: RetryPolicy\nspec: {retryLimits: 2}\n")
    assert [problem.path for problem in caught.value.problems] == ["metadata", "spec.retryLimits"]


DUBIOUS = "{rules: [{action: Retry}, {action: Fail}]}"


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        (f"apiVersion: holdfast.dev/v1\nkind: RetryPolicy\nmetadata: {{name: p}}\nspec: {DUBIOUS}", ["spec.rules[1]"]),
        (f"command: [x]\nretry: {DUBIOUS}", ["spec.retry.rules[1]"]),
        (f"command: [x]\nretry: [{DUBIOUS}, {DUBIOUS}]", ["spec.retry[0].rules[1]", "spec.retry[1].rules[1]"]),
        ("command: [x]", []),
        ("apiVersion: holdfast.dev/v1\nkind: Queue\nmetadata: {name: q}", []),
    ],
)
def test_the_warnings_of_a_manifest_can_be_asked_for(text: str, paths: list[str]) -> None:
    (manifest,) = read_manifests(text)
    assert [warning.path for warning in manifest_warnings(manifest)] == paths


@pytest.mark.parametrize(
    ("given", "expected"), [({}, 600.0), ({"maxDelay": "none"}, None), ({"maxDelay": "1h"}, 3600.0)]
)
def test_a_delay_is_capped_at_ten_minutes_unless_the_policy_says_otherwise(
    given: dict[str, str], expected: float | None
) -> None:
    problems: list[Problem] = []
    backoff = {"initialDelay": "1s", **given}
    policy = read_policy({"backoff": backoff}, path="spec", name="p", problems=problems)
    assert policy is not None
    assert policy.backoff is not None
    assert policy.backoff.max_s == expected
    assert read_policy(write_policy(policy), path="", name="p", problems=problems) == policy
