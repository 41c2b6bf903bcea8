"""Judges a failed pod by a podFailurePolicy: rules in order, the first that matches, else Count.

Exit codes are looked up in app containers first, then in init containers; any failed container counts, and a code
of 0 never matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.domain.policy.matchers import ContainerSelector
from holdfast.domain.policy.model import ExitCodeOperator
from holdfast.domain.record import Struct
from holdfast.domain.workloads.kubejob.model import PodAction
from holdfast.domain.workloads.kubejob.rulesets import as_seen, of_job

if TYPE_CHECKING:
    from holdfast.domain.workloads.kubejob.model import KubeJobSpec, Pod, PodRule

NAMESPACE = "default"
"""What stands for the namespace in messages: Holdfast has none."""


class PodVerdict(Struct, frozen=True):
    """What the policy says about one pod."""

    action: PodAction
    rule: int | None = None
    reason: str = ""
    """Of the Job, when it fails by this."""
    message: str = ""


def judge(spec: KubeJobSpec, pod: Pod) -> PodVerdict:
    """Judge one failed pod; one still terminating has not failed yet and counts as ``Count``."""
    index = of_job(spec).first_match(as_seen(pod)).index if spec.failure_rules else None
    if index is None or spec.failure_rules is None:
        return PodVerdict(PodAction.COUNT)
    rule = spec.failure_rules[index]
    message = f"{_found(rule, pod)} matching {rule.action} rule at index {index}"
    return PodVerdict(rule.action, index, rule.job_reason, message)


def _found(rule: PodRule, pod: Pod) -> str:
    """Say what a rule matches, word for word as the Job controller does; rules of job sets match these texts."""
    codes = rule.exit_codes
    if codes is None:
        return f"Pod {NAMESPACE}/{pod.name} has condition {min(rule.conditions & pod.conditions)[0]}"
    failed = ContainerSelector(rule.container_name, init=True).of_containers(pod.containers)
    one = next(one for one in failed if (one.exit_code in codes.values) is (codes.operator is ExitCodeOperator.IN))
    return f"Container {one.name} for pod {NAMESPACE}/{pod.name} failed with exit code {one.exit_code}"
