"""A rule without a name is the same rule wherever it stands, so that nothing that was counted moves to another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.dialects.native.policy import read_policy
from holdfast.dialects.reading import DNS_LABEL, LONGEST_NAME
from holdfast.domain.policy.identity import content_name, name_rules
from tests.property.test_policy_properties import RULES

if TYPE_CHECKING:
    from holdfast.domain.policy.model import RetryPolicy, Rule

OOM = {"action": "Retry", "onConditions": ["OOMKilled"], "retryLimit": 3}
CODES = {"action": "Retry", "onExitCodes": {"operator": "In", "values": [137, 143]}}


def read(*rules: dict[str, Any]) -> RetryPolicy:
    problems: list[Any] = []
    policy = read_policy({"rules": list(rules)}, path="", name="p", problems=problems)
    assert policy is not None, problems
    return policy


def names(*rules: dict[str, Any]) -> list[str]:
    return [rule.name for rule in read(*rules).rules]


def test_a_rule_that_is_put_above_others_leaves_them_their_names() -> None:
    before = names(OOM, CODES)
    first, *rest = names({"action": "Fail", "onCategory": ["user-error"]}, OOM, CODES)
    assert (rest, first in before) == (before, False)
    assert names(CODES, OOM) == before[::-1]


def test_names_are_these_and_stay_so_because_counters_are_stored_by_them() -> None:
    wide = {"action": "Fail", "onTerminationMessage": {"pattern": "bad"}, "containerName": "main"}
    assert names(OOM, CODES, wide, {"action": "Retry"}) == [
        "oomkilled-90dd9c82",
        "exit-137-143-5a3f1f0a",
        "message-f7d82395",
        "any-6a6e496f",
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"retryLimit": 9},
        {"backoff": {"initialDelay": "5s"}},
        {"antiAffinity": {"mode": "node"}},
        {"mutate": {"resources": {"memory": {"factor": 2}}}},
    ],
)
def test_a_rule_whose_limit_or_delay_changes_is_still_the_same(change: dict[str, Any]) -> None:
    assert names({**OOM, **change}) == names(OOM)


@pytest.mark.parametrize(
    "change",
    [
        {"action": "Fail", "retryLimit": None},
        {"onConditions": ["Evicted"]},
        {"onConditions": ["OOMKilled", "Evicted"]},
        {"onExitCodes": {"operator": "In", "values": [137]}},
        {"containerName": "main"},
        {"includeInitContainers": True},
        {"onCategory": ["oom"]},
        {"onSubcategory": ["oom"], "onCategory": ["x"]},
        {"onCauses": ["oom_killed"]},
        {"onSignals": [9]},
        {"onLog": {"pattern": "x"}},
        {"onTerminationMessage": {"pattern": "x"}},
        {"ranShorterThan": "5s"},
        {"ranLongerThan": "5s"},
    ],
)
def test_a_rule_about_other_failures_is_another_one(change: dict[str, Any]) -> None:
    assert names({**OOM, **change}) != names(OOM)


def test_equal_rules_are_numbered_and_given_names_are_kept() -> None:
    name = names(OOM)[0]
    assert names(OOM, OOM, OOM) == [name, f"{name}-2", f"{name}-3"]
    assert names({**OOM, "name": name}, OOM) == [name, f"{name}-2"]
    assert names(OOM, {**OOM, "name": "mine"}) == [name, "mine"]


@given(st.lists(RULES, max_size=6))
def test_every_rule_gets_a_name_of_its_own_that_can_be_written(rules: list[Rule]) -> None:
    bare = [rule for rule in rules if not rule.name]
    found = [rule.name for rule in name_rules(bare)]
    assert len({*found}) == len(found)
    assert all(DNS_LABEL.fullmatch(name) and len(name) <= LONGEST_NAME for name in found)
    assert [content_name(rule) for rule in bare] == [content_name(rule) for rule in bare]
