"""What is said of each condition of a set's rule, whether it holds or not."""

from __future__ import annotations

import pytest

from holdfast.domain.policy.model import SetAction, SetRule
from holdfast.domain.workloads.children import Child
from holdfast.domain.workloads.jobset.model import FailurePolicy
from holdfast.domain.workloads.jobset.rules import explained, taken

FAILED = Child(name="js-workers-0", group="workers", reason="Evicted", message="node n1 is gone")
NOBODYS = Child(name="other", group="")


@pytest.mark.parametrize(
    ("rule", "child", "holds", "because"),
    [
        ({}, FAILED, True, "the rule matches every failure"),
        ({}, NOBODYS, False, "the job belongs to no replicatedJob"),
        ({"replicated_jobs": ("workers", "driver")}, FAILED, True, "replicatedJob workers is one of driver, workers"),
        ({"replicated_jobs": ("driver",)}, FAILED, False, "replicatedJob workers is not one of driver"),
        ({"replicated_jobs": ("driver",)}, NOBODYS, False, "replicatedJob (none) is not one of driver"),
        ({"reasons": ("Evicted",)}, FAILED, True, "failure reason Evicted is one of Evicted"),
        ({"reasons": ("b", "a")}, FAILED, False, "failure reason Evicted is not one of a, b"),
        ({"reasons": ("a",)}, NOBODYS, False, "failure reason (none) is not one of a"),
        ({"messages": ("n[0-9]", "gone")}, FAILED, True, "failure message 'node n1 is gone' matches 'n[0-9]'"),
        ({"messages": ("x", "y")}, FAILED, False, "failure message 'node n1 is gone' matches none of 'x', 'y'"),
    ],
)
def test_a_condition_says_why_it_holds_or_does_not(
    rule: dict[str, tuple[str, ...]], child: Child, *, holds: bool, because: str
) -> None:
    given = {name: values if name == "messages" else frozenset(values) for name, values in rule.items()}
    policy = FailurePolicy(rules=(SetRule(SetAction.FAIL_JOB_SET, "only", **given),))  # type: ignore[arg-type] # by name
    (match,) = taken(policy, [child])
    assert [(one.matched, one.because) for one in explained(policy, match)] == [(holds, because)]
    assert (match.index is not None) == holds
