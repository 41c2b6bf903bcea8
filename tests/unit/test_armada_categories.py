"""Reading Armada's error categories, with upstream's wording of what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from holdfast.dialects.armada.categories import ErrorCategories, read_error_categories
from holdfast.domain.category import CategoryRule, FailureCategory
from holdfast.domain.policy.model import ContainerScope, ExitCodeOperator, ExitCodes

if TYPE_CHECKING:
    from holdfast.errors import Problem

OOM = {"onConditions": ["OOMKilled"]}


def read(config: dict[str, Any]) -> tuple[ErrorCategories | None, str]:
    problems: list[Problem] = []
    return read_error_categories(config, problems=problems), "\n".join(map(str, problems))


def test_a_configuration_becomes_categories_in_its_own_order() -> None:
    compiled, text = read(
        {
            "enabled": True,
            "defaultCategory": "uncategorized",
            "defaultSubcategory": "unknown",
            "categories": [
                {"name": "infra", "rules": [{**OOM, "subcategory": "oom", "hint": "more memory"}]},
                {
                    "name": "gpu",
                    "action": "Delete",
                    "rules": [
                        {"onPodEvents": {"regexp": "nvidia", "type": "Warning", "reason": "Bad"}},
                        {"onExitCodes": {"operator": "NotIn", "values": [1]}, "containerName": "main"},
                        {"onTerminationMessage": {"pattern": "cuda"}},
                        {"onPodError": {"pattern": "manifest"}},
                    ],
                },
            ],
        }
    )
    codes = ExitCodes(ExitCodeOperator.NOT_IN, frozenset({1}), ContainerScope.ANY_FAILED)
    infra = CategoryRule(conditions=frozenset({"OOMKilled"}), subcategory="oom", hint="more memory")
    gpu = (
        CategoryRule(pod_event="nvidia", pod_event_type="Warning", pod_event_reason="Bad"),
        CategoryRule(exit_codes=codes, container_name="main"),
        CategoryRule(termination_message="cuda"),
        CategoryRule(pod_error="manifest"),
    )
    assert text == ""
    assert compiled == ErrorCategories(
        (FailureCategory("infra", (infra,)), FailureCategory("gpu", gpu, precedence=1, pod_action="Delete")),
        "uncategorized",
        "unknown",
    )


def category(**fields: object) -> dict[str, Any]:
    return {"categories": [{"name": "bad", "rules": [OOM], **fields}]}


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (category(name=""), "must have a name"),
        (category(name="a" * 64), "category name"),
        (category(rules=[]), "must have at least one rule"),
        (category(rules=[{}]), "rule must specify one of"),
        (category(rules=[{"onConditions": []}]), "rule must specify one of"),
        (category(rules=[{**OOM, "onPodError": {"pattern": "x"}}]), "rule must specify only one of"),
        (category(rules=[{"onConditions": ["Preempted"]}]), "unknown condition 'Preempted', valid values: OOMKilled"),
        (
            category(rules=[{"onExitCodes": {"operator": "Equals", "values": [1]}}]),
            "invalid exit code operator 'Equals'",
        ),
        (category(rules=[{"onExitCodes": {"operator": "In", "values": []}}]), "requires at least one value"),
        (category(rules=[{"onTerminationMessage": {"pattern": "[x"}}]), "invalid onTerminationMessage regex"),
        (category(rules=[{"onPodError": {"pattern": "[x"}}]), "invalid onPodError regex"),
        (category(rules=[{"onPodEvents": {"regexp": "[x", "type": "Normal"}}]), "invalid onPodEvents regex"),
        (category(rules=[{"onPodEvents": {"regexp": ".*"}}]), "invalid onPodEvents type"),
        (category(rules=[{**OOM, "subcategory": "b" * 64}]), "subcategory"),
        (category(action="Keep"), "not one of its values"),
        ({"defaultCategory": "c" * 64}, "defaultCategory"),
        ({"defaultSubcategory": "c" * 64}, "defaultSubcategory"),
        ({"categories": [{"name": "a", "rules": [OOM]}, {"name": "a", "rules": [OOM]}]}, "duplicate category name 'a'"),
        ({"categorys": []}, "unknown field"),
    ],
)
def test_a_wrong_configuration_is_refused_in_upstream_s_words(config: dict[str, Any], reason: str) -> None:
    compiled, text = read(config)
    assert compiled is None
    assert reason in text
