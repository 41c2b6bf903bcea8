"""Reading Armada's policies in their three forms, with upstream's wording of what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.dialects.armada.jobs import policies_of
from holdfast.dialects.armada.policy import BARE, FLAT, NESTED, Form, read_action, read_bare_policy
from holdfast.domain.policy.model import Action, AntiAffinity, RetryPolicy
from holdfast.errors import InvalidManifest, Problem
from tests.reading import read_manifests
from tools.cases.armada_pods import pod_name

DESIGN = """
apiVersion: armadaproject.io/v1
kind: RetryPolicy
metadata:
  name: ml-training
spec:
  retryLimit: 5
  defaultAction: Fail
  backoff:
    initialDelay: 0s
  antiAffinity:
    mode: none
  rules:
    - action: Retry
      onConditions:
        - Preempted
        - Evicted
      antiAffinity:
        mode: node
    - action: Retry
      onConditions:
        - OOMKilled
      retryLimit: 3
    - action: Retry
      onExitCodes:
        operator: In
        values: [137]
    - action: Retry
      onFailureCategory: [cuda_error, infiniband_error]
"""


def read(value: dict[str, Any], form: Form = BARE) -> tuple[RetryPolicy | None, str]:
    problems: list[Problem] = []
    policy = read_bare_policy({"name": "p1", "defaultAction": "Fail", **value}, path="", problems=problems, form=form)
    return policy, "\n".join(map(str, problems))


def test_the_design_document_s_policy_is_accepted_as_it_stands() -> None:
    (policy,) = read_manifests(DESIGN)
    assert isinstance(policy, RetryPolicy)
    assert (policy.name, policy.retry_limit, policy.default_action) == ("ml-training", 5, Action.FAIL)
    assert [rule.name.rpartition("-")[0] for rule in policy.rules] == [
        "evicted-preempted",
        "oomkilled",
        "exit-137",
        "cuda-error-infiniband-error",
    ]
    assert policy.rules[0].anti_affinity is AntiAffinity.NODE
    assert policy.rules[1].retry_limit == 3
    assert policy.rules[3].categories == frozenset({"cuda_error", "infiniband_error"})


def test_the_shipped_flat_form_is_accepted() -> None:
    (policy,) = read_manifests(
        "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: ml\nretryLimit: 3\n"
        "defaultAction: RETRY_ACTION_FAIL\nrules:\n"
        "  - {action: 1, onCategory: user-error}\n"
        "  - {action: retry, onCategory: gpu, onSubcategory: transient}\n"
    )
    assert isinstance(policy, RetryPolicy)
    assert [rule.action for rule in policy.rules] == [Action.FAIL, Action.RETRY]
    assert policy.rules[1].subcategories == frozenset({"transient"})


@pytest.mark.parametrize(("form", "limit"), [(NESTED, None), (BARE, None), (FLAT, 0)])
def test_an_absent_limit_inherits_except_in_protobuf_s_reading(form: Form, limit: int | None) -> None:
    policy, _ = read({}, form)
    assert policy is not None
    assert policy.retry_limit == limit


def test_only_the_design_document_has_a_default_for_the_default_action() -> None:
    assert read({"defaultAction": None}, NESTED)[0] is not None
    assert "must set a default action (Fail or Retry)" in read({"defaultAction": None}, BARE)[1]
    assert "must set a default action (Fail or Retry)" in read({"defaultAction": None}, FLAT)[1]


@pytest.mark.parametrize(
    ("value", "action"),
    [
        ("Fail", Action.FAIL), ("FAIL", Action.FAIL), ("retry", Action.RETRY), ("RETRY_ACTION_RETRY", Action.RETRY),
        ("retry_action_fail", Action.FAIL), (1, Action.FAIL), (2, Action.RETRY),
        (0, None), (3, None), ("RETRY_ACTION_UNSPECIFIED", None), ("", None), (True, None), (None, None),
        ("Skip", None),
    ],
)  # fmt: skip
def test_actions_have_all_of_upstream_s_spellings(value: object, action: Action | None) -> None:
    assert read_action(value) == action


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "name must not be empty"), ("MyPolicy", "is invalid"), ("-policy", "is invalid"),
        ("policy-", "is invalid"), ("a" * 64, "at most 63 characters"),
    ],
)  # fmt: skip
def test_names_are_checked_in_upstream_s_words(name: str, reason: str) -> None:
    assert reason in read({"name": name})[1]


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        (None, "rule must not be nil"),
        ({"onCategory": "x"}, "action must be Fail or Retry"),
        ({"action": "Skip", "onCategory": "x"}, "unknown action 'Skip'"),
        ({"action": 0, "onCategory": "x"}, "action must be Fail or Retry"),
        ({"action": "Hold", "onCategory": "x"}, "action must be Fail or Retry"),
        ({"action": "Retry"}, "on_category must be set"),
        ({"action": "Retry"}, "must have at least one match field"),
        ({"action": "Retry", "onSubcategory": "oom"}, "on_category must be set"),
        ({"action": "Retry", "onConditions": []}, "must have at least one match field"),
        ({"action": "Retry", "onConditions": ["Evicted"], "onSubcategory": "x"}, "onSubcategory requires onCategory"),
        ({"action": "Fail", "onTerminationMessage": {"pattern": ""}}, "OnTerminationMessage pattern must not be empty"),
        ({"action": "Fail", "onExitCodes": {"operator": "Bad", "values": [1]}}, "OnExitCodes operator must be"),
        ({"action": "Fail", "onExitCodes": {"operator": "In", "values": []}}, "OnExitCodes values must not be empty"),
        ({"action": "Retry", "onConditions": ["Lost"]}, "unknown condition 'Lost'"),
        ({"action": "Retry", "onCatgory": "x"}, "unknown field"),
    ],
)
def test_rules_are_checked_in_upstream_s_words_with_their_index(rule: object, reason: str) -> None:
    policy, text = read({"rules": [{"action": "Fail", "onCategory": "a"}, rule]})
    assert policy is None
    assert reason in text
    assert "rules[1]" in text
    assert "rules[0]" not in text


@pytest.mark.parametrize(
    ("memory", "reason"),
    [
        ({"static": "1Gi", "factor": 2}, "set exactly one of static and factor, not both"),
        ({}, "set exactly one of static and factor"),
        ({"factor": 1.0}, "must be greater than 1.0"),
        ({"factor": -3}, "must be greater than 1.0"),
        ({"static": "many"}, "invalid static quantity"),
        ({"static": "-1Gi"}, "must be positive"),
        ({"static": 0}, "must be positive"),
    ],
)
def test_memory_growth_is_checked_in_upstream_s_words(memory: dict[str, Any], reason: str) -> None:
    rule = {"action": "Retry", "onCategory": "oom", "mutate": {"resources": {"memory": memory}}}
    assert reason in read({"rules": [rule]})[1]


def test_armada_s_lease_conditions_become_ours() -> None:
    rules = [{"action": "Retry", "onConditions": [name]} for name in ("LeaseReturned", "LeaseExpired")]
    policy, _ = read({"rules": rules})
    assert policy is not None
    assert [rule.conditions for rule in policy.rules] == [frozenset({"LaunchFailed"}), frozenset({"ExecutorLost"})]


def test_one_mistake_is_reported_once() -> None:
    for rule in (
        {"action": "Skip", "onCategory": "x"},
        {"action": "Fail", "onExitCodes": {"operator": "Bad", "values": [1]}},
    ):
        assert len(read({"rules": [rule]})[1].splitlines()) == 1


def test_a_typo_in_a_file_names_the_field_and_its_line() -> None:
    with pytest.raises(InvalidManifest) as caught:
        read_manifests(
            "apiVersion: armadaproject.io/v1beta1\nkind: RetryPolicy\nname: p1\nretry_limit: 5\ndefaultAction: Retry\n"
        )
    (problem,) = caught.value.problems
    assert (problem.path, problem.line, problem.hint) == ("retry_limit", 4, "did you mean retryLimit?")


def test_a_file_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidManifest, match="kind must be RetryPolicy"):
        read_manifests("apiVersion: armadaproject.io/v1beta1\nkind: Executor\nname: e1\n")


@pytest.mark.parametrize(("index", "name"), [(0, "armada-j1-0"), (1, "armada-j1-0-1")])
def test_pods_are_named_after_job_and_run(index: int, name: str) -> None:
    assert pod_name("j1", index) == name


@pytest.mark.parametrize(("text", "names"), [("", ()), ("a", ("a",)), (" a, b ,,a", ("a", "b"))])
def test_an_annotation_adds_policies(text: str, names: tuple[str, ...]) -> None:
    assert policies_of({"armadaproject.io/retry-policy": text}) == names
    assert policies_of({}) == ()
